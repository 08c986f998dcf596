"""What an attacker does to a run directory: with files alone, or with the key too.

An *outsider* edits files. An *insider* holds key and recorder: after the edit every
hash, leaf and signature is made anew.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import zstandard

from owa_bench.canonical import canonical_json, chain_start, chain_step, public_bytes, seal
from owa_bench.records.events import DECODER, ENCODER, AnyEvent
from owa_bench.records.layout import PLAN_TYPE, RunLayout
from owa_bench.records.registry import Registry, VerifierKey
from owa_bench.records.shards import frame_lines
from owa_bench.records.trace import Closing, Segment, replay_line
from owa_bench.reports import statement, verify
from owa_bench.reports.check import assurance
from owa_bench.reports.check.evidence_checks import check_evidence
from owa_bench.reports.composition import compose
from owa_bench.reports.page.render_html import render_page
from owa_bench.reports.read import bundle
from owa_bench.runs.store import files
from tests.builders.run_directory import KEY, OTHER_KEY

Lines = dict[str, list[bytes]]
CAUGHT: list[str] = []  # names of the checks that failed in the present test


def failing(run_dir: Path, public: bytes | None = None) -> set[str]:
    """Return the names of the checks that fail."""
    found = {check.name for check in verify.verify(run_dir, public) if not check.ok}
    CAUGHT.extend(found)
    return found


def recomputed(run_dir: Path) -> set[str]:
    """Return the names of the comparisons that fail."""
    found = {check.name for check in verify.recompute(run_dir) if not check.ok}
    CAUGHT.extend(found)
    return found


def attempts(layout: RunLayout) -> Lines:
    """Return the lines of every attempt, its closing line last."""
    run = bundle.read(layout.root)
    return {
        name: [row for frame in found for row in frame_lines(layout.shards, frame)]
        for name, found in run.index.items()
    }


def outside(layout: RunLayout, edit: Callable[[Lines], None]) -> None:
    """Edit the lines of the shards and leave everything else as it is."""
    lines = attempts(layout)
    edit(lines)
    write(layout, lines)


def inside(layout: RunLayout, edit: Callable[[Lines], None]) -> None:
    """Edit the lines, then make every hash, leaf and signature anew."""
    lines = attempts(layout)
    edit(lines)
    digest = files.plan_digest(layout)
    write(layout, {name: rehashed(name, rows, digest) for name, rows in lines.items()})
    files.rebuild_leaves(layout)
    sign(layout)


def sign(layout: RunLayout) -> None:
    """Sign whatever the directory holds now, without asking whether it holds."""
    run = bundle.read(layout.root)
    envelope = verify.read_signed_report(run)
    assert envelope is not None
    report = compose(run, envelope.report.assurance)
    html = render_page(run, report)
    page = hashlib.sha256(html).hexdigest()
    report = msgspec.structs.replace(report, page=page)
    statement.publish(layout, report, html, KEY)


def resign_plan(layout: RunLayout, **changes: object) -> None:
    """Change the plan and sign it again with the run's own key."""
    plan = bundle.read(layout.root).plan
    plan = msgspec.structs.replace(plan, **changes)
    layout.plan.write_bytes(canonical_json(plan))
    layout.plan_envelope.write_bytes(seal(PLAN_TYPE, canonical_json(plan), KEY))


def write(layout: RunLayout, lines: Lines) -> None:
    """Write one shard, a frame per attempt, in place of all there were."""
    for path in layout.shards.glob("*.jsonl.zst"):
        path.unlink()
    squeeze = zstandard.ZstdCompressor(write_checksum=True).compress
    body = b""
    for name, rows in lines.items():
        head = ENCODER.encode(Segment(attempt_id=name, part=0))
        body += squeeze(b"\n".join((head, *rows, b"")))
    layout.shard(0).write_bytes(body)


def rehashed(name: str, rows: list[bytes], plan_digest: str) -> list[bytes]:
    """Return an attempt's lines with a closing line that fits them."""
    *events, last = rows
    head = chain_start(plan_digest, name)
    replay = hashlib.sha256()
    for row in events:
        head = chain_step(head, row)
        again = replay_line(DECODER.decode(row))
        if again is not None:
            replay.update(again + b"\n")
    closing = msgspec.json.decode(last, type=Closing)
    closing = msgspec.structs.replace(
        closing,
        closing=name,
        count=len(events),
        head=head.hex(),
        replay=replay.hexdigest(),
        timed=getattr(DECODER.decode(events[-1]), "timed", False),
    )
    return [*events, ENCODER.encode(closing)]


def change(rows: list[bytes], kind: type[AnyEvent], **fields: object) -> None:
    """Change fields of the first event of one kind."""
    for place, row in enumerate(rows[:-1]):
        event = DECODER.decode(row)
        if isinstance(event, kind):
            rows[place] = ENCODER.encode(msgspec.structs.replace(event, **fields))
            return
    msg = f"no {kind.__name__} to change"
    raise AssertionError(msg)


def unmet(root, level):
    """Return why a rung of the assurance ladder is not met; no check may fail."""
    run = bundle.read(root)
    checks = check_evidence(run)
    found = assurance.assess(run, checks, signed=True, registry=registry_of(OTHER_KEY))
    rung = found.rungs[level]
    assert not rung.met
    assert failing(root) == set()
    return rung.evidence


def registry_of(*keys):
    """Return the registry of a reader who trusts these keys."""
    named = [public_bytes(key.public_key()).hex() for key in keys]
    verifiers = tuple(VerifierKey(name="a verifier", key=key) for key in named)
    return Registry(name="the reader's", verifier=verifiers)


def write_registry(layout, *keys):
    """Put the registry of these keys into a run directory; return its text."""
    named = [public_bytes(key.public_key()).hex() for key in keys]
    text = 'name = "the run\'s"\n'
    text += "".join(f'[[verifier]]\nname = "v"\nkey = "{key}"\n' for key in named)
    layout.registry.write_text(text)
    return text

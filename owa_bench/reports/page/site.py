"""Site of a run: a list of its attempts and a page of each, without a server.

    write_site(Path("runs/first"), Path("runs/first/view"))

The site shows what the shards hold; it is no evidence, nothing of it is signed, and nothing is
checked that `owa-bench verify` checks. Source: docs/read-a-run.md#view
"""

import base64
import hashlib
import json
import re
import shutil
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from jinja2 import Template
from markupsafe import Markup, escape

from owa_bench.errors import TraceError, UsageError
from owa_bench.records import events
from owa_bench.records.bounds import decode_array, read_document
from owa_bench.records.control_blocks import block_commands
from owa_bench.records.events import (
    ENCODER,
    AnyEvent,
    Artifact,
    ControlBlock,
    EpisodeStart,
    Evidence,
)
from owa_bench.records.packs import Transcripts
from owa_bench.records.price_card import PriceCard, episode_cost
from owa_bench.records.trace import Trace
from owa_bench.reports.page.templates import own_file, page_template
from owa_bench.reports.read.attempts import RecordedAttempt
from owa_bench.reports.read.bundle import Bundle, read
from owa_bench.reports.read.failures import KINDS, read_episode

# --- files of parts: texts, arrays, pictures, events of attempts ----------------------
# A page opened from a disk may load scripts but no data, so a file of parts is a script
# that hands a compressed text to the page: `owaParts(FILE, "base64 of deflated JSON")`.
# Parts are numbered through all files; a text is stored once, whoever refers to it.


FILE_BYTES = 1 << 21  # of JSON, before it is compressed
_DECIMALS = 4  # of recorded observations
_PICTURES = {"image/jpeg": "jpg", "image/png": "png"}
_NUMBERS = "application/x-npy"
# Fields that hold the SHA-256 of a blob, or of something that is no blob.
_DIGESTS = frozenset(
    {
        *("blob", "observation", "request", "response", "prompt", "reply", "output"),
        *("digest", "before", "after", "world", "fingerprint", "played"),
        *("question", "answer", "manifest"),
    }
)


class SiteParts:
    """Writes parts; `firsts` are the numbers of each file's first part.

    Args:
        folder: The site's folder; files go to `data/`, pictures to `pictures/`.
        transcripts: The blobs of the run.
    """

    def __init__(self, folder: Path, transcripts: Transcripts) -> None:
        self.firsts: list[int] = []
        self._folder = folder
        self._transcripts = transcripts
        self._waiting: list[bytes] = []
        self._size = 0  # bytes that wait
        self._count = 0
        self._places: dict[str, int | str | None] = {}  # by digest
        for name in ("data", "pictures"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def add(self, part: bytes) -> int:
        """Take a part as JSON and return its number."""
        self._waiting.append(part)
        self._count += 1
        self._size += len(part)
        if self._size >= FILE_BYTES:
            self.flush()
        return self._count - 1

    def flush(self) -> None:
        """Write the parts that wait as a file."""
        if not self._waiting:
            return
        number = len(self.firsts)
        self.firsts.append(self._count - len(self._waiting))
        text = deflated(b"[" + b",".join(self._waiting) + b"]")
        path = self._folder / "data" / f"{number:05d}.js"
        path.write_text(f'owaParts({number},"{text}")\n')
        self._waiting.clear()
        self._size = 0

    def add_events(self, events: tuple[AnyEvent, ...]) -> int:
        """Take the events of an attempt and return their part's number.

        A digest becomes the number of the part with its text, or the name of a picture's file; what
        the run does not hold is left out.
        """
        rows = []
        for event in events:
            row = msgspec.json.decode(ENCODER.encode(event))
            if isinstance(event, EpisodeStart):  # a script's numbers have 53 bits
                row["instance"]["seed"] = str(event.instance.seed)
            elif isinstance(event, ControlBlock):
                row["actions"] = _commands_json(event)
            media = event.media if isinstance(event, Artifact | Evidence) else ""
            for name in _DIGESTS & row.keys():
                place = self._place(row.pop(name), media)
                if place is not None:
                    row[name] = place
            rows.append(row)
        return self.add(msgspec.json.encode(rows))

    def _place(self, digest: Any, media: str) -> int | str | None:
        """Return where the page finds a blob, None for what the run does not hold."""
        if not isinstance(digest, str):
            return None
        if digest not in self._places:
            self._places[digest] = self._stored(digest, media)
        return self._places[digest]

    def _stored(self, digest: str, media: str) -> int | str | None:
        try:
            data = self._transcripts.read(digest)
        except TraceError:
            return None
        if media in _PICTURES:
            name = f"pictures/{len(self._places):06d}.{_PICTURES[media]}"
            (self._folder / name).write_bytes(data)
            return name
        if media == _NUMBERS:
            return self.add(_array_json(data))
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = f"{len(data)} bytes that are no text"
        return self.add(json.dumps(text).encode())


def deflated(data: bytes) -> str:
    """Return bytes as the page's script reads them: raw deflate, then base64."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    return base64.b64encode(packer.compress(data) + packer.flush()).decode()


def _array_json(data: bytes) -> bytes:
    """Return a recorded array as JSON rows; null for what is no finite table."""
    try:
        rows = np.round(decode_array(data).astype(np.float64), _DECIMALS)
    except ValueError:
        return b"null"
    if rows.ndim != 2 or not np.isfinite(rows).all():
        return b"null"
    return msgspec.json.encode(rows.tolist())


def _commands_json(block: ControlBlock) -> list[list[float] | None] | None:
    """Return a block's commands, None for one that could not be read, or for the whole block."""
    try:
        commands = [*block_commands(block)]
    except UsageError:
        return None
    return [None if one is None else np.round(one, _DECIMALS).tolist() for one in commands]


# --- pages ----------------------------------------------------------------------------


INDEX = "index.html"
FOLDER = "view"  # of the site, in the run directory
_MARK = '<meta name="generator" content="owa-bench view">'
_ATTEMPT = re.compile(r"\b\d{6,}\.\d+\b")


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One attempt in the list; what is not known of an unfinished one is None.

    Success and quality (q_state) are as scored: 0 where the episode is disqualified. `cost` is the
    agent's own, `supervisor` that of the simulated help, both micro-USD. `kind` is the kind of its
    failure, `missed` the first subgoal that was missing, `left` the first step off the oracle's
    path (`reports/read/failures.py`).
    """

    attempt: str
    part: int
    state: str
    agent: str
    family: str
    tier: int | None
    delta: float | None
    day: int | None
    drift: str
    outcome: str
    success: bool | None
    quality: float | None
    steps: int
    cost: int | None
    supervisor: int | None
    broken: int
    kind: str = ""
    missed: str = ""
    left: int | None = None


class SiteFacts(NamedTuple):
    """A site that was written: its page, attempts, bytes, and those of the run."""

    page: Path
    attempts: int
    size: int
    run_size: int


def write_site(run_dir: Path, folder: Path, *, live: bool = False) -> SiteFacts:
    """Write the site of a run, in place of an earlier one.

    Args:
        run_dir: the run directory.
        folder: of the site.
        live: whether the list is to look for a newer one every few seconds.
    Returns: What was written.
    Raises:
        RunDirectoryError: there is no run.
        UsageError: the folder holds something else than a site.
    """
    bundle = read(run_dir)
    _refuse_other_content(folder)
    draft = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    parts = SiteParts(draft, Transcripts(bundle.layout))
    rows = list(_rows(bundle, parts))
    parts.flush()
    (draft / INDEX).write_text(_page(bundle, rows, parts.firsts, live=live))
    shutil.rmtree(folder, ignore_errors=True)
    draft.replace(folder)
    apart = bundle.layout.root / FOLDER
    sizes = [_size(folder), _size(bundle.layout.root, apart)]
    return SiteFacts(folder / INDEX, len(rows), *sizes)


def evidence_links(text: str) -> Markup:
    """Return a text, escaped, in which every attempt's name leads to its page."""
    parts: list[Markup] = []
    end = 0
    for match in _ATTEMPT.finditer(text):
        name = match.group()
        parts += (escape(text[end : match.start()]), _link(name))
        end = match.end()
    return Markup("").join([*parts, escape(text[end:])])


def _link(name: str) -> Markup:
    return Markup('<a href="{}/{}#{}">{}</a>').format(FOLDER, INDEX, name, name)


def _refuse_other_content(folder: Path) -> None:
    """Refuse to replace a folder that is no site."""
    page = folder / INDEX
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not page.is_file() or _MARK not in page.read_text("utf-8", "replace"):
        raise UsageError(
            f"{folder} must be a new folder or an earlier site, got something else: "
            "name another with --out."
        )


def _rows(bundle: Bundle, parts: SiteParts) -> Iterator[AttemptRow]:
    """Yield every attempt that has begun, in plan order; its events become a part."""
    counted = {leaf.attempt_id for leaf in bundle.counting_leaves if leaf is not None}
    for attempt in bundle.attempts():
        start = attempt.events[0] if attempt.events else None
        if not isinstance(start, events.EpisodeStart):
            continue
        state: str = attempt.leaf.status
        if state == "complete":
            state = "counts" if attempt.attempt_id in counted else "replaced"
        row = _row(attempt, start, bundle.prices)
        part = parts.add_events(attempt.events)
        yield msgspec.structs.replace(row, part=part, state=state)


def _row(attempt: RecordedAttempt, start: events.EpisodeStart, prices: PriceCard) -> AttemptRow:
    """Return an attempt's row, its part and state left open."""
    last = attempt.events[-1]
    end = last if isinstance(last, events.EpisodeEnd) else None
    breaches = [e for e in attempt.events if isinstance(e, events.Violation)]
    void = any(breach.severity == "disqualify" for breach in breaches)
    drift = {e.effective for e in attempt.events if isinstance(e, events.Drift)}
    costs = episode_cost(prices, attempt.events)
    seen = read_episode(Trace(attempt.leaf, attempt.events)) if end else None
    return AttemptRow(
        attempt=attempt.attempt_id,
        part=0,
        state="",
        agent=start.arm,
        family=f"{start.instance.suite}/{start.instance.family}",
        tier=start.instance.tier,
        delta=start.delta,
        day=start.day,
        drift="+".join(sorted(drift)),
        outcome=end.outcome if end else "",
        success=end.q_state >= start.theta and not void if end else None,
        quality=(0.0 if void else end.q_state) if end else None,
        steps=sum(_steps(event) for event in attempt.events),
        cost=costs["agent"],
        supervisor=costs["human"],
        broken=len(breaches),
        kind=seen.kind if seen else "",
        missed=seen.missed if seen and seen.kind else "",
        left=seen.left if seen else None,
    )


def _steps(event: AnyEvent) -> int:
    """Return how many steps an event is: a control block has many."""
    if isinstance(event, ControlBlock):
        return event.ticks
    return int(isinstance(event, events.Action))


def _page(bundle: Bundle, rows: list[AttemptRow], firsts: list[int], *, live: bool) -> str:
    """Return the page, which holds the list; its script reads the parts."""
    kinds = {kind: words.words for kind, words in KINDS.items()}
    data = {
        "columns": AttemptRow.__struct_fields__,
        "rows": rows,
        "firsts": firsts,
        "live": live,
        "kinds": kinds,
    }
    script = own_file("site.js")
    digest = hashlib.sha256(script.encode()).digest()
    return _template().render(
        mark=Markup(_MARK),  # noqa: S704 - our own
        plan=bundle.plan,
        counted=sum(row.state == "counts" for row in rows),
        attempts=len(rows),
        verdicts=_verdicts(bundle),
        script=script,
        script_hash=base64.b64encode(digest).decode(),
        site_css=own_file("site.css"),
        data=deflated(msgspec.json.encode(data)),
    )


def _verdicts(bundle: Bundle) -> list[dict[str, Any]]:
    """Return the verdicts of the run's report with their gates, none without one."""
    if not bundle.layout.report.exists():
        return []
    judgement = read_document(bundle.layout.report).get("judgement", {})
    verdicts: list[dict[str, Any]] = judgement.get("verdicts", [])
    return verdicts


@cache
def _template() -> Template:
    return page_template("site.html.j2", {"own_links": own_links})


def own_links(text: str) -> Markup:
    """Return a text, escaped, whose attempts' names lead to places of this page."""
    return Markup(str(evidence_links(text)).replace(f"{FOLDER}/{INDEX}#", "#"))  # noqa: S704


def _size(folder: Path, apart: Path | None = None) -> int:
    """Return the bytes of all files below a folder but those below another."""
    return sum(
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and not (apart and path.is_relative_to(apart))
    )

"""The signed report: an in-toto Statement v1 in a DSSE envelope, Ed25519.

Subjects are the evidence root, the replay root, the plan digest and every trace file; the predicate
is the whole report. `report.json` is the predicate's RFC 8785 bytes, `report.html` the page whose
digest the predicate holds.
"""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from owa_bench.canonical import canonical_json, file_digest, public_bytes, seal, sha256
from owa_bench.errors import CheckFailure, FieldError, RunDirectoryError
from owa_bench.records.layout import STATEMENT_TYPE, RunLayout
from owa_bench.records.people import read_norms, refuse_other_terms
from owa_bench.records.registry import read_registry
from owa_bench.records.score import Judgement
from owa_bench.reports.check import assurance
from owa_bench.reports.check.evidence_checks import check_evidence
from owa_bench.reports.composition import Report, compose
from owa_bench.reports.read.bundle import Bundle, read

IN_TOTO = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:owa-bench:report:1"


def write(run_dir: Path, key: Ed25519PrivateKey | None) -> Judgement:
    """Judge a run, write its three report files, and return the judgement.

    Args:
        run_dir: The run directory.
        key: As of `write_report`.
    Returns: The judgement.
    """
    return write_report(run_dir, key).judgement


def write_report(run_dir: Path, key: Ed25519PrivateKey | None) -> Report:
    """Judge a run, write its three report files, and return the report.

    Each file is written completely or not at all, the signed statement last.

    Args:
        run_dir: the run directory.
        key: the plan's signing key; None writes an unsigned draft (V0), allowed of a run that is
            not complete.
    Returns: The report.
    Raises:
        RunDirectoryError: there is no run or, with a key, it is not complete.
        CheckFailure: its evidence does not hold.
        FieldError: the key is not the plan's.
    """
    bundle = read(run_dir)
    checks = check_evidence(bundle)
    if key is not None:
        _require_signable(bundle, key)
        # Attempts that do not read fail `verify` for good; the others are judged.
        spared = {"frames"} if bundle.unreadable else set()
        failed = [check for check in checks if not check.ok]
        broken = [f"{c.name} ({c.detail})" for c in failed if c.name not in spared]
        if broken:
            raise CheckFailure(
                f"The evidence must hold before it is signed: {'; '.join(broken)}. If "
                "a crash left it so, `owa-bench run --resume --out DIR` mends it."
            )
    registry = bundle.registry
    assessment = assurance.assess(bundle, checks, signed=key is not None, registry=registry)
    report = compose(bundle, assessment)
    from owa_bench.reports.page.render_html import render_page  # brings matplotlib

    html = render_page(bundle, report)
    report = msgspec.structs.replace(report, page=sha256(html))
    publish(bundle.layout, report, html, key)
    return report


def add_norms(run_dir: Path, path: Path) -> None:
    """Copy a norms file into a run directory, where the report reads it.

    Args:
        run_dir: the run directory.
        path: the norms file.
    Raises: UsageError: it is none, or persons played under other terms.
    """
    bundle, envelope = read(run_dir), path.read_bytes()
    refuse_other_terms(read_norms(envelope, path.name), bundle.plan)
    write_atomically(bundle.layout.norms, envelope)


def add_registry(run_dir: Path, path: Path) -> None:
    """Copy a registry of verifiers into a run directory, where the report reads it.

    Args:
        run_dir: the run directory.
        path: the registry, a TOML file.
    Raises: FieldError: it is none.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FieldError("--registry", str(path), f"must be a file ({error})") from error
    read_registry(data, path.name)
    write_atomically(read(run_dir).layout.registry, data)


def publish(layout: RunLayout, report: Report, html: bytes, key: Ed25519PrivateKey | None) -> None:
    """Write page, figures and signed statement of a report, each in one step.

    Args:
        layout: paths of the run directory.
        report: the report with the digest of its page.
        html: the page.
        key: the signing key; None leaves the statement unsigned.
    """
    payload = canonical_json(statement(layout, report))
    write_atomically(layout.page, html)
    write_atomically(layout.report, canonical_json(report) + b"\n")
    write_atomically(layout.report_envelope, seal(STATEMENT_TYPE, payload, key))


def statement(layout: RunLayout, report: Report) -> dict[str, Any]:
    """Return the statement that is signed, as plain data.

    Args:
        layout: paths of the run directory.
        report: the report, which becomes the predicate.
    Returns: An in-toto statement.
    """
    judgement = report.judgement
    subjects = {
        "evidence root": judgement.evidence_root,
        "replay root": judgement.replay_root,
        "plan": judgement.plan_digest,
        **trace_digests(layout),
        **input_digests(layout),
    }
    return {
        "_type": IN_TOTO,
        "subject": [
            {"name": name, "digest": {"sha256": digest}} for name, digest in subjects.items()
        ],
        "predicateType": PREDICATE,
        "predicate": json.loads(canonical_json(report)),
    }


def trace_digests(layout: RunLayout) -> dict[str, str]:
    """Return the SHA-256 of every shard by its name in the statement."""
    return {
        f"trace/{path.name}": file_digest(path)
        for path in sorted(layout.shards.glob("*.jsonl.zst"))
        if path.is_file()
    }


def input_digests(layout: RunLayout) -> dict[str, str]:
    """Return the SHA-256 of what the report read beside the events, by file name."""
    return {
        path.relative_to(layout.root).as_posix(): sha256(path.read_bytes())
        for path in (*(layout.registry, layout.norms), *sorted(layout.ratings.glob("*.dsse.json")))
        if path.is_file()
    }


def _require_signable(bundle: Bundle, key: Ed25519PrivateKey) -> None:
    """Raise if this key may not sign a report of this run."""
    public = public_bytes(key.public_key()).hex()
    if public != bundle.plan.public_key:
        planned = bundle.plan.public_key or "(the plan has none)"
        raise FieldError("key", public, f"must be the plan's key {planned}")
    if bundle.missing:
        verb = "place" if bundle.plan.placement else "run"
        raise RunDirectoryError(
            f"{bundle.layout.root} is half played: {len(bundle.missing)} of "
            f"{len(bundle.due)} planned episodes were never tried. "
            f"`owa-bench {verb} --resume --out {bundle.layout.root}` plays them; "
            f"`owa-bench report --unsigned {bundle.layout.root}` writes a draft."
        )


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file through a temporary one, so that it is never half written.

    Args:
        path: the file.
        data: its bytes.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            part.unlink()

"""The signed report: an in-toto Statement v1 in a DSSE envelope, Ed25519.

Subjects are the evidence root, the replay root, the plan digest and every trace file;
the predicate is the whole report. `report.json` is the predicate's RFC 8785 bytes,
`report.html` the page whose digest the predicate holds.
"""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from owa_bench.canonical import canonical_json, public_bytes, seal, sha256
from owa_bench.errors import CheckFailure, FieldError, RunDirectoryError
from owa_bench.records.layout import STATEMENT_TYPE, RunLayout
from owa_bench.records.score import Judgement
from owa_bench.report import assurance, composition, evidence
from owa_bench.report.bundle import Bundle, read
from owa_bench.report.contents import Report

IN_TOTO = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:owa-bench:report:1"


def write(run_dir: Path, key: Ed25519PrivateKey | None) -> Judgement:
    """Judge a run, write its three report files, and return the judgement.

    Without a key the report is an unsigned draft (V0), allowed of a run that is not
    whole. Each file appears whole or not at all, the signed statement last.

    Errors: RunDirectoryError if there is no run or, with a key, it is not whole;
    CheckFailure if its evidence does not hold; FieldError for a key that is not the
    plan's.
    """
    bundle = read(run_dir)
    checks = evidence.checks(bundle)
    if key is not None:
        _refuse(bundle, key)
        broken = [f"{c.name} ({c.detail})" for c in checks if not c.ok]
        if broken:
            raise CheckFailure(
                f"The evidence must hold before it is signed: {'; '.join(broken)}. If "
                "a crash left it so, `owa-bench run --resume --out DIR` mends it."
            )
    ladder = assurance.assess(bundle, checks, signed=key is not None)
    report = composition.compose(bundle, ladder)
    html = composition.page(bundle, report)
    publish(
        bundle.layout, msgspec.structs.replace(report, page=sha256(html)), html, key
    )
    return report.judgement


def publish(
    layout: RunLayout, report: Report, html: bytes, key: Ed25519PrivateKey | None
) -> None:
    """Write page, figures and signed statement of a report, whole or not at all."""
    payload = canonical_json(statement(layout, report))
    _whole(layout.page, html)
    _whole(layout.report, canonical_json(report) + b"\n")
    _whole(layout.report_envelope, seal(STATEMENT_TYPE, payload, key))


def statement(layout: RunLayout, report: Report) -> dict[str, Any]:
    """Return the statement that is signed, as plain data."""
    judgement = report.judgement
    return {
        "_type": IN_TOTO,
        "subject": [
            _subject("evidence root", judgement.evidence_root),
            _subject("replay root", judgement.replay_root),
            _subject("plan", judgement.plan_digest),
            *(_subject(name, digest) for name, digest in trace_digests(layout).items()),
        ],
        "predicateType": PREDICATE,
        "predicate": json.loads(canonical_json(report)),
    }


def trace_digests(layout: RunLayout) -> dict[str, str]:
    """Return the SHA-256 of every shard by its name in the statement."""
    return {
        f"trace/{path.name}": sha256(path.read_bytes())
        for path in sorted(layout.shards.glob("*.jsonl.zst"))
        if path.is_file()
    }


def _subject(name: str, digest: str) -> dict[str, Any]:
    """Return one subject of the statement."""
    return {"name": name, "digest": {"sha256": digest}}


def _refuse(bundle: Bundle, key: Ed25519PrivateKey) -> None:
    """Raise if this key may not sign a report of this run."""
    if public_bytes(key.public_key()).hex() != bundle.plan.public_key:
        raise FieldError(
            "key",
            public_bytes(key.public_key()).hex(),
            f"must be the plan's key {bundle.plan.public_key or '(the plan has none)'}",
        )
    if bundle.missing:
        raise RunDirectoryError(
            f"{bundle.layout.root} is half played: {len(bundle.missing)} of "
            f"{len(bundle.plan.entries)} planned episodes were never tried. Go on with "
            "`owa-bench run --resume`, or write an unsigned draft."
        )


def _whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
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

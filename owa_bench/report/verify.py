"""Does a run directory hold together, and do its figures follow from its events?

`verify` checks the evidence, then the signed report over it. `recompute` judges again
and compares every figure. Neither needs the acting half; replaying is `run.replay`.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from owa_bench.canonical import canonical_json, key_id, peek, sha256, unseal
from owa_bench.errors import CheckFailure, OwaError, RunDirectoryError, TraceError
from owa_bench.records.layout import STATEMENT_TYPE
from owa_bench.records.price_card import episode_cost
from owa_bench.report import assurance, composition, evidence
from owa_bench.report.bundle import Bundle, read
from owa_bench.report.check import Check, settled, skipped
from owa_bench.report.contents import Assurance, Report
from owa_bench.report.statement import trace_digests

_NO_REPORT = "there is no report yet"
_WITNESSED = 3  # the first rung that needs somebody else


class Signed(NamedTuple):
    """What the envelope of a report holds, whoever signed it."""

    subjects: Mapping[str, str]
    predicate: Mapping[str, Any]
    report: Report


def verify(
    run_dir: Path, public: bytes | None = None, verifier: bytes | None = None
) -> tuple[Check, ...]:
    """Return every check of a run directory, in order.

    `public` is the key the reader trusts; None takes the one the plan names.
    `verifier` is the key of a party that executed the run itself.

    Errors: RunDirectoryError if `run_dir` is no run, or a file cannot be read at all.
    """
    bundle = read(run_dir)
    checks = evidence.checks(bundle, public)
    return (*checks, *_report_checks(bundle, checks, public, verifier))


def recompute(run_dir: Path) -> tuple[Check, ...]:
    """Return whether judging the events again gives the signed figures exactly.

    Errors: RunDirectoryError if `run_dir` is no run, or holds no report.
    """
    bundle = read(run_dir)
    signed = opened(bundle)
    if signed is None:
        raise RunDirectoryError(
            f"{run_dir} holds no report; make one with `owa-bench report {run_dir}`."
        )
    ladder = signed.report.assurance
    now = assurance.assess(bundle, evidence.checks(bundle), signed=ladder.level > 1)
    try:
        report = composition.compose(bundle, ladder)
    except OwaError as error:
        return (Check("recompute", False, f"the events cannot be judged: {error}"),)
    return (
        _figures(signed, report),
        _assurance_claim(ladder, now),
        _page_again(bundle, signed, report),
    )


def opened(bundle: Bundle) -> Signed | None:
    """Return the report in a run directory without checking who signed it.

    Errors: RunDirectoryError if there is one that does not read.
    """
    path = bundle.layout.report_envelope
    if not path.exists():
        return None
    try:
        statement = json.loads(peek(path.read_bytes()))
        subjects = {s["name"]: s["digest"]["sha256"] for s in statement["subject"]}
        predicate = statement["predicate"]
        report = msgspec.convert(predicate, Report)
    except (ValueError, KeyError, TypeError, RecursionError, CheckFailure) as error:
        raise RunDirectoryError(
            f"{path} must be a signed report (owa-report-1), got: {error}."
        ) from error
    return Signed(subjects, predicate, report)


def _report_checks(
    bundle: Bundle,
    checks: tuple[Check, ...],
    public: bytes | None,
    verifier: bytes | None,
) -> Iterator[Check]:
    """Yield the checks of the report over evidence that was checked already."""
    signed = opened(bundle)
    names = ("signed cost", "signature", "root", "replay root", "trace files", "page")
    if signed is None:
        yield from (skipped(name, _NO_REPORT) for name in names)
    else:
        yield _cost(bundle, signed)
        yield _signature(bundle, signed, public)
        yield _root(bundle, signed, "root", "evidence_root")
        yield _root(bundle, signed, "replay root", "replay_root")
        yield _trace_files(bundle, signed)
        yield _page(bundle, signed)
    yield _witness(bundle)
    good = signed is not None and signed.report.assurance.level > 1
    ladder = assurance.assess(bundle, checks, signed=good, verifier=verifier)
    if signed is None:
        yield Check("assurance", True, f"{ladder.name} now; {_NO_REPORT}")
    else:
        yield _assurance_claim(signed.report.assurance, ladder)


def _cost(bundle: Bundle, signed: Signed) -> Check:
    """Return whether each agent's signed cost follows from its events."""
    faults = []
    try:
        costs = _costs(bundle)
    except OwaError as error:
        return Check("signed cost", False, f"the events cannot be priced: {error}")
    for verdict in signed.report.judgement.verdicts:
        for stream, amount in verdict.cost_micro_usd.items():
            got = costs.get(verdict.arm, {}).get(stream, 0)
            if got != amount:
                faults.append(
                    f"{verdict.arm}, {stream} stream: signed {amount} micro-USD, "
                    f"its events cost {got}"
                )
    return settled("signed cost", faults, "every agent's cost follows from its events")


def _costs(bundle: Bundle) -> dict[str, dict[str, int | None]]:
    """Return micro-USD by arm and stream over the counted attempts."""
    costs: dict[str, dict[str, int | None]] = {}
    for trace in bundle.traces():
        arm = costs.setdefault(trace.start.arm, {})
        for stream, cost in episode_cost(bundle.prices, trace.events).items():
            before = arm.get(stream, 0)
            arm[stream] = None if cost is None or before is None else before + cost
    return costs


def _signature(bundle: Bundle, signed: Signed, public: bytes | None) -> Check:
    """Return whether the statement is signed, and report.json is what it says."""
    key = bytes.fromhex(bundle.plan.public_key) if public is None else public
    claimed = signed.report.assurance.name
    if signed.report.assurance.level <= 1 and not _marked(bundle):
        return skipped("signature", f"an unsigned draft ({claimed})")
    try:
        unseal(bundle.layout.report_envelope.read_bytes(), key, STATEMENT_TYPE)
    except (CheckFailure, ValueError) as error:
        return Check("signature", False, str(error))
    faults = []
    plain = bundle.layout.report
    if not plain.exists():
        faults.append("report.json is missing")
    elif plain.read_bytes() != canonical_json(signed.predicate) + b"\n":
        faults.append("report.json is not what was signed")
    if signed.report.judgement.plan_digest != bundle.plan_digest:
        faults.append("the report is of another plan")
    return settled("signature", faults, f"by key {key_id(key)}")


def _marked(bundle: Bundle) -> bool:
    """Return whether the envelope carries any signature."""
    document = json.loads(bundle.layout.report_envelope.read_bytes())
    return bool(document.get("signatures"))


def _root(bundle: Bundle, signed: Signed, name: str, field: str) -> Check:
    """Return whether a root computed from the shards is the signed one."""
    try:
        got = getattr(bundle, field)
    except TraceError as error:
        return Check(name, False, f"there is no such root: {error}")
    faults = [
        f"{where} says {said[:16]}, the shards give {got[:16]}"
        for where, said in (
            ("the statement", signed.subjects.get(field.replace("_", " "), "nothing")),
            ("the report", getattr(signed.report.judgement, field)),
        )
        if said != got
    ]
    return settled(name, faults, got)


def _trace_files(bundle: Bundle, signed: Signed) -> Check:
    """Return whether the shards are, byte for byte, those that were signed."""
    there = trace_digests(bundle.layout)
    named = {n: d for n, d in signed.subjects.items() if n.startswith("trace/")}
    faults = [f"{n} is missing" for n in sorted(named.keys() - there.keys())]
    faults += [f"{n} is not in the report" for n in sorted(there.keys() - named.keys())]
    faults += [
        f"{n} is not as it was signed"
        for n in sorted(there.keys() & named.keys())
        if there[n] != named[n]
    ]
    return settled("trace files", faults, f"{len(there)} shards as signed")


def _page(bundle: Bundle, signed: Signed) -> Check:
    """Return whether the HTML page is the one whose digest was signed."""
    path = bundle.layout.page
    if not path.exists():
        return Check("page", False, "report.html is missing")
    same = sha256(path.read_bytes()) == signed.report.page
    return settled(
        "page", [] if same else ["report.html is not as it was signed"], path.name
    )


def _witness(bundle: Bundle) -> Check:
    """Return whether every witness and receipt in the folder holds."""
    found = (*assurance.witnesses(bundle), *assurance.receipts(bundle))
    if not found:
        return skipped("witness", "nobody witnessed the plan: it could be rewritten")
    good = "; ".join(
        f"{one.text}: {one.short}" if one.short else one.text for one in found
    )
    return settled("witness", [f"{o.file} {o.fault}" for o in found if o.fault], good)


def _assurance_claim(claimed: Assurance, now: Assurance) -> Check:
    """Return whether witnesses and receipts support the level the report prints.

    The rungs below V3 have checks of their own.
    """
    faults = [
        f"the report says {claimed.name}, but {rung.name} ({rung.text}) is not met: "
        f"{rung.evidence}"
        for rung in now.rungs[_WITNESSED : claimed.level + 1]
        if not rung.met
    ]
    return settled("assurance", faults, f"{now.name} now, {claimed.name} when signed")


def _figures(signed: Signed, report: Report) -> Check:
    """Return whether every figure judged again equals the signed one."""
    report = msgspec.structs.replace(report, page=signed.report.page)
    again = json.loads(canonical_json(report))
    then = dict(signed.predicate)
    for name in ("version", "renderer"):
        again[name] = then.get(name)
    where = first_difference(then, again)
    if where is None:
        return Check("recompute", True, "every figure equals the signed one exactly")
    return Check("recompute", False, where)


def first_difference(signed: Any, again: Any, path: str = "") -> str | None:
    """Return where two documents first differ and how, None if they are equal."""
    if isinstance(signed, dict) and isinstance(again, dict):
        keys = sorted(signed.keys() | again.keys())
        pairs = [(str(k), signed.get(k), again.get(k)) for k in keys]
    elif isinstance(signed, list) and isinstance(again, list):
        if len(signed) != len(again):
            return f"{path}: {len(signed)} entries signed, {len(again)} recomputed"
        pairs = [
            (_label(a, i), a, b)
            for i, (a, b) in enumerate(zip(signed, again, strict=True))
        ]
    else:
        same = signed == again and isinstance(signed, bool) == isinstance(again, bool)
        return None if same else f"{path}: signed {signed!r}, recomputed {again!r}"
    for key, one, other in pairs:
        found = first_difference(one, other, f"{path}.{key}" if path else key)
        if found is not None:
            return found
    return None


def _label(entry: Any, place: int) -> str:
    """Return what an entry of a list is called: its own name, or its place."""
    if isinstance(entry, dict):
        for key in ("arm", "symbol", "gate", "name", "title"):
            if isinstance(entry.get(key), str):
                return str(entry[key])
    return str(place)


def _page_again(bundle: Bundle, signed: Signed, report: Report) -> Check:
    """Return whether drawing the page again gives the same bytes."""
    then = signed.report
    if (then.version, then.renderer) != (report.version, report.renderer):
        here = f"OWA-Bench {report.version}, matplotlib {report.renderer}"
        made = f"OWA-Bench {then.version}, matplotlib {then.renderer}"
        return skipped("page", f"made by {made}, here are {here}")
    same = (
        bundle.layout.page.exists()
        and bundle.layout.page.read_bytes() == composition.page(bundle, report)
    )
    faults = [] if same else ["report.html is not the page these figures make"]
    return settled("page", faults, "drawn again, equal byte for byte")

"""Verification of a run directory and recomputation of its signed figures.

`verify` checks the evidence, then the signed report over it. `recompute` judges again and compares
every figure. Neither needs the acting half; replaying is `run.replay`.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from owa_bench.canonical import canonical_json, has_signature, key_id, peek, sha256, unseal
from owa_bench.errors import CheckFailure, OwaError, RunDirectoryError, TraceError
from owa_bench.records.bounds import decode_document
from owa_bench.records.layout import STATEMENT_TYPE, RunLayout
from owa_bench.records.packs import read_pruned
from owa_bench.records.people import unattended
from owa_bench.records.price_card import episode_cost, usd_of
from owa_bench.records.registry import Registry
from owa_bench.reports.check import assurance
from owa_bench.reports.check.assurance import Assurance
from owa_bench.reports.check.evidence_checks import check_evidence
from owa_bench.reports.check.integrity_checks import CheckResult, check_result, skipped_check
from owa_bench.reports.check.placement import check_dates, check_stopping
from owa_bench.reports.composition import Report, compose
from owa_bench.reports.read.bundle import Bundle, read
from owa_bench.reports.statement import input_digests, trace_digests

_NO_REPORT = "there is no report yet"
_OWN_KEY = (
    "which the run names itself: nothing was changed since it was signed, by whom is not shown "
    "(--public-key KEY, from the signer by another way than the run)"
)
_ATTESTED = 3  # the first assurance level that needs another party


class SignedReport(NamedTuple):
    """The content of a report's envelope, whoever signed it."""

    subjects: Mapping[str, str]
    predicate: Mapping[str, Any]
    report: Report


def verify(
    run_dir: Path,
    public: bytes | None = None,
    verifier: bytes | None = None,
    registry: Registry | None = None,
) -> tuple[CheckResult, ...]:
    """Return every check of a run directory, in order.

    Args:
        run_dir: the run directory.
        public: the public key that the reader trusts; None takes the one that the plan names.
        verifier: the public key of a party that executed the run itself.
        registry: whose witnesses and replays the reader counts; None: nobody's.
    Returns: The checks of the evidence, then those of the report.
    Raises:
        RunDirectoryError: `run_dir` is no run.
        CheckFailure: it is one, and a file that every run has does not read.
    """
    try:
        return tuple(_checks(read(run_dir), public, verifier, registry))
    except RunDirectoryError as error:
        if RunLayout(run_dir).plan.exists():
            raise CheckFailure(str(error)) from error
        raise


def _checks(
    bundle: Bundle, public: bytes | None, verifier: bytes | None, registry: Registry | None
) -> Iterator[CheckResult]:
    """Yield every check of a run directory, in order."""
    checks = check_evidence(bundle, public)
    yield from checks
    if bundle.plan.placement is not None:
        yield check_stopping(
            bundle, bytes.fromhex(bundle.plan.public_key) if public is None else public
        )
        yield check_dates(bundle, registry)
    yield from _report_checks(bundle, checks, public, verifier, registry)


def recompute(run_dir: Path) -> tuple[CheckResult, ...]:
    """Return whether judging the events again gives the signed figures exactly.

    Raises: RunDirectoryError: `run_dir` is no run, or holds no report.
    """
    bundle = read(run_dir)
    signed = read_signed_report(bundle)
    if signed is None:
        raise RunDirectoryError(
            f"{run_dir} holds no report; make one with `owa-bench report {run_dir}`."
        )
    claimed = signed.report.assurance
    now = assurance.assess(
        bundle, check_evidence(bundle), signed=claimed.level > 1, registry=bundle.registry
    )
    try:
        report = compose(bundle, claimed)
    except OwaError as error:
        reason = f"the events cannot be judged: {error}"
        return (CheckResult("recompute", False, reason),)
    return (
        *((check_stopping(bundle), check_dates(bundle)) if bundle.plan.placement else ()),
        _figures(signed, report),
        _assurance_claim(claimed, now),
        _redrawn_page(bundle, signed, report),
    )


def read_signed_report(bundle: Bundle) -> SignedReport | None:
    """Return the report in a run directory without checking who signed it.

    Raises: RunDirectoryError: there is a report, and it does not read.
    """
    path = bundle.layout.report_envelope
    if not path.exists():
        return None
    try:
        statement = decode_document(peek(path.read_bytes()))
        subjects = {s["name"]: s["digest"]["sha256"] for s in statement["subject"]}
        predicate = statement["predicate"]
        report = msgspec.convert(predicate, Report)
    except (ValueError, KeyError, TypeError, RecursionError, CheckFailure) as error:
        raise RunDirectoryError(
            f"{path} must be a signed report (owa-report-1), got: "
            f"{str(error).rstrip('.')}. `owa-bench report {bundle.layout.root}` makes "
            "it anew."
        ) from error
    return SignedReport(subjects, predicate, report)


def _report_checks(
    bundle: Bundle,
    checks: tuple[CheckResult, ...],
    public: bytes | None,
    verifier: bytes | None,
    registry: Registry | None,
) -> Iterator[CheckResult]:
    """Yield the checks of the report over evidence that was checked already."""
    signed = read_signed_report(bundle)
    names = ("signed cost", "signature", "root", "replay root", "trace files", "page")
    if signed is None:
        yield from (skipped_check(name, _NO_REPORT) for name in names)
    else:
        yield _cost(bundle, signed)
        yield _signature(bundle, signed, public)
        yield _root(bundle, signed, "root", "evidence_root")
        yield _root(bundle, signed, "replay root", "replay_root")
        yield _trace_files(bundle, signed)
        yield from _inputs(bundle, signed)
        yield _page(bundle, signed)
    yield _witness(bundle, registry)
    yield from _attendance(bundle, registry)
    claimed = None if signed is None else signed.report.assurance
    is_signed = claimed is not None and claimed.level > 1
    now = assurance.assess(bundle, checks, signed=is_signed, verifier=verifier, registry=registry)
    if claimed is None:
        yield CheckResult("assurance", True, f"{now.name} now; {_NO_REPORT}")
    elif registry is None and bundle.registry is not None:
        # Nobody's word is taken; whether the run's own registry bears the claim is.
        theirs = assurance.assess(bundle, checks, signed=is_signed, registry=bundle.registry)
        held = _assurance_claim(claimed, theirs)
        words = f"{now.name} now; {claimed.name} when signed, by a registry that the "
        words += "run names: --registry names your own"
        yield held if not held.ok else held._replace(detail=words)
    else:
        yield _assurance_claim(claimed, now)
    words = assurance.open_words(bundle, now, registry)
    yield CheckResult("left open", True, words, skipped=True)


def _cost(bundle: Bundle, signed: SignedReport) -> CheckResult:
    """Return whether each agent's signed cost follows from its events."""
    try:
        costs = _costs(bundle)
    except OwaError as error:
        reason = f"the events cannot be priced: {error}"
        return CheckResult("signed cost", False, reason)
    faults = [
        f"{verdict.arm}, {stream} stream: signed {_usd(amount)}, "
        f"its events cost {_usd(costs.get(verdict.arm, {}).get(stream, 0))}"
        for verdict in signed.report.judgement.verdicts
        for stream, amount in verdict.cost_micro_usd.items()
        if costs.get(verdict.arm, {}).get(stream, 0) != amount
    ]
    return check_result("signed cost", faults, "every agent's cost follows from its events")


def _usd(micro: int | None) -> str:
    usd = usd_of(micro)
    return "unknown" if usd is None else f"{usd:.6f} USD"


def _costs(bundle: Bundle) -> dict[str, dict[str, int | None]]:
    """Return micro-USD by arm and stream over the counted attempts."""
    costs: dict[str, dict[str, int | None]] = {}
    for trace in bundle.traces():
        arm = costs.setdefault(trace.start.arm, {})
        for stream, cost in episode_cost(bundle.prices, trace.events).items():
            before = arm.get(stream, 0)
            arm[stream] = None if cost is None or before is None else before + cost
    return costs


def _signature(bundle: Bundle, signed: SignedReport, public: bytes | None) -> CheckResult:
    """Return whether the statement is signed, and report.json is what it says."""
    key = bytes.fromhex(bundle.plan.public_key) if public is None else public
    claimed = signed.report.assurance.name
    envelope = bundle.layout.report_envelope.read_bytes()
    if signed.report.assurance.level <= 1 and not has_signature(envelope):
        return skipped_check("signature", f"an unsigned draft ({claimed})")
    try:
        unseal(envelope, key, STATEMENT_TYPE)
    except (CheckFailure, ValueError) as error:
        return CheckResult("signature", False, str(error))
    faults = []
    plain = bundle.layout.report
    if not plain.exists():
        faults.append("report.json is missing")
    elif plain.read_bytes() != canonical_json(signed.predicate) + b"\n":
        faults.append("report.json is not what was signed")
    if signed.report.judgement.plan_digest != bundle.plan_digest:
        faults.append("the report is of another plan")
    if peek(envelope) != canonical_json(decode_document(peek(envelope))):
        faults.append("the statement is not in canonical form: programs may read it in two ways")
    whose = "the key that you gave" if public is not None else _OWN_KEY
    return check_result("signature", faults, f"by key {key_id(key)}, {whose}")


def _root(bundle: Bundle, signed: SignedReport, name: str, field: str) -> CheckResult:
    """Return whether a root computed from the shards is the signed one."""
    try:
        got = getattr(bundle, field)
    except TraceError as error:
        return CheckResult(name, False, f"there is no such root: {error}")
    faults = [
        f"{where} says {claimed[:16]}, the shards give {got[:16]}"
        for where, claimed in (
            ("the statement", signed.subjects.get(field.replace("_", " "), "nothing")),
            ("the report", getattr(signed.report.judgement, field)),
        )
        if claimed != got
    ]
    return check_result(name, faults, got)


def _trace_files(bundle: Bundle, signed: SignedReport) -> CheckResult:
    """Return whether the shards are, byte for byte, those that were signed."""
    digests = trace_digests(bundle.layout)
    named = {n: d for n, d in signed.subjects.items() if n.startswith("trace/")}
    both = sorted(digests.keys() & named.keys())
    faults = [f"{n} is missing" for n in sorted(named.keys() - digests.keys())]
    faults += [f"{n} is not in the report" for n in sorted(digests.keys() - named.keys())]
    faults += [f"{n} is not as it was signed" for n in both if digests[n] != named[n]]
    return check_result("trace files", faults, f"{len(digests)} shards as signed")


def _inputs(bundle: Bundle, signed: SignedReport) -> Iterator[CheckResult]:
    """Yield whether registry, norms and ratings are as signed; nothing without."""
    digests = input_digests(bundle.layout)
    names = {
        name
        for name in signed.subjects
        if name.endswith(".dsse.json") or name == bundle.layout.registry.name
    }
    faults = []
    for name in sorted(names | set(digests)):
        if name not in digests:
            faults.append(f"{name} is missing")
        elif name not in names:
            faults.append(f"{name} is not in the report")
        elif digests[name] != signed.subjects[name]:
            faults.append(f"{name} is not as it was signed")
    if names or digests:
        yield check_result("inputs", faults, f"{', '.join(sorted(digests))} as signed")


def _page(bundle: Bundle, signed: SignedReport) -> CheckResult:
    """Return whether the HTML page is the one whose digest was signed."""
    path = bundle.layout.page
    if not path.exists():
        return CheckResult("page", False, "report.html is missing")
    same = sha256(path.read_bytes()) == signed.report.page
    faults = [] if same else ["report.html is not as it was signed"]
    return check_result("page", faults, path.name)


def _witness(bundle: Bundle, registry: Registry | None) -> CheckResult:
    """Return whether every witness and receipt of the run holds."""
    attestations = (*assurance.witnesses(bundle, registry), *assurance.receipts(bundle, registry))
    if not attestations:
        return skipped_check("witness", "nobody witnessed the plan: it could be rewritten")
    texts = [": ".join(filter(None, (one.text, one.shortfall))) for one in attestations]
    faults = [f"{one.file} {one.fault}" for one in attestations if one.fault]
    if not faults and all(one.shortfall for one in attestations):
        return CheckResult("witness", True, f"lifts nothing: {'; '.join(texts)}", skipped=True)
    return check_result("witness", faults, "; ".join(texts))


def _attendance(bundle: Bundle, registry: Registry | None) -> Iterator[CheckResult]:
    """Yield whether norms that enter gates were watched; nothing without norms."""
    if bundle.norms is None:
        return
    if bundle.unattended:
        words = f"unattended ({', '.join(bundle.unattended)}): they enter no gate"
        yield CheckResult("norms", True, words, skipped=True)
    elif registry is None:
        words = "watched, by a registry that the run names: --registry names your own"
        yield CheckResult("norms", True, words)
    else:
        alone = unattended(bundle.norms, registry)
        faults = [
            f"gates read norms, and nobody that {registry.name!r} names watched {who}"
            for who in alone
        ]
        yield check_result("norms", faults, f"watched, by {registry.name!r}")


def _assurance_claim(claimed: Assurance, now: Assurance) -> CheckResult:
    """Return whether witnesses and receipts support the level the report prints.

    The levels below V3 have checks of their own.
    """
    faults = [
        f"the report says {claimed.name}, but {level.name} ({level.text}) is not met: "
        f"{level.evidence}"
        for level in now.rungs[_ATTESTED : claimed.level + 1]
        if not level.met
    ]
    return check_result("assurance", faults, f"{now.name} now, {claimed.name} when signed")


def _figures(signed: SignedReport, report: Report) -> CheckResult:
    """Return whether every figure judged again equals the signed one."""
    report = msgspec.structs.replace(report, page=signed.report.page)
    again = json.loads(canonical_json(report))
    then = dict(signed.predicate)
    for name in ("version", "renderer"):
        again[name] = then.get(name)
    where = first_difference(then, again)
    if where is None:
        return CheckResult("recompute", True, "every figure equals the signed one exactly")
    return CheckResult("recompute", False, where)


def first_difference(signed: Any, again: Any, path: str = "") -> str | None:
    """Return where two JSON documents first differ and how.

    Args:
        signed: the signed document.
        again: the recomputed one.
        path: place of both in the documents that were compared first.
    Returns: The place and both values, None if they are equal.
    """
    if isinstance(signed, dict) and isinstance(again, dict):
        keys = sorted(signed.keys() | again.keys())
        pairs = [(str(k), signed.get(k), again.get(k)) for k in keys]
    elif isinstance(signed, list) and isinstance(again, list):
        if len(signed) != len(again):
            return f"{path}: {len(signed)} entries signed, {len(again)} recomputed"
        pairs = [(_label(a, i), a, b) for i, (a, b) in enumerate(zip(signed, again, strict=True))]
    else:
        same = signed == again and isinstance(signed, bool) == isinstance(again, bool)
        return None if same else f"{path}: signed {signed!r}, recomputed {again!r}"
    for key, one, other in pairs:
        difference = first_difference(one, other, f"{path}.{key}" if path else key)
        if difference is not None:
            return difference
    return None


def _label(entry: Any, place: int) -> str:
    """Return the name of a list entry: its own, or its place."""
    if isinstance(entry, dict):
        for key in ("arm", "symbol", "gate", "name", "title"):
            if isinstance(entry.get(key), str):
                return str(entry[key])
    return str(place)


def _redrawn_page(bundle: Bundle, signed: SignedReport, report: Report) -> CheckResult:
    """Return whether drawing the page again gives the same bytes."""
    then = signed.report
    if (then.version, then.renderer) != (report.version, report.renderer):
        here = f"OWA-Bench {report.version}, matplotlib {report.renderer}"
        origin = f"OWA-Bench {then.version}, matplotlib {then.renderer}"
        return skipped_check("page", f"made by {origin}, here are {here}")
    if report.failures.pictures and read_pruned(bundle.layout):
        return skipped_check("page", "its pictures were pruned with the transcripts")
    from owa_bench.reports.page.render_html import render_page  # brings matplotlib

    path = bundle.layout.page
    same = path.exists() and path.read_bytes() == render_page(bundle, report)
    faults = [] if same else ["report.html is not the page these figures make"]
    return check_result("page", faults, "drawn again, equal byte for byte")

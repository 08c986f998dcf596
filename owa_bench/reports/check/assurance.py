"""Assurance levels of a run, from the evidence in its directory.

    V0  unsigned draft
    V1  chain and root consistent
    V2  signed, figures recomputed from the events
    V3  plan witnessed before episode 0
    V4  replay passed by a second party
    V5  executed by the verifier, with the verifier's seeds

V3 and V4 count who is named in a registry of verifiers (`records.registry`): anybody can make a
second key. Agents that could see the harness hold a run at V2, those of another machine at V4.

Source: `docs/traces.md#assurance`.
"""

import base64
import contextlib
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import msgspec

from owa_bench.canonical import key_id, peek, unseal
from owa_bench.errors import CheckFailure, TraceError
from owa_bench.records import witness
from owa_bench.records.layout import RECEIPT_TYPE
from owa_bench.records.plan import WEAK_HOSTINGS, Plan
from owa_bench.records.registry import Registry
from owa_bench.records.trace import FAILED
from owa_bench.records.witness import Receipt, Witness
from owa_bench.reports.check.integrity_checks import CheckResult
from owa_bench.reports.read.bundle import Bundle

_ATTESTED = (3, 4)  # levels that rest on others' words
_NO_REGISTRY = "counts where a registry of verifiers names its signer (--registry)"


class AssuranceLevel(msgspec.Struct, frozen=True, kw_only=True):
    """One level of assurance: whether its own condition is met, and by what."""

    name: str
    text: str
    met: bool
    evidence: str


class Assurance(msgspec.Struct, frozen=True, kw_only=True):
    """The highest level met with all below it, and the condition of every level."""

    level: int
    rungs: tuple[AssuranceLevel, ...]

    @property
    def name(self) -> str:
        """The level as printed, "V0" to "V5"."""
        return f"V{self.level}"


class AttestationCheck(NamedTuple):
    """A witness or receipt in the run directory, checked against the run.

    `fault` says why it does not hold, `shortfall` why one that holds does not raise the level; it
    counts when both are empty.
    """

    file: str
    text: str
    fault: str = ""
    shortfall: str = ""


_TEXTS = (
    ("V0", "unsigned draft"),
    ("V1", "chain and root consistent"),
    ("V2", "signed and recomputed"),
    ("V3", "plan witnessed before episode 0"),
    ("V4", "replay passed by a second party"),
    ("V5", "executed by the verifier, with the verifier's seeds"),
)


class _LevelWords(NamedTuple):
    """What a level shows, what it leaves open, and what lifts a run above it."""

    shown: str
    left: str
    lift: str


_WORDS = (
    _LevelWords(
        "nothing is shown",
        "that the files are those that were recorded",
        "the run directory as it was written: FAIL names what is damaged or missing",
    ),
    _LevelWords(
        "the chain is whole",
        "who wrote it, and that it was not written anew as a whole: nobody signed a report of it",
        "`owa-bench report RUN` by whoever holds the plan's key",
    ),
    _LevelWords(
        "the chain is whole and its report signed",
        "that the plan was there before the first episode, that nobody picked the seeds for their "
        "worlds, and that the episodes were played at all: the signer alone says so",
        "a run whose plan a verifier of your --registry challenged before its first episode "
        "(`owa-bench challenge`); for one that was played it is too late",
    ),
    _LevelWords(
        "a verifier saw the plan before the first episode",
        "that the recorded actions do what the traces say: the signer alone played them",
        "after the reveal a replay of every counted episode by a verifier of your --registry "
        "(`owa-bench replay RUN --sign`)",
    ),
    _LevelWords(
        "a second party played every recorded action again and the same happened",
        "who chose the actions (a person or an oracle inside the agent is not seen), and that this "
        "play is not the best of several: the signer alone saw the agent run",
        "a run of the agent by an evaluator of your --registry, with seeds of theirs "
        "(`owa-bench evaluate`)",
    ),
    _LevelWords(
        "a party that you trust ran the agent itself, with seeds of theirs",
        "that this party is honest, and that the agent is elsewhere what it was there",
        "nothing in this package",
    ),
)


class Submission(NamedTuple):
    """Who submitted a run, and the count of their plans at its verifier."""

    submitter: str
    number: int
    plans: int


def assess(
    bundle: Bundle,
    checks: Sequence[CheckResult],
    *,
    signed: bool,
    verifier: bytes | None = None,
    registry: Registry | None = None,
) -> Assurance:
    """Return the assurance that the run directory supports now.

    Args:
        bundle: the run directory.
        checks: the checks of its raw evidence.
        signed: whether its report is signed.
        verifier: public key of the party that asks, which alone can know that it executed the run
            itself; None if it does not say.
        registry: whose witnesses and replays count; None: nobody's.
    Returns: Every level with its condition, and the highest met with all below it.
    """
    broken = ", ".join(check.name for check in checks if not check.ok)
    passed = f"{sum(not check.skipped for check in checks)} checks hold"
    own_key = f"key {key_id(bytes.fromhex(bundle.plan.public_key))}" if signed else ""
    cap, why = hosting_cap(bundle.plan)
    hosted = "".join(
        f"; {arm.name} was {arm.hosting}" + (f", root {arm.root}" if arm.root else "")
        for arm in bundle.plan.arms
        if arm.hosting
    )
    conditions = (
        (True, "the least: figures from a run directory"),
        (not broken, f"fails: {broken}" if broken else passed),
        (signed, (own_key or "not signed") + hosted),
        _attested(witnesses(bundle, registry), "no witness of the plan"),
        _attested(receipts(bundle, registry), "no signed replay"),
        _executed(bundle, verifier, registry),
    )
    if conditions[5][0]:  # who played it saw the plan before and every episode
        own = (True, "who signed the plan played it for the reader")
        conditions = (*conditions[:3], own, own, conditions[5])
    levels = tuple(
        AssuranceLevel(
            name=name,
            text=text,
            met=met and place <= cap,
            evidence=f"{evidence}; {why}" if place > cap and (met or hosted) else evidence,
        )
        for place, ((name, text), (met, evidence)) in enumerate(
            zip(_TEXTS, conditions, strict=True)
        )
    )
    highest = sum(1 for _ in takewhile(lambda level: level.met, levels)) - 1
    return Assurance(level=highest, rungs=levels)


def open_words(bundle: Bundle, assurance: Assurance, registry: Registry | None = None) -> str:
    """Return in words what the level of a run leaves open, and what lifts it.

    Args:
        bundle: the run directory.
        assurance: what it supports.
        registry: whose witnesses and replays were counted; None: nobody's.
    """
    level = assurance.level
    shown, left, lift = _WORDS[level]
    if level in _ATTESTED and not bundle.plan.challenger:
        left += "; that nobody picked the seeds for their worlds: the plan had no challenge"
    cap, why = hosting_cap(bundle.plan)
    if level == cap < len(_WORDS) - 1:
        lift = f"another hosting ({why}; docs/isolation.md), and {lift}"
    elif registry is None and any(
        one.shortfall == _NO_REGISTRY for one in (*witnesses(bundle), *receipts(bundle))
    ):
        lift = f"--registry FILE, where you trust who signed its witnesses and replays; else {lift}"
    return f"{assurance.name}: {shown}; not shown: {left}. What lifts it: {lift}."


def hosting_cap(plan: Plan) -> tuple[int, str]:
    """Return the highest level that the hosting of a run's agents allows, and why."""
    caps = {arm.hosting: WEAK_HOSTINGS.get(arm.hosting, 5) for arm in plan.arms}
    cap = min(caps.values(), default=5)
    names = sorted(hosting for hosting, level in caps.items() if level == cap)
    shown = ", ".join(name or "hosting not recorded" for name in names)
    return cap, f"agents {shown}: V{cap} at most"


def submission(bundle: Bundle) -> Submission:
    """Return who submitted a run, and how many plans of theirs were challenged.

    Args:
        bundle: the run directory.
    Returns: The name on the list of the verifier who challenged the plan, "" where none is;
        `number` as of the challenge, `plans` as of that verifier's last replay, 0 without one:
        another verifier cannot know.
    """
    challenge = witness.challenge_of(bundle.layout, bundle.plan, bundle.plan_digest)
    if challenge is None or not challenge.submitter:
        return Submission("", 0, 0)
    plans = max(_counted_later(bundle, challenge), default=0)
    return Submission(challenge.submitter, challenge.number, plans)


def _counted_later(bundle: Bundle, challenge: Witness) -> Iterator[int]:
    """Yield the counts of a submitter's plans that the challenger's replays say."""
    for path in _receipt_paths(bundle):
        with contextlib.suppress(OSError, CheckFailure, ValueError, TraceError):
            receipt = _read_receipt(path)
            said = (receipt.public_key, receipt.submitter)
            if said == (challenge.place, challenge.submitter):
                yield 0 if _fault(bundle, receipt) else receipt.plans


def submission_words(bundle: Bundle) -> str:
    """Return in words whose plan it is, as of its challenge, for the head of the page.

    A receipt may come after the report, so it changes no word here.
    """
    plan = submission(bundle)
    if plan.submitter:
        return f"plan {plan.number} of {plan.submitter} at this verifier"
    return (
        "who signed it is not on the verifier's list of submitters: it may be the best "
        "of many plans"
    )


def witnesses(bundle: Bundle, registry: Registry | None = None) -> tuple[AttestationCheck, ...]:
    """Return every witness of the plan, checked against it.

    Args:
        bundle: the run directory.
        registry: whose count; None: nobody's.
    Returns: The checks, by name of file.
    """
    paths = sorted(bundle.layout.witness.glob("*.json"))
    return tuple(_check_witness(bundle, registry, path) for path in paths)


def receipts(bundle: Bundle, registry: Registry | None = None) -> tuple[AttestationCheck, ...]:
    """Return every signed replay, checked against the run.

    Args:
        bundle: the run directory.
        registry: whose count; None: nobody's.
    Returns: The checks, by name of file.
    """
    paths = _receipt_paths(bundle)
    return tuple(_check_receipt(bundle, registry, path) for path in paths)


def _receipt_paths(bundle: Bundle) -> list[Path]:
    return sorted(bundle.layout.receipts.glob("replay*.dsse.json"))


def _read_receipt(path: Path) -> Receipt:
    """Return a receipt whose signature holds; CheckFailure, ValueError or OSError."""
    receipt = msgspec.json.decode(peek(path.read_bytes()), type=Receipt)
    unseal(path.read_bytes(), bytes.fromhex(receipt.public_key), RECEIPT_TYPE)
    return receipt


def _check_witness(bundle: Bundle, registry: Registry | None, path: Path) -> AttestationCheck:
    try:
        record = msgspec.json.decode(path.read_bytes(), type=Witness)
    except (OSError, msgspec.DecodeError) as error:
        return AttestationCheck(path.name, "", f"does not read: {error}")
    text = " ".join(filter(None, (record.kind, record.claimed)))
    if record.submitter:
        text += f", plan {record.number} of {record.submitter}"
    if fault := witness.fault(record, bundle.plan_digest):
        return AttestationCheck(path.name, text, fault)
    if _is_before(record.claimed, bundle.plan.created):
        text += f", before the plan was made ({bundle.plan.created}): a clock is off"
    shortfall, who = "", ""
    if record.attempts:
        shortfall = f"was made when {record.attempts} attempts had begun"
    elif record.place == bundle.plan.public_key:
        shortfall = "is signed by the run's own key, not by a verifier"
    elif registry is None:
        shortfall = _NO_REGISTRY
    elif record.kind == "nonce":
        who = registry.verifier_of(record.place)
        shortfall = "" if who else _unnamed(registry, record.place)
    else:
        token = base64.b64decode(record.evidence)
        who = registry.service_of(token, record.plan_digest)
        shortfall = "" if who else f"is of no service that {registry.name!r} names"
    if who and registry is not None:
        text += f" by {who} ({registry.name})"
    return AttestationCheck(path.name, text, "", shortfall)


def _is_before(first: str, second: str) -> bool:
    """Return whether a time is before another, both as documents hold them."""
    try:
        return datetime.fromisoformat(first) < datetime.fromisoformat(second)
    except (TypeError, ValueError):
        return False


def _unnamed(registry: Registry, key: str) -> str:
    """Return why the signature of a key that a registry does not name has no weight."""
    signer = key_id(bytes.fromhex(key))
    return f"is signed by key {signer}, which {registry.name!r} does not name"


def _check_receipt(bundle: Bundle, registry: Registry | None, path: Path) -> AttestationCheck:
    try:
        receipt = _read_receipt(path)
    except (OSError, CheckFailure, ValueError) as error:
        return AttestationCheck(path.name, "", f"is no signed receipt: {error}")
    signer = key_id(bytes.fromhex(receipt.public_key))
    text = f"{len(receipt.episodes)} episodes replayed by key {signer}"
    try:
        fault, shortfall = _fault(bundle, receipt), _shortfall(bundle, receipt)
    except TraceError as error:
        return AttestationCheck(path.name, text, str(error))
    if registry is None:
        shortfall = shortfall or _NO_REGISTRY
    elif who := registry.verifier_of(receipt.public_key):
        text += f" of {who} ({registry.name})"
    else:
        shortfall = shortfall or _unnamed(registry, receipt.public_key)
    return AttestationCheck(path.name, text, fault, shortfall)


def _fault(bundle: Bundle, receipt: Receipt) -> str:
    """Return why a signed receipt is not one of this run, "" if it is."""
    if receipt.plan_digest != bundle.plan_digest:
        return "is of another plan"
    roots = (bundle.evidence_root, bundle.replay_root)
    if (receipt.evidence_root, receipt.replay_root) != roots:
        return "is of other episodes"
    if not receipt.passed or receipt.failed:
        return f"says that {len(receipt.failed)} episodes did not replay"
    return ""


def _shortfall(bundle: Bundle, receipt: Receipt) -> str:
    """Return why a receipt is not a second party's replay of the whole run."""
    counted = {leaf.attempt_id for leaf in bundle.counting_leaves if leaf is not None}
    counted |= {x.attempt_id for x in bundle.leaves if x.status in FAILED}
    left_out = counted - set(receipt.episodes)
    if left_out:
        return f"leaves out {len(left_out)} of {len(counted)} episodes"
    if receipt.public_key == bundle.plan.public_key:
        return "is signed by the run's own key, not by a second party"
    return ""


def _attested(checks: Sequence[AttestationCheck], none: str) -> tuple[bool, str]:
    """Return whether one of these counts, and the text of those that decide it."""
    good = [one.text for one in checks if not one.fault and not one.shortfall]
    bad = [f"{one.file} {one.fault or one.shortfall}" for one in checks]
    return bool(good), "; ".join(good or bad) or none


def _executed(
    bundle: Bundle, verifier: bytes | None, registry: Registry | None
) -> tuple[bool, str]:
    """Return whether a party that the reader trusts executed this run itself.

    That is the party that asks, or an evaluator of the registry.
    """
    key = bundle.plan.public_key
    who = "" if registry is None else registry.evaluator_of(key)
    if verifier is None and not who:
        return False, "only the verifier can say so"
    if not who and verifier is not None and verifier.hex() != key:
        return False, "the plan is signed by another key than the verifier's"
    if bundle.plan.verifier_nonce is None:
        return False, "no verifier's nonce in the seeds"
    name = f"evaluator {who}" if who else "the verifier"
    return True, f"plan signed by {name}, seeds mixed with a nonce of theirs"

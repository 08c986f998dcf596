"""Facts that a placement rests on beside its counted traces, and the check of its looks."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from owa_bench.canonical import unseal
from owa_bench.errors import CheckFailure, OwaError
from owa_bench.records.dated import date_faults, dates_of
from owa_bench.records.events import Action, ModelCall
from owa_bench.records.layout import LOOK_TYPE
from owa_bench.records.placement import RULE, Look, SignedLook, rule_digest, signed_looks
from owa_bench.records.plan import MAX_FAILURES
from owa_bench.records.registry import Registry
from owa_bench.records.trace import evidence_root
from owa_bench.records.witness import challenge_of, seed_nonce
from owa_bench.reports.check.assurance import submission
from owa_bench.reports.check.integrity_checks import CheckResult, check_result, skipped_check
from owa_bench.reports.read.attempts import RecordedAttempt
from owa_bench.reports.read.bundle import Bundle
from owa_bench.scoring.pipeline import observe_placement
from owa_bench.scoring.placement.dates import BatchDate
from owa_bench.scoring.placement.played import PlacementFacts
from owa_bench.scoring.placement.rule import OPEN, LookState

# Where an agent runs that the harness does not hold: it can change from day to day.
_SERVED = frozenset({"remote", "local address", "client"})


def placement_facts(bundle: Bundle) -> PlacementFacts:
    """Return what a placement rests on beside its counted traces."""
    attempts = tuple(bundle.attempts())
    counted = {leaf.attempt_id for leaf in bundle.counting_leaves if leaf is not None}
    who = submission(bundle)
    first = next((signed.look.at for signed in signed_looks(bundle.layout)), "")
    nonce = seed_nonce(bundle.layout, bundle.plan, bundle.plan_digest)
    verifier = ""
    if bundle.registry is not None and bundle.plan.challenger != bundle.plan.public_key:
        verifier = bundle.registry.verifier_of(bundle.plan.challenger)
    return PlacementFacts(
        key=f"{bundle.plan_digest} {nonce or ''}",
        lost=frozenset(
            attempt.leaf.index
            for attempt in attempts
            if attempt.attempt_id not in counted and _has_acted(attempt)
        )
        | _given_up(attempts, counted),
        starts=frozenset(attempt.leaf.index for attempt in attempts),
        number=max(who.number, 1),
        plans=max(who.number, who.plans, 1),
        date=first[:10],
        dates=_dates(bundle),
        verifier=verifier,
        served=_is_served(bundle, attempts),
    )


def _dates(bundle: Bundle) -> tuple[BatchDate, ...]:
    """Return when each batch was played, as far as the plan's challenger bears it out.

    The first one was played after the challenge of the plan, which enters all seeds.
    """
    challenge = challenge_of(bundle.layout, bundle.plan, bundle.plan_digest)
    dates = dates_of(bundle.layout, bundle.plan, bundle.plan_digest)
    looks = sum(1 for _ in signed_looks(bundle.layout))
    begins = [challenge.claimed if challenge else ""]
    begins += [dates[look].opened if look in dates else "" for look in range(1, looks)]
    ends = [dates[look].closed if look in dates else "" for look in range(1, looks)]
    return tuple(BatchDate(*pair) for pair in zip(begins, ends, strict=False))


def _has_acted(attempt: RecordedAttempt) -> bool:
    """Return whether the env took an act of the agent's, so that what came of it is known."""
    return any(isinstance(event, Action) and event.error is None for event in attempt.events)


def _given_up(attempts: Sequence[RecordedAttempt], counted: Collection[str]) -> frozenset[int]:
    """Return the entries that the harness failed so often that no more attempts are made."""
    answered = {a.leaf.index for a in attempts if a.attempt_id in counted}
    failed = Counter(a.leaf.index for a in attempts if a.leaf.status == "infrastructure")
    return frozenset(i for i, n in failed.items() if n >= MAX_FAILURES and i not in answered)


def _is_served(bundle: Bundle, attempts: tuple[RecordedAttempt, ...]) -> bool:
    if any(arm.hosting in _SERVED for arm in bundle.plan.arms):
        return True
    return any(
        isinstance(event, ModelCall) and event.source == "harness"
        for attempt in attempts
        for event in attempt.events
    )


def replayed_looks(bundle: Bundle) -> tuple[LookState, ...]:
    """Return the looks that the rule makes of a placement's traces."""
    return observe_placement(
        bundle.plan,
        bundle.traces(),
        bundle.protocol,
        bundle.prices,
        placement_facts(bundle),
        plan_digest=bundle.plan_digest,
        lost=bundle.lost_costs(bundle.prices),
    ).looks


# --- the check `stopping` -------------------------------------------------------------


def check_stopping(bundle: Bundle, public: bytes | None = None) -> CheckResult:
    """Return whether a placement looked, announced and stopped as its rule says.

    Args:
        bundle: The run directory, a placement.
        public: The public key that must have signed the looks; None takes the plan's own.
    """
    key = bytes.fromhex(bundle.plan.public_key) if public is None else public
    try:
        faults = list(_stopping_faults(bundle, key))
    except OwaError as error:
        faults = [str(error)]
    return check_result("stopping", faults, "looks, batches and stop follow from the traces")


def check_dates(bundle: Bundle, registry: Registry | None = None) -> CheckResult:
    """Return whether the dates of a placement hold, and each batch has the date that it needs.

    Args:
        bundle: The run directory, a placement.
        registry: The reader's; None: the reader has none, and the run's own is taken.
    """
    terms, challenger = bundle.plan.placement, bundle.plan.challenger[:16]
    if terms is None or (terms.dates == 1 and not bundle.layout.dates.exists()):
        return skipped_check("dates", "its plan asks for one date")
    try:
        faults = list(date_faults(bundle.layout, bundle.plan, bundle.plan_digest))
        if terms.dates > 1:
            faults += _undated(bundle)
        counted = placement_facts(bundle).verifier
        if counted and registry and not registry.verifier_of(bundle.plan.challenger):
            faults.append(f"the reader's registry does not name their verifier, key {challenger}")
    except OwaError as error:
        faults = [str(error)]
    return check_result("dates", faults, f"key {challenger} bears out when batches were played")


def _undated(bundle: Bundle) -> Iterator[str]:
    """Yield the batches that were begun and that no verifier opened."""
    begun = {leaf.index for leaf in bundle.leaves}
    dates = dates_of(bundle.layout, bundle.plan, bundle.plan_digest)
    for look, *_ in signed_looks(bundle.layout):
        date = dates.get(look.number)
        if look.number and begun & set(look.batch) and not (date and date.opened):
            yield f"the batch of look {look.number} was played and no verifier opened that look"


def _stopping_faults(bundle: Bundle, key: bytes) -> Iterator[str]:
    terms = bundle.plan.placement
    if terms is None:
        return
    if (terms.rule, terms.rule_digest) != (RULE, rule_digest()):
        yield (
            f"the plan's rule is {terms.rule} with digest {terms.rule_digest[:16]}, this version "
            f"has {RULE} with {rule_digest()[:16]}"
        )
        return
    recorded = list(signed_looks(bundle.layout))
    states = [state for state in replayed_looks(bundle) if state.decision != OPEN]
    if len(recorded) != len(states):
        yield f"{len(recorded)} looks are on record, the traces give {len(states)}"
    before, announced = "", set[int]()
    for signed, state in zip(recorded, states, strict=False):
        yield from _look_faults(bundle, key, signed, state, before)
        yield from _order_faults(bundle, signed.look, announced)
        before = signed.digest
        announced |= set(signed.look.batch)
    outside = sorted({leaf.index for leaf in bundle.leaves} - announced)
    if outside:
        yield f"entry {outside[0]} was played and no look announced it ({len(outside)} in all)"


def _look_faults(
    bundle: Bundle, key: bytes, signed: SignedLook, state: LookState, before: str
) -> Iterator[str]:
    """Yield where a look is not the one that the rule makes of the traces."""
    look, name = signed.look, f"look {state.number}"
    try:
        unseal(signed.envelope, key, LOOK_TYPE)
    except (CheckFailure, ValueError) as error:
        yield f"{name}: {error}"
    if look.plan_digest != bundle.plan_digest:
        yield f"{name} is of another plan"
    if look.before != before:
        yield f"{name} does not follow the look before it"
    due = {
        "number": state.number,
        "counts": dict(state.counts),
        "gates": state.gates,
        "decision": state.decision,
        "batch": state.batch.indices,
        "reads": state.batch.reads,
        "stage": state.batch.stage,
    }
    for field, value in due.items():
        if getattr(look, field) != value:
            yield f"{name}: its {field} are not what the rule makes of the traces"


def _order_faults(bundle: Bundle, look: Look, announced: set[int]) -> Iterator[str]:
    """Yield where the attempts on record at a look are not those of the batches before it."""
    leaves = [leaf for leaf in bundle.leaves if leaf.index in announced]
    if len(leaves) != look.attempts:
        yield (
            f"look {look.number} saw {look.attempts} attempts, the batches before it have "
            f"{len(leaves)}"
        )
    elif evidence_root(bundle.plan, leaves) != look.evidence_root:
        yield f"look {look.number} saw other attempts than the batches before it have"

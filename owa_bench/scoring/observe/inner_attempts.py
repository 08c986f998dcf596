"""Attempt sets of campaigns inside episodes, rebuilt from their inner attempts.

Nothing here reads a figure that the session stated: qualities are those of the inner attempts,
statistics and e-values are computed again from them, and which adoption rests on which test follows
from the order of the events.

Source: docs/selfrev.md#evidence.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from owa_bench.records.events import (
    AnyEvent,
    CampaignRevision,
    HoldoutAnswer,
    HoldoutRegistration,
    InnerAttempt,
    Intervention,
    Violation,
)
from owa_bench.records.holdout import HoldoutPlan, e_bh, holdout_statistic
from owa_bench.records.trace import Trace
from owa_bench.scoring.observe.attempt_sets import REVISION, RevisionSets, RevisionStages

LEVEL = 0.05  # false discovery rate over all registered tests of a campaign


class CampaignEvidence(NamedTuple):
    """What one campaign shows.

    Attributes:
        arm: Its arm.
        pair: Its task.
        family: "suite/family".
        quality: Mean quality of each set.
        size: Attempts of the smallest set.
        attempts: Addresses of each set.
        e_values: By plan digest, of every registered test; 1 where it was not played.
        adopted: The plan that each component of the last version was adopted on.
        countable: Whether a gain may count: every component on a test of quality, no
            help before it, no disqualification.
        proposals: Versions that the agent proposed.
        lines: Options that changed.
        faults: Why it is no evidence.
    """

    arm: str
    pair: str
    family: str
    quality: Mapping[str, float]
    size: int
    attempts: Mapping[str, tuple[str, ...]]
    e_values: Mapping[str, float]
    adopted: tuple[str, ...]
    countable: bool
    proposals: int
    lines: int
    faults: tuple[str, ...]


def read_campaign(trace: Trace) -> CampaignEvidence | None:
    """Return what an episode's campaign shows, None where it held none."""
    revision = next(trace.of(CampaignRevision), None)
    if revision is None or not any(trace.of(InnerAttempt)):
        return None
    sets: dict[str, list[InnerAttempt]] = defaultdict(list)
    for attempt in trace.of(InnerAttempt):
        if attempt.draw.startswith("confirmation/"):
            sets[attempt.condition].append(attempt)
    if revision.start == revision.final and "before" in sets:
        sets = defaultdict(list, dict.fromkeys(REVISION, sets["before"]))
    answered = {answer.plan: answer for answer in trace.of(HoldoutAnswer)}
    plans = {plan.plan: plan for plan in trace.of(HoldoutRegistration)}
    tested = all(
        c.plan in answered
        and plans[c.plan].metric == "quality"
        and c.name in plans[c.plan].components
        for c in revision.components
    )
    helped = any(e.kind == "hint" for e in trace.of(Intervention))
    void = any(e.severity == "disqualify" for e in trace.of(Violation))
    name = trace.leaf.attempt_id
    start = trace.start
    return CampaignEvidence(
        arm=start.arm,
        pair=start.pair,
        family=f"{start.instance.suite}/{start.instance.family}",
        quality={
            condition: float(np.mean([a.quality for a in sets[condition]]))
            for condition in REVISION
            if sets[condition]
        },
        size=min((len(sets[condition]) for condition in REVISION), default=0),
        attempts={
            condition: tuple(f"{name}/{a.batch}/{a.number:04d}" for a in attempts)
            for condition, attempts in sets.items()
        },
        e_values={
            digest: answered[digest].e_value if digest in answered else 1.0 for digest in plans
        },
        adopted=tuple(component.plan for component in revision.components),
        countable=tested and not helped and not void,
        proposals=revision.proposals,
        lines=revision.lines,
        faults=tuple(f"{name}: {fault}" for fault in inner_faults(trace.events)),
    )


_OF_CAMPAIGNS = frozenset({InnerAttempt, HoldoutRegistration, HoldoutAnswer, CampaignRevision})


def inner_faults(events: Sequence[AnyEvent]) -> Iterator[str]:
    """Yield where the inner attempts of an episode do not fit its other events.

    Args:
        events: Of the episode, in order.
    Yields: A line a fault.
    """
    events = [event for event in events if type(event) in _OF_CAMPAIGNS]
    batches: dict[str, list[InnerAttempt]] = defaultdict(list)
    plans: dict[str, HoldoutRegistration] = {}
    answered: set[str] = set()
    for event in events:
        if isinstance(event, InnerAttempt):
            batches[event.batch].append(event)
            if event.draw.startswith("holdout/"):
                digest = event.draw.partition("/")[2]
                if digest not in plans or digest in answered:
                    yield f"{event.batch}: a holdout without an open registration"
        elif isinstance(event, HoldoutRegistration):
            plans[event.plan] = event
        elif isinstance(event, HoldoutAnswer):
            answered.add(event.plan)
            if event.plan in plans:
                played = batches[event.batch]
                yield from _answer_faults(plans[event.plan], event, played)
    for name, attempts in batches.items():
        if [attempt.number for attempt in attempts] != list(range(len(attempts))):
            yield f"{name}: its attempts are not numbered from 0"
    yield from _set_faults(events, batches)


def _answer_faults(
    plan: HoldoutRegistration, answer: HoldoutAnswer, played: Sequence[InnerAttempt]
) -> Iterator[str]:
    """Yield where an answer does not follow from the attempts of its batch."""
    base = [a for a in played if a.condition == "base"]
    candidate = [a for a in played if a.condition == "candidate"]
    draw = f"holdout/{plan.plan}"
    if any(a.draw != draw for a in played) or len(played) != 2 * len(base):
        yield f"{answer.batch}: it is not the holdout of its plan"
        return
    versions = ({a.version for a in base}, {a.version for a in candidate})
    if versions != ({plan.base}, {plan.candidate}):
        yield f"{answer.batch}: it plays other versions than its plan names"
    if [a.pair for a in base] != [a.pair for a in candidate]:
        yield f"{answer.batch}: base and candidate met other instances"
    terms = HoldoutPlan(
        hypothesis="",
        base=plan.base,
        candidate=plan.candidate,
        metric=plan.metric,
        pairs=plan.pairs,
        rule=plan.rule,
        level=plan.level,
    )
    logged = plan.metric == "logged"
    differences = [
        new.logged - old.logged if logged else new.quality - old.quality
        for old, new in zip(base, candidate, strict=True)
    ]
    statistic = holdout_statistic(terms, differences)
    stated = (answer.statistic, answer.e_value, answer.pairs)
    if not np.allclose(stated, statistic, atol=2e-6):
        yield f"{answer.batch}: it answers {stated}, its attempts make {tuple(statistic)}"


def _set_faults(
    events: Sequence[AnyEvent], batches: Mapping[str, Sequence[InnerAttempt]]
) -> Iterator[str]:
    """Yield where the sets at the end are not of the versions and the draw they say."""
    revision = next((e for e in events if isinstance(e, CampaignRevision)), None)
    if revision is None:
        if batches:
            yield "inner attempts without a campaign"
        return
    versions = dict.fromkeys(REVISION, revision.start) | {"after": revision.final}
    sets = {
        attempts[0].condition: attempts
        for attempts in batches.values()
        if attempts[0].condition in versions
    }
    expected = set(REVISION) if revision.start != revision.final else {"before"}
    if batches and set(sets) != expected:
        yield f"the sets are {sorted(sets)}, not {sorted(expected)}"
    draw = f"confirmation/{revision.final}"
    for condition, attempts in sets.items():
        if {a.version for a in attempts} != {versions[condition]}:
            yield f"the set {condition} plays another version"
        if any(a.draw != draw or a.step < revision.step for a in attempts):
            yield f"the set {condition} was not drawn after the last adoption"
    if len({tuple(a.pair for a in attempts) for attempts in sets.values()}) > 1:
        yield "the sets have other instances"


def campaign_sets(
    campaigns: Sequence[CampaignEvidence], families: tuple[str, ...]
) -> tuple[RevisionSets, ...]:
    """Return the attempt sets of an arm's campaigns, a task being a campaign.

    Campaigns of one instance, under whatever drift, help or repeat, are one cluster. A gain that
    does not count is taken out: its campaign reads the first version throughout. Harm always
    counts. The share of adopted components that e-BH confirms over all registered tests of their
    campaign is the stage of validation.

    Args:
        campaigns: Of one arm.
        families: "suite/family" names of the plan, sorted.
    Returns: One record, nothing where there was no campaign.
    """
    played = [c for c in campaigns if c.quality]
    if not played:
        return ()
    counting = [_counting(campaign) for campaign in played]
    flags = [plan in _confirmed(c) for c in played for plan in c.adopted]
    changed = [c for c in played if c.adopted]
    shares = RevisionStages(
        proposed=_share([c.proposals > 0 for c in changed]),
        implemented=_share([c.lines > 0 for c in changed]),
        validated=_share(flags),
    )
    attempts: dict[str, list[str]] = defaultdict(list)
    for campaign in played:
        for condition, names in campaign.attempts.items():
            attempts[condition] += names
    registered = sum(len(c.e_values) for c in played)
    instances, instance = np.unique([c.pair for c in played], return_inverse=True)
    sets = RevisionSets(
        window=(0, 0),
        family=np.array([families.index(c.family) for c in played], dtype=int),
        q={
            condition: np.array([q[condition] for q in counting], dtype=np.float64)
            for condition in REVISION
        },
        one_law=True,
        earlier=np.full(len(families), np.nan),
        stages=shares,
        human="",
        lines=sum(c.lines for c in played),
        installed=(),
        attempts={name: tuple(names) for name, names in attempts.items()},
        fault="; ".join(fault for c in played for fault in c.faults),
        size=sum(c.size for c in played),
        own_subject=False,
        cluster=instance.reshape(-1),
        tests=f"{len(played)} campaigns of {len(instances)} instances, {registered} tests "
        f"registered, {sum(flags)} of {len(flags)} adopted components confirmed by e-BH at "
        f"{LEVEL:g}",
    )
    return (sets,)


def _confirmed(campaign: CampaignEvidence) -> frozenset[str]:
    """Return the plans that e-BH confirms over all that the campaign registered."""
    plans = list(campaign.e_values)
    flags = e_bh([campaign.e_values[plan] for plan in plans], LEVEL)
    return frozenset(plan for plan, flag in zip(plans, flags, strict=True) if flag)


def _counting(campaign: CampaignEvidence) -> Mapping[str, float]:
    """Return the qualities that count: those of the first version for no gain."""
    quality = campaign.quality
    complete = all(condition in quality for condition in REVISION)
    if complete and (campaign.countable or quality["after"] < quality["before"]):
        return quality
    return dict.fromkeys(REVISION, quality.get("before", 0.0))


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0

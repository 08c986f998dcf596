"""Campaigns and trials: plans of episodes that share a memory lane.

A campaign runs over days. Day by day an agent practises on new tasks under that day's
drift, keeping its memory; then it plays the checkpoint on a throw-away copy of that
memory. The checkpoint's tasks, seeds and drift are the same every day and never occur
in practice. A frozen control of each agent plays the same checkpoints and remembers
nothing.

Trials follow SAIL-ON: a lane of episodes, plain ones first, then novel ones. Each trial
draws the episode at which the novelty comes in; it stays to the end. The agent is not
told and keeps its memory over the whole trial, so that it may notice and adapt; every
arm plays the same trials on the same pairs. What an agent believes it declares with a
Move: beliefs `novelty` and `novelty_threshold`, the last of an episode counts.

Source of trials: docs/cartpole3d.md.
"""

import itertools
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from owa_bench.calendars import DAILY
from owa_bench.errors import PlanError
from owa_bench.interfaces import SuiteCard
from owa_bench.records.plan import Arm, Plan, PlanEntry
from owa_bench.run.agents.spec import AgentHandle
from owa_bench.run.plan import draws
from owa_bench.run.plan.draws import Draw
from owa_bench.run.plan.plan import arms_of, assemble_plan, limited
from owa_bench.seeding import stream

PRACTICE = "practice/"


class Campaign(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A campaign over simulated days.

    Per day, family and tier `practice` new tasks are played; `checkpoint` draws the
    tasks of every day's checkpoint. `drift_per_day` is the share of all drift that is
    applied each day; `calendar`, where given, is another calendar of days in its place.
    """

    checkpoint: Draw
    days: int = 7
    practice: int = 1
    drift_per_day: float = 0.05
    calendar: str = ""
    control: bool = True


class Trials(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Trials: `count` of them per family and tier of `draw`.

    A trial has `draw.episodes` episodes; the first novel one is drawn between the two
    `before` (episodes before it, both ends included) from `seed`. `draw.deltas` is the
    one magnitude of the novelty.
    """

    draw: Draw
    count: int = 1
    before: tuple[int, int] = (5, 10)
    seed: int = 0


def plan_campaign(
    campaign: Campaign, agents: Sequence[AgentHandle], terms: Plan
) -> Plan:
    """Return the plan of a campaign.

    Args:
        campaign: The campaign.
        agents: Who plays it.
        terms: What the plan says beside its episodes; the calendar is the campaign's.

    Returns:
        The plan.

    Raises:
        PlanError: Naming field, value and rule.
    """
    _check_campaign(campaign)
    learners = arms_of(agents)
    controls = arms_of(agents, frozen=True) if campaign.control else ()
    card = draws.check(campaign.checkpoint, PlanError, "checkpoint").card
    checkpoint = limited(draws.entries(campaign.checkpoint, card))
    entries = (
        entry
        for day in range(campaign.days)
        for entry in itertools.chain(
            _practice(campaign, card, day, learners),
            _checkpoint(checkpoint, day, (*learners, *controls)),
        )
    )
    calendar = campaign.calendar or f"daily:{campaign.drift_per_day:g}"
    return assemble_plan(
        (campaign.checkpoint,),
        agents,
        (*learners, *controls),
        entries,
        replace(terms, calendar=calendar),
    )


def _practice(
    campaign: Campaign, card: SuiteCard, day: int, arms: Sequence[Arm]
) -> Iterator[PlanEntry]:
    """Yield a day's practice: tasks never played before, drifted to that day."""
    draw = campaign.checkpoint
    for number in range(day * campaign.practice, (day + 1) * campaign.practice):
        for tier, family, arm in itertools.product(
            draws.tiers(draw, card), draws.families(draw, card), arms
        ):
            yield PlanEntry(
                index=0,
                arm=arm.name,
                pair=PRACTICE + draws.pair_id(card, family, tier, number),
                suite=card.name,
                version=card.version,
                family=family,
                tier=tier,
                delta=None,
                day=day,
                lane=arm.name,
                phase="practice",
            )


def _checkpoint(
    checkpoint: Sequence[PlanEntry], day: int, arms: Sequence[Arm]
) -> Iterator[PlanEntry]:
    """Yield a day's checkpoint: the same entries every day."""
    for entry, arm in itertools.product(checkpoint, arms):
        lane = None if arm.frozen else arm.name
        yield replace(entry, arm=arm.name, day=day, lane=lane, phase="checkpoint")


def _check_campaign(campaign: Campaign) -> None:
    if campaign.days < 1:
        raise PlanError("days", campaign.days, "must be at least 1")
    if campaign.practice < 0:
        raise PlanError("practice", campaign.practice, "must be at least 0")
    if not 0.0 < campaign.drift_per_day <= 1.0:
        raise PlanError("drift_per_day", campaign.drift_per_day, "must lie in (0, 1]")
    if campaign.calendar and campaign.calendar.partition(":")[0] not in DAILY:
        raise PlanError(
            "calendar", campaign.calendar, f"must be one of days: {', '.join(DAILY)}"
        )


def plan_trials(trials: Trials, agents: Sequence[AgentHandle], terms: Plan) -> Plan:
    """Return the plan of trials.

    Args:
        trials: The trials.
        agents: Who plays them.
        terms: What the plan says beside its episodes.

    Returns:
        The plan.

    Raises:
        PlanError: Naming field, value and rule.
    """
    card = draws.check(trials.draw, PlanError).card
    _check_trials(trials, card)
    arms = arms_of(agents)
    entries = (
        entry
        for tier in draws.tiers(trials.draw, card)
        for family in draws.families(trials.draw, card)
        for number in range(trials.count)
        for arm in arms
        for entry in _trial(trials, card, family, tier, number, arm)
    )
    return assemble_plan((trials.draw,), agents, arms, entries, terms)


def _trial(
    trials: Trials, card: SuiteCard, family: str, tier: int, number: int, arm: Arm
) -> Iterator[PlanEntry]:
    """Yield one arm's episodes of one trial, in order."""
    name = f"trial/{draws.pair_id(card, family, tier, number)}"
    low, high = trials.before
    first = int(stream(trials.seed, name).integers(low, high + 1))
    (magnitude,) = trials.draw.deltas
    for place in range(trials.draw.episodes):
        yield PlanEntry(
            index=0,
            arm=arm.name,
            pair=f"{name}/{place:04d}",
            suite=card.name,
            version=card.version,
            family=family,
            tier=tier,
            delta=float(magnitude) if place >= first else 0.0,
            lane=f"{arm.name}/{name}",
        )


def _check_trials(trials: Trials, card: SuiteCard) -> None:
    """Refuse trials that hold no novelty, or nothing before it."""
    low, high = trials.before
    if trials.count < 1:
        raise PlanError("trials", trials.count, "must be at least 1")
    if not 1 <= low <= high < trials.draw.episodes:
        raise PlanError(
            "before",
            trials.before,
            "must be two counts, 1 <= A <= B, below `episodes`, those of a trial "
            f"({trials.draw.episodes})",
        )
    if len(trials.draw.deltas) != 1 or not trials.draw.deltas[0] > 0.0:
        raise PlanError(
            "deltas",
            trials.draw.deltas,
            f"must be one magnitude above 0 in a trial of `{card.name}`",
        )

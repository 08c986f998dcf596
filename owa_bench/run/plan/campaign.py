"""Campaigns: one run over days, with practice in a lane and a checkpoint per day.

Day by day an agent practises on new tasks under that day's drift, keeping its memory;
then it plays the checkpoint on a throw-away copy of that memory. The checkpoint's
tasks, seeds and drift are the same every day and never occur in practice. A frozen
control of each agent plays the same checkpoints and remembers nothing.
"""

import itertools
from collections.abc import Iterator, Sequence

import msgspec

from owa_bench.calendars import DAILY
from owa_bench.errors import PlanError
from owa_bench.records.plan import Arm, Plan, PlanEntry
from owa_bench.run.agents.agent_spec import AgentHandle
from owa_bench.run.plan import draws
from owa_bench.run.plan.draws import Draw, DrawCell
from owa_bench.run.plan.plan import PlanTerms, arms_of, assemble, refuse_misfits, within

PRACTICE = "practice/"


class Campaign(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a campaign over simulated days consists of.

    Per day, family and tier `practice` new tasks are played; `checkpoint` draws the
    frozen snapshot. `drift_per_day` is the share of all drift that strikes each day;
    `calendar`, where given, is another calendar of days in its place.
    """

    checkpoint: Draw
    days: int = 7
    practice: int = 1
    drift_per_day: float = 0.05
    calendar: str = ""
    control: bool = True


def make_plan(
    campaign: Campaign, agents: Sequence[AgentHandle], terms: PlanTerms
) -> Plan:
    """Return the plan of a campaign.

    Errors: PlanError naming field, value and rule.
    """
    _check(campaign)
    learners = arms_of(agents)
    controls = arms_of(agents, frozen=True) if campaign.control else ()
    card = draws.check(campaign.checkpoint, PlanError, "checkpoint").card
    snapshot = within(draws.cells(campaign.checkpoint, card))
    made = within(
        entry
        for day in range(campaign.days)
        for entry in itertools.chain(
            _practice(campaign, day, learners),
            _checkpoint(snapshot, day, (*learners, *controls)),
        )
    )
    entries = tuple(
        msgspec.structs.replace(entry, index=index) for index, entry in enumerate(made)
    )
    refuse_misfits(agents, entries)
    calendar = campaign.calendar or f"daily:{campaign.drift_per_day:g}"
    return assemble(
        (campaign.checkpoint,),
        (*learners, *controls),
        entries,
        msgspec.structs.replace(terms, calendar=calendar),
    )


def _practice(campaign: Campaign, day: int, arms: Sequence[Arm]) -> Iterator[PlanEntry]:
    """Yield a day's practice: tasks never played before, drifted to that day."""
    draw = campaign.checkpoint
    card = draws.check(draw, PlanError, "checkpoint").card
    for number in range(day * campaign.practice, (day + 1) * campaign.practice):
        for tier in draws.tiers(draw, card):
            for family in draws.families(draw, card):
                pair = PRACTICE + draws.pair_id(card, family, tier, number)
                for arm in arms:
                    yield PlanEntry(
                        index=0,
                        arm=arm.name,
                        pair=pair,
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
    snapshot: Sequence[DrawCell], day: int, arms: Sequence[Arm]
) -> Iterator[PlanEntry]:
    """Yield a day's checkpoint: the same cells every day."""
    for cell in snapshot:
        for arm in arms:
            yield PlanEntry(
                index=0,
                arm=arm.name,
                day=day,
                lane=None if arm.frozen else arm.name,
                phase="checkpoint",
                **cell._asdict(),
            )


def _check(campaign: Campaign) -> None:
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

"""Campaigns: plans of episodes over days that share a memory lane.

A campaign runs over days, on one suite or several. Day by day an agent practises on new tasks under
that day's drift, keeping its memory; then it plays the checkpoint on a throw-away copy of that
memory. The checkpoint's tasks, seeds and drift are the same every day and never occur in practice.
A frozen control of each agent plays the same checkpoints and remembers nothing.

A campaign may also plan attempt sets, all fixed before episode 0 and played on copies
that are thrown away:

- of a revision, between the morning of day 0 and that of `adopt_by`: `before` from the
  earlier memory, `after` from the later, `ablated` from the later with the change taken
  out, two control sets without memory, and the `placebo` lane's. Their pairs occur
  nowhere else. With `sustain`, `after` and `ablated` come again every later day;
- of maintenance: every morning a `clean` and a `drifted` lane of the first pairs of the
  checkpoint, also played by a drift-blind baseline.

Suites that are drawn once stand outside the days: the agents play them one time, every episode with
an empty memory, on a body with what is remembered of that body.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, get_args

from msgspec.structs import replace

from owa_bench.drift.calendar import DAILY
from owa_bench.errors import PlanError, one_of
from owa_bench.hosting.spec import AgentHandle
from owa_bench.interfaces import SuiteCard
from owa_bench.records.events import Condition
from owa_bench.records.plan import Arm, Plan, PlanEntry
from owa_bench.records.protocol import Symbol
from owa_bench.runs.plan import draws
from owa_bench.runs.plan.campaign_terms import CampaignTerms
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.plan import arms_of, assemble_plan, limited
from owa_bench.seeding import stream

PRACTICE = "practice/"
# The axes that are a state of an agent: R is a flow over a window.
_STATES = tuple(symbol for symbol in get_args(Symbol) if symbol != "R")


class Campaign(CampaignTerms, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A campaign: its terms, the draws of every day's checkpoint, and those of once."""

    checkpoint: tuple[Draw, ...]
    once: tuple[Draw, ...] = ()

    @property
    def window(self) -> tuple[int, int]:
        """The mornings between which a revision is tested."""
        return 0, self.days if self.adopt_by is None else self.adopt_by


class _CampaignArms(NamedTuple):
    """The arms of a campaign by what they play."""

    learners: tuple[Arm, ...]
    controls: tuple[Arm, ...]
    placebos: tuple[Arm, ...]
    baselines: tuple[Arm, ...]

    @property
    def every(self) -> tuple[Arm, ...]:
        """All arms."""
        return tuple(itertools.chain(*self))


def plan_campaign(
    campaign: Campaign,
    agents: Sequence[AgentHandle],
    terms: Plan,
    baseline: AgentHandle | None = None,
) -> Plan:
    """Return the plan of a campaign.

    Args:
        campaign: The campaign.
        agents: Who plays it.
        terms: What the plan says beside its episodes; the calendar is the campaign's.
        baseline: The drift-blind agent, which plays the lanes of maintenance.
    Raises: PlanError: Naming field, value and rule.
    """
    _check_campaign(campaign)
    _check_dynamics(campaign)
    days = [_daily_draw(campaign, draw) for draw in campaign.checkpoint]
    others = all(day.others for day in days)
    _check_placebo(campaign, days)
    arms = _CampaignArms(
        learners=arms_of(agents),
        controls=arms_of(agents, "frozen") if campaign.control else (),
        placebos=arms_of(agents, "placebo") if campaign.holdout and others else (),
        baselines=arms_of([baseline], "baseline") if campaign.maintenance and baseline else (),
    )
    checkpoint = draws.mark_controls(_drawn_entries(campaign.checkpoint))
    entries = (
        entry
        for day in range(campaign.days + 1)
        for entry in itertools.chain(
            _revision_sets(campaign, days, day, arms),
            _maintenance_lanes(campaign, days, day, arms),
            _practice(campaign, days, day, arms),
            _checkpoint(checkpoint, day, (*arms.learners, *arms.controls))
            if day < campaign.days
            else (),
        )
    )
    once = draws.mark_controls(_drawn_entries(campaign.once))
    outside = (
        replace(e, arm=arm.name, lane=draws.body_lane(e, arm.name))
        for e in once
        for arm in arms.learners
    )
    return assemble_plan(
        (*campaign.checkpoint, *campaign.once),
        agents,
        arms.every,
        itertools.chain(entries, outside),
        replace(
            terms,
            calendar=campaign.calendar or f"daily:{campaign.drift_per_day:g}",
            dynamics=campaign.dynamics,
        ),
    )


class _DailyDraw(NamedTuple):
    """A draw of the checkpoint, and what the placebo lane practises of its suite."""

    draw: Draw
    card: SuiteCard
    others: tuple[str, ...]


def _daily_draw(campaign: Campaign, draw: Draw) -> _DailyDraw:
    """Return a draw of the checkpoint with its suite's card.

    The placebo lane practises on the families that the campaign names, else on those that no draw
    of the suite holds.
    """
    card = draws.check(draw, PlanError, "checkpoint").card
    played = {
        family
        for other in campaign.checkpoint
        if other.name == draw.name
        for family in draws.families(other, card)
    }
    named = tuple(family for family in campaign.placebo if family in card.drawable)
    left = tuple(family for family in card.families if family not in played)
    return _DailyDraw(draw, card, named or left)


def _drawn_entries(drawn: Sequence[Draw]) -> list[PlanEntry]:
    """Return the entries of draws, each once."""
    cards = [draws.check(draw, PlanError, "checkpoint").card for draw in drawn]
    return limited(
        dict.fromkeys(
            entry
            for draw, card in zip(drawn, cards, strict=True)
            for entry in draws.entries(draw, card)
        )
    )


def _practised_families(draw: draws.Draw, card: SuiteCard) -> tuple[str, ...]:
    """Return the families of a draw that practice may hold: none that is held out."""
    return tuple(f for f in draws.families(draw, card) if f not in card.held_out)


def _practice(
    campaign: Campaign, days: Sequence[_DailyDraw], day: int, arms: _CampaignArms
) -> Iterator[PlanEntry]:
    """Yield a day's practice: tasks never played before, drifted to that day.

    A task of several draws is practised once. The budget of interventions is the draw's smallest,
    and tools are those of the draw: neither tells an agent which of practice and checkpoint it
    plays. The placebo lane has as many tasks, of other families.
    """
    if day == campaign.days:
        return
    seen: set[tuple[str, str]] = set()
    for one in days:
        for entry in _practice_of(campaign.practice, one, day, arms):
            if (entry.arm, entry.pair) not in seen:
                seen.add((entry.arm, entry.pair))
                yield entry


def _practice_of(
    tasks: int, daily: _DailyDraw, day: int, arms: _CampaignArms
) -> Iterator[PlanEntry]:
    """Yield a day's practice of one draw, `tasks` a family and tier."""
    draw, card, others = daily
    families = _practised_families(draw, card)
    for number in range(day * tasks, (day + 1) * tasks):
        for tier, (place, family) in itertools.product(
            draws.tiers(draw, card), enumerate(families)
        ):
            for arm in (*arms.learners, *arms.placebos):
                own, turn, own_worlds = family, number, PRACTICE
                if arm.placebo:
                    turn, rest = divmod(number * len(families) + place, len(others))
                    own, own_worlds = others[rest], PRACTICE + "placebo/"
                yield PlanEntry(
                    index=0,
                    arm=arm.name,
                    pair=own_worlds + draws.pair_id(card, own, tier, turn),
                    suite=card.name,
                    version=card.version,
                    family=own,
                    tier=tier,
                    delta=None,
                    day=day,
                    interventions=_least_budget(draw),
                    tools_off=draw.tools_off,
                    lane=arm.name,
                    phase="practice",
                )


def _least_budget(draw: Draw) -> int | Literal["protocol"] | None:
    """Return the smallest intervention budget of a draw, None: no limit."""
    counts = [count for count in draw.interventions if isinstance(count, int)]
    priced = "protocol" in draw.interventions
    return min(counts) if counts else "protocol" if priced else None


def _checkpoint(
    checkpoint: Sequence[PlanEntry], day: int, arms: Sequence[Arm]
) -> Iterator[PlanEntry]:
    """Yield a day's checkpoint: the same entries every day."""
    for entry, arm in itertools.product(checkpoint, arms):
        lane = None if arm.frozen else arm.name
        yield replace(entry, arm=arm.name, day=day, lane=lane, phase="checkpoint")


def _set_tasks(days: Sequence[_DailyDraw], tasks: int, *, mildest: bool = False) -> list[PlanEntry]:
    """Return the entries of an attempt set, without arm: one budget, the whole crew.

    Args:
        days: The draws of the checkpoint.
        tasks: Instances per family and tier.
        mildest: Whether each draw's first magnitude alone is wanted.
    Returns: The entries, each once.
    """
    made = []
    for draw, _, _ in days:
        least = _least_budget(draw)
        made.append(
            replace(
                draw,
                episodes=tasks,
                repeats=1,
                deltas=draw.deltas[:1] if mildest else draw.deltas,
                interventions=("unlimited" if least is None else least,),
                crews=(draws.OPEN,),
            )
        )
    return _drawn_entries(made)


def _revision_sets(
    campaign: Campaign, days: Sequence[_DailyDraw], day: int, arms: _CampaignArms
) -> Iterator[PlanEntry]:
    """Yield the attempt sets of the revision that are played on a day's morning."""
    since, until = campaign.window
    tasks = campaign.holdout if day == until else campaign.sustain * (day > until)
    if not tasks:
        return
    roles: list[tuple[Condition, Arm]] = []
    for arm in arms.learners:
        roles += [("after", arm), ("ablated", arm)]
    if day == until:
        roles += [("before", arm) for arm in arms.learners]
        for arm in arms.controls:
            roles += [("control_before", arm), ("control_after", arm)]
        roles += [("placebo", arm) for arm in arms.placebos]
    entries = []
    for entry, (condition, arm) in itertools.product(_set_tasks(days, tasks), roles):
        early = condition in ("before", "control_before")
        entries.append(
            replace(
                entry,
                arm=arm.name,
                pair=f"holdout/{since}-{until}/{entry.pair}",
                lane=None if arm.frozen else arm.name,
                delta=None if campaign.daily_holdout else entry.delta,
                day=day,
                world_day=(since if early else day) if campaign.daily_holdout else None,
                condition=condition,
                window=(since, until),
            )
        )
    yield from _shuffled(dict.fromkeys(entries), campaign.seed, f"revision/{day}")


def _maintenance_lanes(
    campaign: Campaign, days: Sequence[_DailyDraw], day: int, arms: _CampaignArms
) -> Iterator[PlanEntry]:
    """Yield a morning's clean and drifted lanes of the first checkpoint pairs."""
    if not campaign.maintenance or day == campaign.days:
        return
    clean, drifted = ("clean", 0.0, None), ("drifted", None, day)
    entries = [
        replace(
            entry,
            arm=arm.name,
            lane=None if arm.baseline else arm.name,
            delta=delta,
            day=day,
            calendar="",
            world_day=world_day,
            condition=condition,
        )
        for entry in _set_tasks(days, campaign.maintenance, mildest=True)
        for arm in (*arms.learners, *arms.baselines)
        for condition, delta, world_day in (clean, drifted)
    ]
    yield from _shuffled(entries, campaign.seed, f"maintenance/{day}")


def _shuffled(entries: Iterable[PlanEntry], seed: int, name: str) -> Iterator[PlanEntry]:
    """Yield entries in a drawn order, so that no set is played first."""
    ordered = list(entries)
    for place in stream(seed, "campaign", name).permutation(len(ordered)):
        yield ordered[place]


def _check_dynamics(campaign: Campaign) -> None:
    for symbol in campaign.dynamics:
        if symbol not in _STATES or campaign.dynamics.count(symbol) > 1:
            rule = f"must be axes among {', '.join(_STATES)}, each once"
            raise PlanError("dynamics", symbol, rule)


def _check_placebo(campaign: Campaign, days: Sequence[_DailyDraw]) -> None:
    known = {family for day in days for family in day.card.drawable}
    for family in campaign.placebo:
        if family not in known:
            raise PlanError("placebo", family, one_of(family, known))


def _check_campaign(campaign: Campaign) -> None:
    if not campaign.checkpoint:
        raise PlanError("checkpoint", (), "must draw from at least one suite")
    if campaign.days < 1:
        raise PlanError("days", campaign.days, "must be at least 1")
    for name in ("practice", "holdout", "sustain", "maintenance"):
        count = getattr(campaign, name)
        if count < 0:
            raise PlanError(name, count, "must be at least 0")
    if not 0 < campaign.window[1] <= campaign.days:
        rule = f"must be a day from 1 to {campaign.days}"
        raise PlanError("adopt_by", campaign.adopt_by, rule)
    if campaign.sustain and not campaign.holdout:
        raise PlanError("sustain", campaign.sustain, "needs `holdout` above 0")
    if campaign.holdout and not campaign.control:
        raise PlanError("control", False, "must be played beside `holdout`")
    if not 0.0 < campaign.drift_per_day <= 1.0:
        raise PlanError("drift_per_day", campaign.drift_per_day, "must lie in (0, 1]")
    if campaign.calendar and campaign.calendar.partition(":")[0] not in DAILY:
        raise PlanError("calendar", campaign.calendar, f"must be one of days: {', '.join(DAILY)}")

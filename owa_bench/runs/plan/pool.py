"""The plan of a placement: a pool of worlds, of which a rule chooses batch by batch.

After the pool come stages of a fixed size. They hold worlds of their own.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from msgspec.structs import asdict, replace

from owa_bench.errors import PlanError
from owa_bench.hosting.spec import AgentHandle
from owa_bench.interfaces import SuiteCard
from owa_bench.records.placement import (
    ASSURANCE,
    DATES,
    FIRST_PRACTICE,
    LEVELS,
    POOL_GATES,
    RULE,
    PlacementTerms,
    Stage,
    rule_digest,
    stage_gate,
)
from owa_bench.records.plan import Arm, Plan, PlanEntry
from owa_bench.records.protocol import Protocol
from owa_bench.runs.plan import draws
from owa_bench.runs.plan.campaign import Campaign, plan_campaign
from owa_bench.runs.plan.draws import Battery, Draw, Pool, StageDraws
from owa_bench.runs.plan.plan import arms_of, assemble_plan, misfit

_FIRST_TASKS = 12  # [D] of practice, after which an agent must have kept something
_ROUND = 6  # worlds of a family after which its tiers are turned by one
_BASELINE = "fixed"  # the drift-blind agent beside the lanes of maintenance


class _Part(NamedTuple):
    """A stage before its entries have their places."""

    stage: Stage
    entries: tuple[PlanEntry, ...]


def plan_pool(
    battery: Battery,
    pool: Pool,
    agents: Sequence[AgentHandle],
    terms: Plan,
    rules: Protocol,
    hosted: Callable[[str], AgentHandle],
    *,
    dated: bool = False,
) -> Plan:
    """Return the plan whose first entries are the pool of one agent's placement.

    Args:
        battery: Its draws are the pool's; their `deltas` and `interventions` are the protocol's.
        pool: What the draws are a pool for.
        agents: Who is placed: one agent.
        terms: The plan without suites, arms and entries.
        rules: The protocol.
        hosted: Returns an agent of this package by name, hosted as the run's are.
        dated: Whether the level needs several dates.
    Raises: PlanError: Naming field, value and rule.
    """
    _check(battery, pool, agents, rules)
    suites = [draws.check(draw, PlanError) for draw in battery.suite]
    arms, drawn = list(arms_of(agents)), list(battery.suite)
    entries = [
        replace(entry, arm=arms[0].name)
        for draw, suite in zip(battery.suite, suites, strict=True)
        for entry in _entries(draw, suite.card, rules)
    ]
    parts: list[_Part] = []
    for whole in battery.stage:
        stage = _playable(whole, agents[0])
        drawn += stage.suite
        if not stage.suite:
            parts.append(_Part(_stage(stage), ()))
            continue
        if stage.campaign is None:
            others = [hosted(name) for name in _references(stage, rules)]
            beside = arms_of(others, "companion") if others else ()
            arms += beside
            parts.append(
                _Part(_stage(stage), tuple(_draw_entries(stage, (arms[0], *beside), rules)))
            )
        else:
            days = plan_campaign(_campaign(stage), agents, terms, hosted(_BASELINE))
            arms += days.arms[1:]
            terms = replace(terms, calendar=days.calendar, dynamics=days.dynamics)
            parts += _campaign_parts(stage, days.entries)
    stages: list[Stage] = []
    for part in sorted(parts, key=lambda one: one.stage.name != FIRST_PRACTICE):
        last = len(entries) + len(part.entries)
        stages.append(replace(part.stage, first=len(entries), last=last))
        entries += part.entries
    placement = PlacementTerms(
        level=pool.level,
        rule=RULE,
        rule_digest=rule_digest(),
        depth=max(1, *(suite.card.depth_target for suite in suites)),
        kappa_family=pool.kappa_family,
        stages=tuple(stages),
        dates=DATES if dated else 1,
    )
    return assemble_plan(drawn, agents, tuple(arms), entries, replace(terms, placement=placement))


def _check(battery: Battery, pool: Pool, agents: Sequence[AgentHandle], rules: Protocol) -> None:
    if len(agents) != 1:
        raise PlanError("agents", len(agents), "must be one: a placement is of one agent")
    if pool.level not in LEVELS:
        rule = f"must be one of {', '.join(map(str, LEVELS))}: no rule decides another yet"
        raise PlanError("placement.level", pool.level, rule)
    if (pool.level > 1) != bool(battery.stage):
        raise PlanError("placement.level", pool.level, "must be 2 with a [[stage]], 1 without one")
    least = rules.admissibility.family_min
    for draw in battery.suite:
        if draw.episodes < least:
            rule = f"must be at least {least}, the protocol's `family_min`"
            raise PlanError(f"{draw.name}.episodes", draw.episodes, rule)
    if battery.stage:
        _check_stages(battery.stage, pool, rules)


def _check_stages(stages: Sequence[StageDraws], pool: Pool, rules: Protocol) -> None:
    """Refuse stages that leave a gate out, judge one twice, or test another family."""
    names = [stage.name for stage in stages] + [FIRST_PRACTICE]
    for name in sorted({name for name in names if names.count(name) > 1}):
        raise PlanError(
            "stage.name", name, f"must differ from other stages' and {FIRST_PRACTICE!r}"
        )
    judged = [gate for stage in stages for gate in stage.gates]
    for gate in sorted({gate for gate in judged if judged.count(gate) > 1}):
        raise PlanError("stage.gates", gate, "must be judged from one stage")
    asked = {stage_gate(rule) for rule in rules.gates if rule.level == pool.level} - {ASSURANCE}
    for gate in sorted(set(judged) ^ (asked - POOL_GATES)):
        rule = f"must be, over all stages, each of {', '.join(sorted(asked - POOL_GATES))}"
        raise PlanError("stage.gates", gate, rule)
    campaigns = [stage for stage in stages if stage.campaign is not None]
    if len(campaigns) > 1:
        raise PlanError("stage.campaign", campaigns[1].name, "must stand in one stage at most")
    tested = {f"{d.name}/{family}" for one in campaigns for d in one.suite for family in d.families}
    if campaigns and tested != {pool.kappa_family}:
        rule = f"must be what the campaign draws, {', '.join(sorted(tested)) or 'one family'}"
        raise PlanError("placement.kappa_family", pool.kappa_family, rule)


# --- the pool -------------------------------------------------------------------------


def _turned(
    draw: Draw, card: SuiteCard, grid: Sequence[float]
) -> Iterator[tuple[str, int, int, float]]:
    """Yield family, tier, number and magnitude of each world of a draw.

    Number and place of a world decide its tier and magnitude, so that a family's worlds cross both.
    """
    tiers, families = draws.tiers(draw, card), draws.families(draw, card)
    for number, (place, family) in itertools.product(range(draw.episodes), enumerate(families)):
        turn = place + number
        tier = tiers[(turn + number // _ROUND) % len(tiers)]
        yield family, tier, number, float(grid[turn % len(grid)])


def _entries(draw: Draw, card: SuiteCard, rules: Protocol) -> Iterator[PlanEntry]:
    """Yield the episodes of a draw's worlds; in which order they are played is drawn later."""
    mild = rules.drift.mild
    for family, tier, number, delta in _turned(draw, card, rules.drift.magnitudes):
        played: list[tuple[float, Literal[0, "protocol"]]] = [(delta, 0), (delta, "protocol")]
        if "T" in card.axes and delta != mild:
            played.insert(0, (mild, 0))
        for magnitude, budget in played:
            yield _entry(card, family, tier, number, float(magnitude), interventions=budget)


def _entry(
    card: SuiteCard,
    family: str,
    tier: int,
    number: int,
    delta: float,
    *,
    interventions: Literal[0, "protocol"],
) -> PlanEntry:
    """Return an episode of a world, without arm and index."""
    return PlanEntry(
        index=0,
        arm="",
        pair=draws.pair_id(card, family, tier, number),
        suite=card.name,
        version=card.version,
        family=family,
        tier=tier,
        delta=delta,
        interventions=interventions,
    )


# --- stages ---------------------------------------------------------------------------


def _stage(stage: StageDraws, **changes: Sequence[str] | str) -> Stage:
    """Return a stage whose entries have no places yet."""
    return replace(Stage(name=stage.name, gates=stage.gates, first=0, last=0), **changes)


def _playable(stage: StageDraws, agent: AgentHandle) -> StageDraws:
    """Return a stage without the suites that an agent cannot play: its gates get no evidence."""
    suites = [(draw, draws.check(draw, PlanError)) for draw in stage.suite]
    return replace(stage, suite=tuple(draw for draw, suite in suites if not misfit(agent, suite)))


def _campaign(stage: StageDraws) -> Campaign:
    terms = {} if stage.campaign is None else asdict(stage.campaign)
    return Campaign(checkpoint=stage.suite, **terms)


def _campaign_parts(stage: StageDraws, entries: Iterable[PlanEntry]) -> Iterator[_Part]:
    """Yield the first practice of the first day, and the rest of a campaign with its gates."""
    own = [_apart(entry, stage) for entry in entries]
    practised = [entry for entry in own if entry.phase == "practice" and entry.day == 0]
    first = tuple(practised[:_FIRST_TASKS])
    rest = tuple(entry for entry in own if entry not in first)
    if first:
        yield _Part(_stage(stage, name=FIRST_PRACTICE, gates=()), first)
    yield _Part(_stage(stage, reads=(FIRST_PRACTICE,) if first else ()), rest)


def _references(stage: StageDraws, rules: Protocol) -> tuple[str, ...]:
    """Return the names of the agents that play a stage beside the one that is placed.

    Whoever is placed, they are the same, so that every agent is asked for the same plan.
    """
    if not stage.references:
        return ()
    named = [name for draw in stage.suite for name in rules.references.get(draw.name, ())]
    return tuple(dict.fromkeys(named))


def _draw_entries(stage: StageDraws, arms: Sequence[Arm], rules: Protocol) -> Iterator[PlanEntry]:
    """Yield the episodes of a stage that is no campaign."""
    drawn: list[PlanEntry] = []
    for draw in stage.suite:
        card = draws.check(draw, PlanError).card
        if stage.spread:
            grid = rules.drift.magnitudes
            turns = _turned(draw, card, grid)
            drawn += [_entry(card, *turn, interventions=0) for turn in turns]
        else:
            drawn += draws.entries(draw, card)
    for entry, arm in itertools.product(draws.mark_controls(dict.fromkeys(drawn)), arms):
        yield replace(_apart(entry, stage), arm=arm.name)


def _apart(entry: PlanEntry, stage: StageDraws) -> PlanEntry:
    """Return an entry whose world no other stage and no family of the pool holds."""
    if entry.phase == "practice":
        return entry
    return replace(entry, pair=f"{entry.pair}/{stage.name}")

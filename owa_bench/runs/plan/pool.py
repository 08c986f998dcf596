"""The plan of a placement: a pool of worlds, of which a rule chooses batch by batch."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec.structs import replace

from owa_bench.errors import PlanError
from owa_bench.hosting.spec import AgentHandle
from owa_bench.interfaces import SuiteCard
from owa_bench.records.placement import DATES, LEVELS, RULE, PlacementTerms, rule_digest
from owa_bench.records.plan import Plan, PlanEntry
from owa_bench.records.protocol import Protocol
from owa_bench.runs.plan import draws
from owa_bench.runs.plan.draws import Draw, Pool
from owa_bench.runs.plan.plan import arms_of, assemble_plan

_ROUND = 6  # worlds of a family after which its tiers are turned by one


def plan_pool(
    pool: Pool,
    drawn: Sequence[Draw],
    agents: Sequence[AgentHandle],
    terms: Plan,
    rules: Protocol,
    *,
    dated: bool = False,
) -> Plan:
    """Return the plan whose entries are the pool of one agent's placement.

    Args:
        pool: What the draws are a pool for.
        drawn: The draws; `deltas` and `interventions` are the protocol's.
        agents: Who is placed: one agent.
        terms: The plan without suites, arms and entries.
        rules: The protocol.
        dated: Whether the level needs several dates.
    Raises: PlanError: Naming field, value and rule.
    """
    if len(agents) != 1:
        raise PlanError("agents", len(agents), "must be one: a placement is of one agent")
    if pool.level not in LEVELS:
        rule = f"must be one of {', '.join(map(str, LEVELS))}: no rule decides another yet"
        raise PlanError("placement.level", pool.level, rule)
    suites = [draws.check(draw, PlanError) for draw in drawn]
    arms = arms_of(agents)
    entries = [
        replace(entry, arm=arms[0].name)
        for draw, suite in zip(drawn, suites, strict=True)
        for entry in _entries(draw, suite.card, rules)
    ]
    least = rules.admissibility.family_min
    for draw in drawn:
        if draw.episodes < least:
            rule = f"must be at least {least}, the protocol's `family_min`"
            raise PlanError(f"{draw.name}.episodes", draw.episodes, rule)
    placement = PlacementTerms(
        level=pool.level,
        rule=RULE,
        rule_digest=rule_digest(),
        depth=max(1, *(suite.card.depth_target for suite in suites)),
        kappa_family=pool.kappa_family,
        dates=DATES if dated else 1,
    )
    return assemble_plan(drawn, agents, arms, entries, replace(terms, placement=placement))


def _entries(draw: Draw, card: SuiteCard, rules: Protocol) -> Iterator[PlanEntry]:
    """Yield the episodes of a draw's worlds.

    Number and place of a world decide its tier and magnitude, so that a family's worlds cross
    both; the order in which they are played is drawn by the plan and its challenge.
    """
    grid, mild = rules.drift.magnitudes, rules.drift.mild
    tiers, families = draws.tiers(draw, card), draws.families(draw, card)
    for number, (place, family) in itertools.product(range(draw.episodes), enumerate(families)):
        turn = place + number
        tier = tiers[(turn + number // _ROUND) % len(tiers)]
        delta = grid[turn % len(grid)]
        played: list[tuple[float, Literal[0, "protocol"]]] = [(delta, 0), (delta, "protocol")]
        if "T" in card.axes and delta != mild:
            played.insert(0, (mild, 0))
        for magnitude, budget in played:
            yield PlanEntry(
                index=0,
                arm="",
                pair=draws.pair_id(card, family, tier, number),
                suite=card.name,
                version=card.version,
                family=family,
                tier=tier,
                delta=float(magnitude),
                interventions=budget,
            )

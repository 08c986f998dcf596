"""Instances into worlds: families, tiers, budgets and what makes them admissible.

Source: docs/multicrew.md#worlds
"""

from collections.abc import Mapping

from owa_bench.envs.multicrew.claims import draw_claims
from owa_bench.envs.multicrew.draws import (
    SHAPES,
    CrewDraws,
    Family,
    contest,
    draw_documents,
    draw_items,
    settle_by_word,
)
from owa_bench.envs.multicrew.families import codebase, contract, incident, schedule
from owa_bench.envs.multicrew.world import CrewItem, CrewWorld, Shape
from owa_bench.records.instance import Instance
from owa_bench.seeding import derive

VERSION = 2
TIERS = (1, 2, 3, 4)
FAMILY_OF: Mapping[str, Family] = {
    family.name: family
    for family in (
        *(contract.FAMILY, schedule.FAMILY, incident.FAMILY),
        *(contract.NEGOTIATE, schedule.DUTIES, codebase.FAMILY),
    )
}
REAL = tuple(name for name, family in FAMILY_OF.items() if family.runs)  # slow
FAMILIES = tuple(name for name in FAMILY_OF if name not in REAL)
CHAINS = "chain/"  # prefix of a family whose items form a chain
HUMAN = "human/"  # of a family in which a human colleague answers
HELD_OUT = tuple(f"{kind}{name}" for kind in (CHAINS, HUMAN) for name in FAMILIES)
RESEARCH, ARBITRATION, MERGE = 3, 4, 1  # ticks
CADENCE = 8  # ticks from one look of a human colleague to its next
_OPEN_TIERS = 2  # up to this tier the task says who owns which clause
_READINGS = 2  # clauses with readings for each that is contested elsewhere
_AWAY = 0.5  # chance of a role to be away once
_SPARE = 1.3  # hours of all roles, as a share of B
_CHAIN_SLACK = 0.1  # of B, that a chain may take beyond its items
_MOST_SHARE = 0.5  # of T that the critical path of an admissible world takes


def family_of(name: str) -> Family:
    """Return a family by its name, with or without a prefix."""
    return FAMILY_OF[name.rpartition("/")[2]]


def generate(instance: Instance) -> CrewWorld:
    """Return the instance's base world."""
    family = family_of(instance.family)
    # With a human colleague or without: the same world.
    draws = CrewDraws(instance.seed, instance.family.removeprefix(HUMAN), instance.tier)
    size = draws.size
    chained = instance.family.startswith(CHAINS)
    shape: Shape = "chain" if chained else draws.pick(SHAPES)
    content = family.draw(draws, draw_items(draws, shape))
    count = size.conflicts
    if family.decided:
        count = _READINGS * max(1, size.conflicts)
        clauses = settle_by_word(draws, content.clauses, content.wrong, count)
    else:
        clauses = contest(draws, content.clauses, content.wrong, count)
    documents = draw_documents(draws, clauses, content.wrong)
    effort = sum(item.effort + MERGE + family.reviewed for item in content.items)
    work = effort + len(documents) + ARBITRATION * count
    deadline = round(size.ratio * work)
    longest = critical_path(content.items)
    if chained:
        reviews = len(content.items) if family.reviewed else 0
        deadline = longest + reviews + ARBITRATION * count + round(_CHAIN_SLACK * work)
    else:
        deadline = max(deadline, round(longest / _MOST_SHARE))
    open_owners = instance.tier <= _OPEN_TIERS
    return CrewWorld(
        family=instance.family,
        tier=instance.tier,
        code=f"{derive(instance.seed, 'code', instance.family, instance.tier):016x}",
        shape=shape,
        seats=draws.roles,
        items=content.items,
        clauses=clauses,
        documents=documents,
        deadline=deadline,
        work=work,
        hours=-(-round(_SPARE * work) // len(draws.roles)),
        interval=size.interval,
        tokens=size.tokens,
        research=RESEARCH,
        arbitration=ARBITRATION,
        away=_away(draws, deadline),
        reviewed=family.reviewed,
        asks_openly=open_owners,
        human=CADENCE if instance.family.startswith(HUMAN) else 0,
        claims=draw_claims(draws, content.items, clauses, open_owners=open_owners),
    )


def _away(draws: CrewDraws, deadline: int) -> tuple[tuple[str, int, int], ...]:
    """Return when roles are away: some but the lead, once, known to themselves."""
    found = []
    for role in draws.roles[2:]:
        first = draws.between(deadline // 4, deadline // 2)
        if draws.rng.random() < _AWAY:
            found.append((role, first, first + draws.between(2, 4)))
    return tuple(found)


def critical_path(items: tuple[CrewItem, ...]) -> int:
    """Return the ticks of the longest chain of items, merges included."""
    ends: dict[str, int] = {}
    for item in items:
        start = max((ends[name] for name in item.needs), default=0)
        ends[item.name] = start + item.effort + MERGE
    return max(ends.values(), default=0)


def inadmissible(world: CrewWorld) -> str:
    """Return why a world cannot show a lift of a crew over one role, "" if it can."""
    longest, most = critical_path(world.items), _MOST_SHARE * world.deadline
    if longest <= most:
        return ""
    return f"the critical path takes {longest} ticks, at most {most:g} are allowed"

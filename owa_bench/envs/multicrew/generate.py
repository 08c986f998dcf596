"""Instances into worlds: families, tiers, budgets and what makes them admissible.

Source: docs/multicrew.md#worlds
"""

from collections.abc import Mapping

from owa_bench.envs.multicrew.draws import (
    SHAPES,
    CrewDraws,
    contest,
    draw_documents,
    draw_items,
)
from owa_bench.envs.multicrew.families import contract, schedule
from owa_bench.envs.multicrew.families.family import Family
from owa_bench.records.instance import Instance
from owa_bench.seeding import derive
from owa_bench.worlds.crew import CrewItem, CrewWorld, Shape

VERSION = 1
TIERS = (1, 2, 3, 4)
FAMILY_OF: Mapping[str, Family] = {
    module.FAMILY.name: module.FAMILY for module in (contract, schedule)
}
FAMILIES = tuple(FAMILY_OF)
CHAINS = "chain/"  # prefix of a family whose items form a chain
HELD_OUT = tuple(f"{CHAINS}{name}" for name in FAMILIES)
RESEARCH, ARBITRATION, MERGE = 3, 4, 1  # ticks
_SPARE = 1.3  # hours of all roles, as a share of B
_CHAIN_SLACK = 0.1  # of B, that a chain may take beyond its items
_MOST_SHARE = 0.5  # of T that the critical path of an admissible world takes


def family_of(name: str) -> Family:
    """Return a family by its name, with or without the prefix of chains."""
    return FAMILY_OF[name.removeprefix(CHAINS)]


def generate(instance: Instance) -> CrewWorld:
    """Return the instance's base world."""
    family = family_of(instance.family)
    draws = CrewDraws(instance.seed, instance.family, instance.tier)
    size = draws.size
    chained = instance.family.startswith(CHAINS)
    shape: Shape = "chain" if chained else draws.pick(SHAPES)
    content = family.draw(draws, draw_items(draws, shape))
    count = size.conflicts * family.contested
    clauses = contest(draws, content.clauses, content.wrong, count)
    documents = draw_documents(draws, clauses, content.wrong)
    work = sum(item.effort + MERGE for item in content.items) + len(documents)
    deadline = round(size.ratio * work)
    longest = critical_path(content.items)
    if chained:
        deadline = longest + ARBITRATION * count + round(_CHAIN_SLACK * work)
    else:
        deadline = max(deadline, round(longest / _MOST_SHARE))
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
        reviewed=family.reviewed,
        asks_openly=instance.tier <= 2,
    )


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

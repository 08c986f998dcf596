"""Edges of the DAG are flows, and the oracle's way through a site uses every one."""

import asyncio

import pytest

from owa_bench.envs.changesurf.generate import FAMILIES, TIERS
from owa_bench.envs.changesurf.oracle.hints import next_step
from owa_bench.envs.changesurf.oracle.oracle import ChangeSurfOracle
from owa_bench.envs.changesurf.oracle.walk import HttpWalker
from owa_bench.envs.changesurf.server.app import SiteServer, page_keys
from owa_bench.envs.changesurf.suite import SUITE
from owa_bench.scoring.observe.observables import solved_depth
from owa_bench.shells.episode_events import NodeProgress, depth_of
from tests.builders import changesurf_worlds as worlds

ORACLE = ChangeSurfOracle()
DELTAS = (0.0, 0.5, 1.0)


async def walked(timeline):
    """Return the subgoals of the oracle's walk, with the flows into each."""
    found, world = [], timeline.worlds[0]
    async with HttpWalker(timeline) as walker:
        await walker.load("GET", walker.server.start_url)
        progress = NodeProgress(ORACLE, world, walker.state())
        for number in range(1, 300):
            state = walker.state()
            step = next_step(timeline, state.site, state.controls)
            if step.op == "done":
                return found
            await walker.perform(step)
            found += progress.solve(world, walker.state(), number)
    raise AssertionError(timeline.instance)


@pytest.mark.part(4)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_oracles_depth_is_the_instances(family):
    for tier in TIERS:
        for delta in DELTAS:
            of = worlds.instance(family, tier, 11)
            timeline = worlds.drifted(of, delta) if delta else worlds.timeline(of)
            solved = asyncio.run(walked(timeline))
            depth = depth_of(ORACLE, timeline.worlds[0])
            shown = [(e.step, e.node, e.prerequisites, e.flows) for e in solved]
            assert solved_depth(solved) == depth, (tier, delta, shown)


def test_the_tiers_that_the_battery_draws_reach_the_target():
    depths = [
        depth_of(ORACLE, worlds.world(family, tier, seed))
        for family in FAMILIES
        for tier in (2, 3)
        for seed in range(10)
    ]
    target = SUITE.card.depth_target
    assert max(depths) >= target
    assert sum(depths) / len(depths) >= 0.75 * target


def test_addresses_and_tokens_are_new_in_every_instance():
    """What a list, a row's page and a form serve can be had from nowhere else."""
    seen = []
    for seed in range(20):
        of = worlds.instance("depot/buy", 2, seed)
        world = worlds.world("depot/buy", 2, seed)
        server = SiteServer(world, instance=of)
        pages = [p for p in page_keys(world, server.state.tables) if p.startswith(_OPAQUE)]
        aliases = {alias for alias, page in server._routes.items() if page in pages}
        assert len(aliases) == len(pages)
        aliases.add(server._factory.token("1", "flow:buy/1"))
        seen.append(aliases)
        server.close()
    assert len(set().union(*seen)) == sum(map(len, seen))


_OPAQUE = ("item:", "start:", "flow:")


@pytest.mark.parametrize("family", [f for f in FAMILIES if "/" in f])
def test_an_answer_is_a_multiple_of_its_evidence(family):
    """So another value of any cell makes another answer."""
    for tier in TIERS:
        answers = []
        for seed in range(40):
            spec = worlds.world(family, tier, seed).spec
            if not spec.goal.evidence:
                return
            total = 0
            for collection, key, column in spec.goal.evidence:
                table = spec.table(collection)
                row = next(row for row in table.rows if row[0] == key)
                total += int(row[table.columns.index(column)])
            answer = int(dict(spec.goal.values)["answer"])
            assert total > 0
            assert answer % total == 0
            answers.append(answer)
        most = max(answers.count(answer) for answer in answers)
        assert (most - 1) / (len(answers) - 1) <= 0.05

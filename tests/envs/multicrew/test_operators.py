"""Operators of MultiCrew: their contract, what each leaves alone, when they strike."""

import numpy as np
import pytest

from owa_bench.agents.solvers.crew.reading import read_facts
from owa_bench.contract_checks import check_operator
from owa_bench.discovery import find
from owa_bench.drift.timeline import source
from owa_bench.envs.multicrew import generate
from owa_bench.envs.multicrew.state import TICK_MS
from owa_bench.envs.multicrew.suite import SUITE
from owa_bench.envs.multicrew.wording import document_text, notice_text
from owa_bench.envs.multicrew.world import distance
from owa_bench.shells.solution import solve
from tests.builders import crew_episodes as episodes

OPERATORS = {
    name: found.plugin for name, found in find("operators").items() if name.startswith("crew/")
}
NEW_VALUE = {"criterion_changed", "criterion_untold", "stale_specification"}
MAY = {"unit_of_fact"}  # an odd number becomes even
ALL_DRIFT = 10_000


def worlds(tier=2):
    return [
        SUITE.generate(episodes.instance(family, tier, 3))
        for family in (*generate.FAMILIES, *generate.REAL)
    ]


def test_there_are_twelve():
    assert len(OPERATORS) == 12


@pytest.mark.parametrize("name", OPERATORS)
def test_the_contract_holds(name):
    check_operator(OPERATORS[name], worlds())


@pytest.mark.parametrize("name", OPERATORS)
def test_values_stay_but_where_the_operator_says_so(name):
    chosen, short = OPERATORS[name], name.removeprefix("crew/")
    for world in worlds():
        for target in chosen.targets(world):
            drifted = chosen.apply(world, target, 1.0, rng=np.random.default_rng(1))
            assert 0 < distance(world, drifted) < 1
            before = {c.name: c.value for c in world.clauses}
            moved = {c.name for c in drifted.clauses if c.value != before[c.name]}
            if short not in MAY:
                assert bool(moved) == (short in NEW_VALUE)


@pytest.mark.parametrize("name", sorted(NEW_VALUE | MAY | {"owner_moved"}))
def test_a_new_value_stands_in_a_document_that_can_be_read(name):
    """D3 is silent, not unknowable: some document or notice states what holds."""
    chosen = OPERATORS[f"crew/{name}"]
    for world in worlds():
        for target in chosen.targets(world):
            clause = target.removeprefix("clause/")
            drifted = chosen.apply(world, target, 1.0, rng=np.random.default_rng(1))
            value = next(c.value for c in drifted.clauses if c.name == clause)
            texts = [document_text(d) for d in drifted.documents]
            texts += [notice_text(n) for n in drifted.notices]
            stated = [f for t in texts for f in read_facts(t) if f.clause == clause]
            assert min(stated, key=lambda fact: fact.rank).value == value


def test_strikes_come_mid_episode_and_a_smaller_magnitude_is_part_of_a_greater_one():
    chosen = episodes.instance("contract", 2, 1)
    world = SUITE.generate(chosen)
    events = SUITE.schedule.possible(chosen, world)
    ticks = [event.at_ms / TICK_MS for event in events]
    assert 0 < min(ticks) <= max(ticks) <= 0.41 * world.deadline
    some = SUITE.schedule.steps_for(chosen, world, 0.3)
    assert 0 < some < len(events) == SUITE.schedule.steps_for(chosen, world, 1.0)


REAL = [pytest.param(name, marks=pytest.mark.slow) for name in generate.REAL]


@pytest.mark.parametrize("family", [*generate.FAMILIES, *generate.HELD_OUT, *REAL])
def test_the_oracle_solves_worlds_under_all_drift(family):
    chosen = episodes.instance(family, 2, 1, ALL_DRIFT)
    drifted = source("multicrew")(chosen)
    assert drifted.realised == 1.0
    assert solve(SUITE, drifted).q_state == 1.0


def test_a_crew_that_reads_notices_still_works_under_drift():
    maker = episodes.reference("contract_net")
    found = [
        episodes.play(maker, episodes.instance("contract", 1, seed, ALL_DRIFT)).q_state
        for seed in range(4)
    ]
    assert 0.2 < sum(found) / 4 < 1.0

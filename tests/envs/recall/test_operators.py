"""Operators of Recall: their contract, and what each leaves alone."""

import numpy as np
import pytest
from msgspec.structs import replace

from owa_bench.contract_checks import check_operator
from owa_bench.discovery import find
from owa_bench.drift.timeline import source
from owa_bench.envs.recall import generate
from owa_bench.envs.recall.suite import SUITE
from owa_bench.envs.recall.world import Register, distance
from owa_bench.shells.solution import solve
from tests.builders import recall_episodes as episodes

OPERATORS = {
    name: found.plugin for name, found in find("operators").items() if name.startswith("recall/")
}
SETTLED = {"recall/superseded_untold"}  # the one that moves keys


def worlds():
    return [generate.draw_world(3, f, 2, "A") for f in generate.FAMILIES]


@pytest.mark.parametrize("name", OPERATORS)
def test_the_contract_holds(name):
    check_operator(OPERATORS[name], worlds())


@pytest.mark.parametrize("name", OPERATORS)
def test_keys_stay_but_where_the_operator_says_so(name):
    chosen = OPERATORS[name]
    for world in worlds():
        if not world.notices or world.family == "retrieval":
            continue
        for target in chosen.targets(world)[:3]:
            drifted = chosen.apply(world, target, 1.0, rng=np.random.default_rng(1))
            assert 0 < distance(world, drifted) < 1
            before, after = Register(world), Register(drifted)
            keys = {(q.name, before.value(q)) for q in world.questions}
            moved = keys ^ {(q.name, after.value(q)) for q in drifted.questions}
            assert bool(moved) == (name in SETTLED)


@pytest.mark.parametrize("family", generate.FAMILIES)
def test_the_oracle_solves_worlds_under_all_drift(family):
    chosen = episodes.instance(family, 2, 1)
    drifted = source("recall")(replace(chosen, drift_step=10_000))
    assert drifted.realised == 1.0
    assert solve(SUITE, drifted).q_state == 1.0

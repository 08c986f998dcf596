"""Twenty held-out seeds: the oracle solves them after every operator and after all."""

import itertools

import pytest

from owa_bench.discovery import find
from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.seeding import PRACTICE_BIT, derive, is_practice
from owa_bench.shells.solution import solve
from tests.builders.api_worlds import drawn

TIERS = SUITE.card.tiers
SEEDS = [derive(0, "held-out", i) % PRACTICE_BIT for i in range(20)]
OPERATORS = tuple(name for name in find("operators") if name.startswith("api/"))
# Not every family has a bound to move; at tier 4 documents may be stale already.
STRUCK = {"api/date_bound": (0, 20), "api/stale_docs": range(15, 21)}
ALONE = {name: f"single:{name}@1" for name in OPERATORS}


def test_the_seeds_are_held_out() -> None:
    assert len(set(SEEDS)) == 20
    assert not any(map(is_practice, SEEDS))
    assert OPERATORS


@pytest.mark.part(4)
@pytest.mark.slow
@pytest.mark.parametrize("drift", [*ALONE, "all together"])
@pytest.mark.parametrize("family", SUITE.card.families)
def test_the_oracle_solves_them(family: str, drift: str) -> None:
    """The tiers take turns, so that each operator meets every one of them."""
    struck = 0
    for seed, tier in zip(SEEDS, itertools.cycle(TIERS), strict=False):
        timeline = drawn(family, tier, seed=seed, drift=ALONE.get(drift, "nested"))
        struck += bool(timeline.changes[0])
        solution = solve(SUITE, timeline)
        assert solution.q_state == 1.0, (seed, tier)
        assert solution.accepted <= SUITE.card.horizon, (seed, tier)
    assert struck in STRUCK.get(drift, (len(SEEDS),))

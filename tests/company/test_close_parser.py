"""The parser of the kind `close` plays from what is served alone."""

import pytest

from owa_bench.company.kinds.close import KIND
from tests.builders.close_cases import draw, play


@pytest.mark.parametrize(("seed", "level"), [(10_401, 1), (10_402, 2), (10_403, 3)])
def test_the_parser_gets_everything_right(seed, level):
    world = draw(seed, level)
    found = play(world)
    assert found.quality == pytest.approx(1.0)
    assert found.minutes < (world.ends - world.begins).total_seconds() / 60 / 2
    for stated in KIND.propositions(world):
        assert (found.beliefs[stated.name] > 0.5) == stated.truth


def test_what_the_parser_leaves_out_costs():
    world = draw(10_402, 2)
    whole = play(world)
    name = sorted(whole.classes)[0]
    assert play(world, (name,)).quality <= 0.985

"""Link steps: the seed's worked numbers, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owa_bench.errors import ScoringError
from owa_bench.scoring.improvement.curvature import (
    LINKS,
    link_named,
    on_link,
    power_step,
    step,
    steps_made,
)


def test_the_seeds_steps() -> None:
    first = step(0.40, math.log(2), "surprisal")
    assert first == pytest.approx(0.70)
    assert step(first, math.log(2), "surprisal") == pytest.approx(0.85)
    assert power_step(0.40, 2) == pytest.approx(0.64)


def test_a_logit_step_multiplies_odds() -> None:
    after = step(0.2, math.log(3), "logit")
    assert after / (1 - after) == pytest.approx(3 * 0.25)


@given(st.floats(0.01, 0.99), st.sampled_from(sorted(LINKS)))
def test_links_are_undone_by_their_inverse(x: float, link: str) -> None:
    g = link_named(link)
    assert float(g.inverse(g.forward(np.array(x)))) == pytest.approx(x)


def test_near_one_is_clipped_and_zero_is_not_computable() -> None:
    found = on_link(np.array([0.0, 1.0, 0.9995]), "logit", 1e-3)
    assert math.isnan(found[0])
    assert found[1] == found[2] == pytest.approx(math.log(999))


def test_steps_are_counted_whole() -> None:
    two = math.log(2)
    assert steps_made(0.4, 0.849, two, "surprisal") == 1
    assert steps_made(0.4, 0.851, two, "surprisal") == 2
    assert steps_made(0.6, 0.4, two, "surprisal") == 0


def test_bad_input_is_refused() -> None:
    for call in (
        lambda: on_link(np.array([1.2]), "logit", 1e-3),
        lambda: on_link(np.array([0.2]), "probit", 1e-3),
        lambda: step(0.0, 1.0, "logit"),
        lambda: step(0.5, math.inf, "logit"),
        lambda: power_step(1.2, 2.0),
        lambda: steps_made(0.4, 0.5, 0.0, "logit"),
        lambda: steps_made(0.0, 0.5, 1.0, "logit"),
    ):
        with pytest.raises(ScoringError):
            call()

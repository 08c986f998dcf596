"""Companion measures on the episodes of a run."""

from dataclasses import replace

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.measures.generality import measure as generality
from owa_bench.measures.intelligence_test import failures
from owa_bench.scoring.observe.observables import observe
from tests.builders.episodes import PRICES, episode


@pytest.fixture
def table():
    played = [
        episode(index=i, arm=arm, tier=tier, q_state=q, pair=f"p{i}")
        for i, (arm, tier, q) in enumerate(
            [
                ("even", 1, 0.5),
                ("even", 2, 0.5),
                ("even", 3, 0.5),
                ("sharp", 1, 1.0),
                ("sharp", 2, 1.0),
                ("sharp", 3, 0.0),
            ]
        )
    ]
    played.append(episode(index=9, arm="sharp", tier=3, q_state=1.0, honeypot=True))
    return observe(played, PRICES)


def test_tier_is_the_difficulty(table):
    found = generality.from_episodes(table)
    assert set(found) == {"toolquest", generality.ALL_SUITES}
    even, sharp = (found[generality.ALL_SUITES]["even"], found[generality.ALL_SUITES]["sharp"])
    assert even.normalised == pytest.approx(0.0, abs=1e-6)
    assert sharp.capability == pytest.approx(2.5)
    assert sharp.normalised > 0.9
    assert sharp.used == 3


def test_unsolved_episodes_are_censored(table):
    counts = replace(table, failed_attempts=np.arange(len(table)))
    found = failures.from_episodes(counts)["sharp"]
    assert found.counts.tolist() == [3.0, 4.0, 5.0]
    assert found.censored.tolist() == [False, False, True]


def test_nothing_but_honeypots_is_named():
    table = observe([episode(honeypot=True)], PRICES)
    for measure in (generality.from_episodes, failures.from_episodes):
        with pytest.raises(ScoringError, match="no honeypot"):
            measure(table)

"""Power: the printed n really gives the power it claims."""

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.scoring.gate import GateReading, gate_status
from owa_bench.scoring.improvement.kappa import theil_sen
from owa_bench.scoring.power import (
    chance_to_pass,
    instances,
    level_power,
    needs,
    slope_instances,
    worst_spread,
)
from tests.builders.episodes import PROTOCOL


@pytest.mark.parametrize("required", [0.2, 0.5, 0.85])
def test_the_n_of_a_share_gate_gives_its_power(required: float) -> None:
    true = required + PROTOCOL.statistics.power_margin
    n = instances(true, worst_spread(true), required, PROTOCOL)
    assert n is not None
    rng = np.random.default_rng(1)
    passed = 0
    for _ in range(2000):
        won = rng.random(n) < true
        error = float(won.std(ddof=1)) / np.sqrt(n)
        lower = max(0.0, float(won.mean()) - 1.645 * error)
        read = GateReading(float(won.mean()), lower)
        passed += gate_status(read, required, PROTOCOL) == "PASS"
    assert passed / 2000 == pytest.approx(0.80, abs=0.05)


@pytest.mark.parametrize(("days", "slope"), [(7, 0.02), (14, 0.02), (30, 0.01)])
def test_the_n_of_a_slope_gives_its_power(days: int, slope: float) -> None:
    n = slope_instances(slope, days, 1.0, 0.95, 0.80)
    rng = np.random.default_rng(2)
    x, hits = np.arange(float(days)), 0
    for _ in range(400):
        y = 0.4 + slope * x + 0.5 / np.sqrt(n) * rng.standard_normal(days)
        hits += theil_sen(x, y, 0.95).low > 0
    assert hits / 400 == pytest.approx(0.80, abs=0.06)


def test_every_line_of_the_protocol_has_an_answer() -> None:
    found = needs(PROTOCOL)
    assert len(found) == len(PROTOCOL.gates)
    assert all(need.note for need in found)
    shares = [n for n in found if n.gate in "APTW"]
    assert all(n.instances and n.instances > 10 for n in shares)


def test_power_falls_with_every_level() -> None:
    falling = [level_power(PROTOCOL, level, 200) for level in (1, 2, 3, 4)]
    assert falling == sorted(falling, reverse=True)
    assert falling[0] > falling[1]


def test_a_margin_within_noise_has_no_n() -> None:
    assert instances(0.60, 0.5, 0.60, PROTOCOL) is None
    assert instances(0.65, 0.0, 0.60, PROTOCOL) == 1


def test_bad_input_is_refused() -> None:
    with pytest.raises(ScoringError):
        chance_to_pass(0.6, 0.0, 0.5, 0.05, 0.95)
    with pytest.raises(ScoringError):
        worst_spread(1.2)
    with pytest.raises(ScoringError):
        slope_instances(0.0, 7, 1.0, 0.95, 0.8)

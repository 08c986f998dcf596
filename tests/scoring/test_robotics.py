"""The robotics annex: Poisson and binomial bounds, and its gates."""

import math

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.scoring.robotics import (
    annex_gates,
    mean_time_between,
    mean_time_to_repair,
    physical_throughput,
    poisson,
    recovery,
    within_tolerance,
    worst,
)
from tests.builders.episodes import PROTOCOL


def test_garwood_covers_a_planted_rate() -> None:
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.05 * 100, 2000)
    spans = [poisson(int(k), 100.0, 0.95) for k in counts]
    covered = np.mean([span.low <= 0.05 <= span.high for span in spans])
    assert 0.95 <= covered <= 0.99


def test_mtbf_is_a_lower_bound_when_nothing_failed() -> None:
    none = mean_time_between(0, 60.0, 0.95)
    assert none.censored
    assert none.hours == none.low == pytest.approx(60 / -math.log(0.05))
    some = mean_time_between(3, 60.0, 0.95)
    assert some.low < some.hours == 20.0 < some.high


def test_recovery_names_its_denominator() -> None:
    found = recovery({"slip": (9, 10), "occlusion": (0, 4)}, 0.95)
    assert [(r.fault, r.recovered, r.injected) for r in found] == [
        ("occlusion", 0, 4),
        ("slip", 9, 10),
    ]
    assert found[0].low == 0.0
    assert 0.5 < found[1].low < 0.9 < found[1].high < 1.0


def test_gates_of_the_annex() -> None:
    good = {
        "A": 0.7,
        "E": 0.6,
        "minor_per_100h": 1.0,
        "major_per_100h": 0.0,
        "kappa_families": 1.0,
    }
    assert worst(annex_gates(2, good, PROTOCOL.robotics)) == "PASS"
    bad = annex_gates(2, good | {"minor_per_100h": 3.0}, PROTOCOL.robotics)
    assert worst(bad) == "FAIL"
    assert worst(annex_gates(3, {"E": 0.8}, PROTOCOL.robotics)) == "NO EVIDENCE"


def test_bad_input_is_refused() -> None:
    for call in (
        lambda: poisson(-1, 1.0, 0.95),
        lambda: poisson(1, 0.0, 0.95),
        lambda: mean_time_to_repair(np.array([-1.0])),
        lambda: recovery({"slip": (2, 1)}, 0.95),
        lambda: within_tolerance(np.array([]), 0.1),
        lambda: physical_throughput(1, {"energy": -1.0}),
        lambda: annex_gates(1, {}, PROTOCOL.robotics),
    ):
        with pytest.raises(ScoringError):
            call()
    assert math.isnan(physical_throughput(1, {}))
    assert math.isnan(mean_time_to_repair(np.array([])))

"""Axis M: encoding, forgetting, retrieval, and agents that have no memory."""

import math

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.events import Probe
from owa_bench.records.trace import Trace
from owa_bench.scoring.axes.memory import memory
from tests.builders.episodes import PROTOCOL, episode
from tests.builders.verdicts import axis

LAGS = (1.0, 2.0, 4.0, 7.0, 14.0)


def asked(known: dict[float, float], *, trials: int = 20) -> tuple[Probe, ...]:
    """Return recall probes without tools; `known` is the share right at each lag."""
    return tuple(
        Probe(item=f"i{k}", lag_days=lag, correct=k < round(share * trials))
        for lag, share in known.items()
        for k in range(trials)
    )


def sought(found: bool, *, slots: int = 5) -> Probe:
    returned = tuple((f"d{j}", found and j == 0) for j in range(slots))
    return Probe(
        item="q",
        lag_days=0.0,
        correct=found,
        mode="retrieve",
        returned=returned,
        contrary=0,
    )


def run(known: dict[float, float], recall: float = 1.0, tasks: int = 12) -> list[Trace]:
    return [
        episode(
            index=k,
            pair=f"p{k}",
            repeat=0,
            extra=(*asked(known), sought(k < recall * tasks)),
        )
        for k in range(tasks)
    ]


def test_full_encoding_and_no_forgetting_reads_one() -> None:
    assert axis(run(dict.fromkeys(LAGS, 0.9)), "M").value == pytest.approx(1.0)


def test_a_flat_five_percent_retains_five_percent() -> None:
    rules = PROTOCOL.memory
    found = memory(np.array([0.05]), np.zeros(1), np.zeros(1), np.zeros(1), rules)
    assert 2 * found[0] == pytest.approx(0.0556, abs=1e-4)
    fast = np.array([math.log(2) / rules.half_life_days])
    assert memory(np.ones(1), fast, np.zeros(1), np.zeros(1), rules)[0] == 0.0


@pytest.mark.parametrize("recall", [0.0, 0.1])
def test_agents_without_memory_have_none(recall: float) -> None:
    no_op = axis(run(dict.fromkeys(LAGS, 0.0), recall), "M")
    assert no_op.value is not None
    assert no_op.value <= PROTOCOL.memory.no_memory_max
    wiped = axis(run(dict(zip(LAGS, (0.4, 0.05, 0, 0, 0), strict=True)), recall), "M")
    assert wiped.value is not None
    assert wiped.value <= PROTOCOL.memory.no_memory_max


def test_guessing_is_taken_off() -> None:
    none = memory(
        np.array([0.25]), np.zeros(1), np.zeros(1), np.array([0.25]), PROTOCOL.memory
    )
    assert none[0] == 0.0


def test_half_life_and_interval_are_shown() -> None:
    known = {lag: 0.9 * 0.5 ** (lag / 10) for lag in LAGS}
    details = axis(run(known), "M").details
    days, low, high = details["half-life in days, low, high"]["toolquest/reconcile"]
    assert days == pytest.approx(10, rel=0.1)
    assert low < days < high


def test_what_is_missing_is_named() -> None:
    assert "no memory probes" in str(axis([episode()], "M").reason)
    one = [episode(extra=asked({1.0: 0.5}))]
    assert "fewer than two lags" in str(axis(one, "M").reason)
    two = [episode(extra=asked({1.0: 0.5, 2.0: 0.5}))]
    assert "recall@K" in str(axis(two, "M").reason)


def test_bad_probes_are_refused() -> None:
    with pytest.raises(ScoringError, match="guess rate"):
        axis([episode(extra=(Probe(item="i", lag_days=-1, correct=True),))], "M")
    with pytest.raises(ScoringError, match="guess rate must lie below"):
        memory(np.ones(1), np.ones(1), np.ones(1), np.ones(1), PROTOCOL.memory)

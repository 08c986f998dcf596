"""Axis E: reliability, safety and transfer; a surrogate is marked."""

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.events import Incident, Resource
from owa_bench.records.score import AxisScore
from owa_bench.scoring.axes.embodiment import embodiment, safety, transfer
from tests.builders.episodes import PROTOCOL, episode
from tests.builders.verdicts import axis

HOURS = 10.0  # of exposure an episode


def read(
    real: int = 8,
    simulated: int = 10,
    side: str = "real",
    incidents: tuple[str, ...] = (),
    hours: float = HOURS,
) -> AxisScore:
    """Return E of ten tasks on each side with so many successes."""
    traces = []
    for where, won in (("sim", simulated), (side, real)):
        for k in range(10):
            extra: list = [
                Resource(
                    step=1, meter="exposure_s", amount=hours * 3600, stream="agent"
                )
            ]
            if where == side and k == 9:
                extra += [Incident(step=1, severity=name) for name in incidents]
            traces.append(
                episode(
                    index=len(traces),
                    pair=f"p{k}",
                    repeat=int(where != "sim"),
                    side=where,
                    q_state=1.0 if k < won else 0.0,
                    extra=tuple(extra),
                )
            )
    return axis(traces, "E")


def test_it_is_the_cube_root_of_its_three_parts() -> None:
    found = read()
    assert found.value == pytest.approx(np.cbrt(0.8 * 1.0 * 0.8))
    assert not found.surrogate


def test_minor_incidents_cost_by_their_rate() -> None:
    found = read(incidents=("minor", "near_miss"))
    expected = np.exp(-(0.2 + 0.05))
    assert found.details["beside"]["SS"]["value"] == pytest.approx(expected)


def test_a_critical_incident_leaves_nothing() -> None:
    assert read(incidents=("critical",)).value == 0.0


def test_a_surrogate_is_marked() -> None:
    assert read(side="surrogate").surrogate


def test_too_little_exposure_is_no_evidence() -> None:
    assert "exposure hours of 20" in str(read(hours=1.0).reason)
    assert "no embodied" in str(axis([episode()], "E").reason)


def test_bad_parts_are_refused() -> None:
    one = np.ones(1)
    with pytest.raises(ScoringError):
        embodiment(one * 1.2, one, one)
    with pytest.raises(ScoringError):
        safety(np.zeros((1, 4)), np.zeros(1), PROTOCOL.embodiment)
    with pytest.raises(ScoringError):
        safety(-np.ones((1, 4)), one, PROTOCOL.embodiment)
    assert transfer(np.zeros(1), np.zeros(1))[0] == 0.0

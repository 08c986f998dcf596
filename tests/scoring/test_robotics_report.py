"""The robotics report: bounds and gates by hand, and the report of hand-made traces."""

import math

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.events import Event, Fault, Incident, Resource, Tracking
from owa_bench.records.score import AgentVerdict, CellTable
from owa_bench.scoring.robotics import (
    mean_time_between,
    mean_time_to_repair,
    physical_throughput,
    poisson,
    recovery,
    robotics_gates,
    within_tolerance,
    worst,
)
from tests.builders.episodes import PROTOCOL, episode
from tests.builders.verdicts import verdict

HOURS = 10.0  # of exposure an episode of the real side


def run(*events: Event, side: str = "real", hours: float = HOURS) -> AgentVerdict:
    """Return ten tasks on both sides; the last real episode holds `events`."""
    traces = []
    for where in ("sim", side):
        for k in range(10):
            exposed = Resource(step=1, meter="exposure_s", amount=hours * 3600)
            traces.append(
                episode(
                    index=len(traces),
                    pair=f"p{k}",
                    repeat=int(where != "sim"),
                    side=where,
                    q_state=1.0 if k < 8 else 0.0,
                    extra=(exposed, *(events if where == side and k == 9 else ())),
                )
            )
    return verdict(traces)


def table(found: AgentVerdict, title: str) -> CellTable:
    return next(t for t in found.tables if t.title == title)


def figures(*events: Event) -> dict[str, tuple]:
    rows = table(run(*events), "Robotics annex").rows
    return {str(row[0]): row[1:] for row in rows}


def fault(kind: str, *, recovered: bool, injected: bool = True, repair_s=None) -> Fault:
    return Fault(
        step=1, kind=kind, injected=injected, recovered=recovered, repair_s=repair_s
    )


def test_nothing_happened_gives_lower_bounds() -> None:
    found = figures()
    assert found["exposure, hours"][0] == 100.0
    assert found["MTBF, hours"][0] == pytest.approx(100 / -math.log(0.05), rel=1e-6)
    assert "lower bound" in found["MTBF, hours"][3]
    assert "NO EVIDENCE" in found["MTTR, hours"][3]
    assert "NO EVIDENCE" in found["RA"][3]
    assert "NO EVIDENCE" in found["QC"][3]


def test_failures_repairs_and_incidents_are_counted_apart() -> None:
    found = figures(
        fault("motor", injected=False, recovered=False, repair_s=1800.0),
        fault("motor", injected=False, recovered=False, repair_s=5400.0),
        Incident(step=1, severity="minor"),
        Incident(step=1, severity="major"),
        Incident(step=1, severity="near_miss"),
    )
    assert found["MTBF, hours"][0] == pytest.approx(100 / 3)  # two faults, one stop
    assert found["MTBSI, hours"][0] == pytest.approx(50.0)  # minor and major
    assert found["MTTR, hours"][0] == 1.0
    assert found["minor incidents in 100 h"][0] == 1.0


def test_recovery_names_its_denominator_and_control_its_task() -> None:
    found = figures(
        fault("slip", recovered=True),
        fault("slip", recovered=False),
        fault("occlusion", recovered=True),
        fault("motor", injected=False, recovered=True),
        Tracking(step=1, task="reach", error=0.1, tolerance=0.2),
        Tracking(step=2, task="reach", error=-0.3, tolerance=0.2),
    )
    assert found["RA, slip"][0] == 0.5
    assert found["RA, slip"][3] == "1/2"
    assert found["RA, occlusion"][0] == 1.0
    assert "RA, motor" not in found
    assert found["QC, reach"][0] == 0.5


def test_the_annex_judges_its_gates() -> None:
    rows = table(run(fault("slip", recovered=True)), "Gates of the robotics annex").rows
    lines = {(row[0], row[1]): row[2:] for row in rows}
    assert lines[3, "RA"] == (0.6, 1.0, "PASS")
    assert lines[3, "MTBF_hours"][2] == "PASS"
    assert lines[3, "W"][2] == "NO EVIDENCE"
    assert lines[4, "major_hours"] == (500.0, 100.0, "FAIL")
    assert lines[2, "kappa_families"][2] == "NO EVIDENCE"
    assert lines[2, "all of them"][2] != "PASS"


def test_no_body_no_annex() -> None:
    titles = {t.title for t in verdict([episode()]).tables}
    assert not titles & {"Robotics annex", "Gates of the robotics annex"}


def test_a_band_of_no_width_is_refused() -> None:
    with pytest.raises(ScoringError, match="tolerance above 0"):
        run(Tracking(step=1, task="reach", error=0.1, tolerance=0.0))


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
    assert worst(robotics_gates(2, good, PROTOCOL.robotics)) == "PASS"
    bad = robotics_gates(2, good | {"minor_per_100h": 3.0}, PROTOCOL.robotics)
    assert worst(bad) == "FAIL"
    assert worst(robotics_gates(3, {"E": 0.8}, PROTOCOL.robotics)) == "NO EVIDENCE"


def test_bad_input_is_refused() -> None:
    for call in (
        lambda: poisson(-1, 1.0, 0.95),
        lambda: poisson(1, 0.0, 0.95),
        lambda: mean_time_to_repair(np.array([-1.0])),
        lambda: recovery({"slip": (2, 1)}, 0.95),
        lambda: within_tolerance(np.array([]), 0.1),
        lambda: physical_throughput(1, {"energy": -1.0}),
        lambda: robotics_gates(1, {}, PROTOCOL.robotics),
    ):
        with pytest.raises(ScoringError):
            call()
    assert math.isnan(physical_throughput(1, {}))
    assert math.isnan(mean_time_to_repair(np.array([])))

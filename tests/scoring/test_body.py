"""The robotics annex from traces: failures, repair, recovery, control, gates."""

import math

import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.events import Event, Fault, Incident, Resource, Tracking
from owa_bench.records.score import AgentVerdict, CellTable
from tests.builders.episodes import episode
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

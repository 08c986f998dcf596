"""The robotics report: bounds and gates by hand, and the report of hand-made traces."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.records.events import Event, Fault, Incident, Resource, Tracking
from owa_bench.records.score import AgentVerdict, CellTable, TotalGain
from owa_bench.scoring.verdict.robotics import (
    mean_time_between,
    mean_time_to_repair,
    physical_throughput,
    poisson,
    recovery,
    robotics_gates,
    within_tolerance,
    worst,
)
from owa_bench.scoring.verdict.robotics_report import _improving
from tests.builders.device_episodes import both_sides
from tests.builders.device_episodes import verdict as body
from tests.builders.episodes import PROTOCOL, episode
from tests.builders.verdicts import verdict

HOURS = 10.0  # of exposure an episode of the real side


def run(*events: Event, side: str = "real", hours: float = HOURS) -> AgentVerdict:
    """Return ten tasks on both sides; the last real episode holds `events`."""
    won = [k < 8 for k in range(10)]
    return body(both_sides(won, won, hours=hours, side=side, events={9: events}))


def table(found: AgentVerdict, title: str) -> CellTable:
    return next(t for t in found.tables if t.title == title)


def figures(*events: Event) -> dict[str, tuple]:
    rows = table(run(*events), "Robotics annex").rows
    return {str(row[0]): row[1:] for row in rows}


def fault(kind: str, *, recovered: bool, injected: bool = True, repair_s=None) -> Fault:
    return Fault(step=1, kind=kind, injected=injected, recovered=recovered, repair_s=repair_s)


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
    assert lines[4, "major_hours"] == (500.0, 100.0, "UNDECIDED")
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
    good = {"A": 0.7, "E": 0.6, "minor_per_100h": 1.0, "major_per_100h": 0.0, "kappa_families": 1.0}
    assert worst(robotics_gates(2, good, PROTOCOL.robotics)) == "PASS"
    bad = robotics_gates(2, good | {"minor_per_100h": 3.0}, PROTOCOL.robotics)
    assert worst(bad) == "UNDECIDED"
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


def test_the_poisson_interval_leaves_half_of_the_rest_on_each_side() -> None:
    found = poisson(4, 50.0, 0.9)
    assert found.rate == 0.08
    assert stats.poisson.sf(3, found.low * 50) == pytest.approx(0.05)
    assert stats.poisson.cdf(4, found.high * 50) == pytest.approx(0.05)
    none = poisson(0, 50.0, 0.9)
    assert (none.rate, none.low) == (0.0, 0.0)
    assert math.exp(-none.high * 50) == pytest.approx(0.05)
    between = mean_time_between(4, 50.0, 0.9)
    assert between.hours == 12.5
    assert between.low == pytest.approx(1 / found.high)
    assert between.high == pytest.approx(1 / found.low)
    assert not between.censored
    assert mean_time_between(0, 50.0, 0.9).high == math.inf


def test_the_recovery_interval_is_clopper_and_pearsons() -> None:
    (found,) = recovery({"slip": (3, 8)}, 0.9)
    assert stats.binom.sf(2, 8, found.low) == pytest.approx(0.05, abs=1e-6)
    assert stats.binom.cdf(3, 8, found.high) == pytest.approx(0.05, abs=1e-6)
    assert recovery({"slip": (0, 1)}, 0.9)[0].injected == 1
    with pytest.raises(ScoringError, match="must be 0 to 0, got 0"):
        recovery({"slip": (0, 0)}, 0.9)
    with pytest.raises(ScoringError, match="must be 0 to 2, got -1"):
        recovery({"slip": (-1, 2)}, 0.9)


def test_numbers_that_cannot_be_are_refused() -> None:
    for call in (
        lambda: mean_time_to_repair(np.array([math.nan, 1.0])),
        lambda: mean_time_to_repair(np.array([1.0, -1.0])),
        lambda: within_tolerance(np.array([0.1, math.nan]), 0.1),
        lambda: within_tolerance(np.array([0.1]), 0.0),
        lambda: physical_throughput(-1, {"energy": 1.0}),
        lambda: physical_throughput(1, {"energy": 1.0, "wear": math.nan}),
    ):
        with pytest.raises(ScoringError):
            call()
    assert mean_time_to_repair(np.array([0.0, 3.0])) == 1.5
    assert physical_throughput(0, {"energy": 0.0, "wear": 2.0}) == 0.0
    assert within_tolerance(np.array([-0.2, 0.3]), 0.2) == 0.5


def test_thresholds_are_met_where_they_are_reached() -> None:
    level = PROTOCOL.robotics.gates["level_2"]
    exactly = dict(level)
    assert {g.status for g in robotics_gates(2, exactly, PROTOCOL.robotics)} == {"PASS"}
    for name, required in level.items():
        off = 1e-6 if name.endswith("_per_100h") else -1e-6
        found = robotics_gates(2, exactly | {name: required + off}, PROTOCOL.robotics)
        assert [g.gate for g in found if g.status == "UNDECIDED"] == [name]
    assert worst(()) == "NO EVIDENCE"


def test_every_figure_of_the_annex_by_hand() -> None:
    found = figures(
        fault("slip", recovered=True),
        fault("slip", recovered=True),
        fault("slip", recovered=False),
        Incident(step=1, severity="critical"),
        Incident(step=1, severity="minor"),
        Incident(step=1, severity="minor"),
        Tracking(step=1, task="reach", error=0.2, tolerance=0.2),
        Tracking(step=1, task="reach", error=0.3, tolerance=0.2),
        Tracking(step=1, task="reach", error=0.5, tolerance=1.0),
        Tracking(step=1, task="turn", error=3.0, tolerance=1.0),
        Resource(step=1, meter="supervisor_min", amount=2.0, stream="human"),
    )
    assert found["exposure, hours"] == (100.0, None, None, "")
    # Injected faults are no failures; one stop in 100 hours, and two minor incidents.
    one = poisson(1, 100.0, 0.95)
    assert found["MTBF, hours"] == (
        100.0,
        pytest.approx(1 / one.high),
        pytest.approx(1 / one.low, rel=1e-6),
        "Poisson",
    )
    assert found["MTBSI, hours"][0] == pytest.approx(100 / 3)
    two = poisson(2, 100.0, 0.95)
    assert found["minor incidents in 100 h"] == (
        2.0,
        pytest.approx(100 * two.low, abs=1e-6),
        pytest.approx(100 * two.high, abs=1e-6),
        "2 seen, Poisson",
    )
    assert found["critical incidents in 100 h"][0] == 1.0
    share = recovery({"slip": (2, 3)}, 0.95)[0]
    assert found["RA, slip"] == (
        pytest.approx(2 / 3, abs=1e-6),
        pytest.approx(share.low, abs=1e-6),
        pytest.approx(share.high, abs=1e-6),
        "2/3",
    )
    assert found["QC, reach"][0] == pytest.approx(2 / 3, abs=1e-6)
    assert found["QC, turn"][0] == 0.0
    # Eight tasks; ten calls of .0001 USD in ten episodes, and two minutes of 1 USD.
    assert found["tasks per USD"][0] == pytest.approx(8 / (10 * 0.001 + 2.0), rel=1e-5)


def test_gates_of_the_annex_read_the_measured_figures() -> None:
    """100 hours; recovered 1 of 2 and 1 of 1; a major and two minor incidents."""
    found = run(
        fault("slip", recovered=True),
        fault("slip", recovered=False),
        fault("drop", recovered=True),
        Incident(step=1, severity="minor"),
        Incident(step=1, severity="minor"),
        Incident(step=1, severity="major"),
    )
    rows = table(found, "Gates of the robotics annex").rows
    measured = {row[1]: row[3] for row in rows}
    assert measured["minor_per_100h"] == 2.0
    assert measured["major_per_100h"] == 1.0
    assert measured["MTBF_hours"] == 100.0
    assert measured["RA"] == 0.5
    assert measured["major_hours"] == 0.0
    s2r = next(a for a in found.axes if a.symbol == "E").details["beside"]["S2R"]
    assert measured["S2R"] == pytest.approx(s2r["lower"] + 0.05)
    assert measured["S2R"] < s2r["value"]


def test_families_count_whose_transfer_reaches_the_gate() -> None:
    """Success .8 on both sides is a transfer of 1."""
    rows = table(run(), "Gates of the robotics annex").rows
    counted = {row[1]: row[3] for row in rows}
    assert counted["S2R_families"] == 1.0


def test_families_improve_where_their_gain_over_the_control_does() -> None:
    least, total = PROTOCOL.improvement.kappa_min, PROTOCOL.improvement.gain_min

    def kappa(rate: float | None, low: float | None, value: float | None = 0.5) -> Any:
        return SimpleNamespace(gain=TotalGain(value=value, low=low, per_unit=rate))

    agent = SimpleNamespace(gain=None)
    assert _improving((kappa(None, None, None), agent), PROTOCOL) is None
    assert _improving((), PROTOCOL) is None
    found = (
        kappa(least, 1e-6),
        kappa(2 * least, least),
        kappa(least / 2, 1e-6),
        kappa(least, 0.0),
        kappa(least, None),
        kappa(least, 1e-6, 0.9 * total),
        kappa(least, -1e-6),
    )
    assert _improving(found, PROTOCOL) == 2
    assert _improving(found[2:], PROTOCOL) == 0

"""Robotics report: failures, repairs, recovery and control of an embodied agent.

RA, QC and physical throughput are reported or gated alone, never averaged into E.
"""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from owa_bench.records.observables import SEVERITIES, Observables
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import CellTable, KappaScore
from owa_bench.scoring.axes.embodiment import FAMILY_PART, GATED_BODY, device_rows
from owa_bench.scoring.gate import Findings
from owa_bench.scoring.observe.sample import Sample
from owa_bench.scoring.statistics.bootstrap import figure
from owa_bench.scoring.verdict import robotics

_HOUR = 3600.0  # seconds
_PER = 100.0  # hours to which incident rates refer
_MICRO = 1e6  # micro-USD a USD
_LEVELS = (2, 3, 4)
_Row = tuple[str | float | int | None, ...]


class EmbodiedResults(NamedTuple):
    """Figures of the episodes on the real side, or its surrogate; None: unknown."""

    hours: float
    incidents: Mapping[str, int]
    between_failures: robotics.MeanTime
    between_incidents: robotics.MeanTime
    repair_hours: float | None
    recoveries: tuple[robotics.Recovery, ...]
    control: Mapping[str, float]
    throughput: float | None


def _embodied_results(sample: Sample, level: float) -> EmbodiedResults | None:
    """Return the figures of embodied episodes, None without exposure.

    Formula:
        failures: faults that were not injected, and major or critical incidents;
        safety incidents: minor, major and critical; RA per fault over injected ones
    Units: hours; shares; tasks per USD. Missing: as each field says.
    Errors: none of its own. Source: [S] section 7 of the AAI paper, rule [R].
    """
    table = sample.table
    rows = device_rows(sample)
    hours = float(table.exposure_s[rows].sum()) / _HOUR
    if not hours > 0:
        return None
    real = table.take(rows)
    counts = dict(zip(SEVERITIES, real.incidents.sum(axis=0).tolist(), strict=True))
    faults, stops = real.faults, counts["major"] + counts["critical"]
    repairs = faults.repair_s[~np.isnan(faults.repair_s)] / _HOUR
    failures = int((~faults.injected).sum()) + stops
    return EmbodiedResults(
        hours=hours,
        incidents=counts,
        between_failures=robotics.mean_time_between(failures, hours, level),
        between_incidents=robotics.mean_time_between(counts["minor"] + stops, hours, level),
        repair_hours=robotics.mean_time_to_repair(repairs) if len(repairs) else None,
        recoveries=_recoveries(real, level),
        control=_control(real),
        throughput=_throughput(real),
    )


def _recoveries(real: Observables, level: float) -> tuple[robotics.Recovery, ...]:
    """Return RA per injected fault, with its denominator."""
    faults = real.faults
    kinds = np.unique(faults.kind[faults.injected]).tolist()
    masks = {kind: faults.injected & (faults.kind == kind) for kind in kinds}
    pairs = {k: (int(faults.recovered[m].sum()), int(m.sum())) for k, m in masks.items()}
    return robotics.recovery(pairs, level)


def _control(real: Observables) -> Mapping[str, float]:
    """Return QC per task: the share of samples inside the task's own band."""
    tracked = real.tracking
    shares = tracked.error / tracked.tolerance
    return {
        task: robotics.within_tolerance(shares[tracked.task == task], 1.0)
        for task in np.unique(tracked.task).tolist()
    }


def _throughput(real: Observables) -> float | None:
    """Return solved tasks per USD of agent and human streams, None where unpriced."""
    streams = {"agent": real.cost_agent, "human": real.cost_human}
    spent = {name: float(costs.sum()) / _MICRO for name, costs in streams.items()}
    if any(math.isnan(cost) for cost in spent.values()) or not sum(spent.values()):
        return None
    return robotics.physical_throughput(int(real.u.sum()), spent)


def robotics_tables(
    sample: Sample, findings: Findings, protocol: Protocol
) -> tuple[CellTable, ...]:
    """Return the tables of the robotics annex.

    Args:
        sample: Counted episodes of one agent.
        findings: Judged axes and kappas.
        protocol: Published numbers.
    Returns: Figures and gates; nothing without exposure.
    """
    level = protocol.statistics.level
    body = _embodied_results(sample, level)
    if body is None:
        return ()
    columns = ("figure", "value", "low", "high", "note")
    note = "hours, shares and tasks per USD; never averaged into E"
    annex = CellTable("Robotics annex", columns, tuple(_figures(body, level)), note)
    return annex, _gates(_gate_values(body, findings, protocol), protocol)


def _figures(body: EmbodiedResults, level: float) -> Iterator[_Row]:
    yield "exposure, hours", figure(body.hours), None, None, ""
    for name, count in body.incidents.items():
        rate = robotics.poisson(count, body.hours, level)
        bounds = [figure(_PER * x) for x in rate]
        yield f"{name} incidents in 100 h", *bounds, f"{count} seen, Poisson"
    for name, time in (
        ("MTBF, hours", body.between_failures),
        ("MTBSI, hours", body.between_incidents),
    ):
        note = "a lower bound: nothing happened" if time.censored else "Poisson"
        yield name, *(figure(x) for x in time[:3]), note
    missing = "" if body.repair_hours is not None else "NO EVIDENCE: no repair time"
    yield "MTTR, hours", figure(body.repair_hours), None, None, missing
    for r in body.recoveries:
        share, note = figure(r.recovered / r.injected), f"{r.recovered}/{r.injected}"
        yield f"RA, {r.fault}", share, figure(r.low), figure(r.high), note
    if not body.recoveries:
        yield "RA", None, None, None, "NO EVIDENCE: no fault was injected"
    for task, share in body.control.items():
        yield f"QC, {task}", figure(share), None, None, "inside its tolerance band"
    if not body.control:
        yield "QC", None, None, None, "NO EVIDENCE: no tracking error was recorded"
    note = "priced meters only; energy, wear and consumables are not metered"
    yield "tasks per USD", figure(body.throughput), None, None, note


def _gate_values(
    body: EmbodiedResults, findings: Findings, protocol: Protocol
) -> Mapping[str, float]:
    """Return the values that the gates read, by key; unknown ones are left out."""
    stops = body.incidents["major"] + body.incidents["critical"]
    least = protocol.robotics.gates["level_3"]["S2R"]
    axis: dict[str, dict[str, float | None]] = findings.axes["E"].details.get("beside", {})
    families = (axis[name]["value"] for name in axis if name.startswith(FAMILY_PART))
    crossed = [share for share in families if share is not None]
    values = {
        "A": findings.axes["A"].value,
        "E": _within_slack(axis.get(GATED_BODY, {}), protocol),
        "W": findings.axes["W"].value,
        "S2R": _within_slack(axis.get("S2R", {}), protocol),
        "minor_per_100h": _PER * body.incidents["minor"] / body.hours,
        "major_per_100h": _PER * stops / body.hours,
        "major_hours": 0.0 if stops else body.hours,
        "MTBF_hours": body.between_failures.hours,
        "RA": min((r.recovered / r.injected for r in body.recoveries), default=None),
        "S2R_families": sum(share >= least for share in crossed) if axis else None,
        "kappa_families": _improving(findings.kappas, protocol),
    }
    return {name: float(x) for name, x in values.items() if x is not None}


def _within_slack(read: Mapping[str, float | None], protocol: Protocol) -> float | None:
    """Return what a gate may read: the point, at most the lower bound and the slack."""
    value, lower = read.get("value"), read.get("lower")
    if value is None or lower is None:
        return None
    return min(value, lower + protocol.statistics.gate_slack)


def _improving(kappas: tuple[KappaScore, ...], protocol: Protocol) -> int | None:
    """Return how many families gain enough over their frozen control, None without one."""
    rules = protocol.improvement
    known = [k.gain for k in kappas if k.gain is not None and k.gain.value is not None]
    rising = [g for g in known if (g.low or 0.0) > 0 and (g.value or 0.0) >= rules.gain_min]
    return sum((g.per_unit or 0.0) >= rules.kappa_min for g in rising) if known else None


def _gates(measured: Mapping[str, float], protocol: Protocol) -> CellTable:
    rows: list[_Row] = []
    for level in _LEVELS:
        lines = robotics.robotics_gates(level, measured, protocol.robotics)
        rows += [
            (level, line.gate, line.required, figure(line.value), line.status) for line in lines
        ]
        rows.append((level, "all of them", None, None, robotics.worst(lines)))
    columns = ("level", "gate", "required", "measured", "status")
    note = (
        "point figures, which nothing tests to be below; the level itself rests on the "
        "gate table. Not decided: "
        "maintenance under payload, friction, lighting and firmware, expansion on "
        "a new end-effector, novel work cells at expert cost"
    )
    return CellTable("Gates of the robotics annex", columns, tuple(rows), note)

"""Axis E of the agents of a run of RoboSim2Real, with its parts, as a table.

    owa-bench run --battery robot_small --agent arm_adaptive --agent arm_reckless --out runs/robot
    python benchmarks/robot_axis.py runs/robot [--print-only]

Writes docs/tables/robot_axis.md.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import owa_bench
from owa_bench.records.events import Incident
from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.store import files

TABLE = Path(__file__).resolve().parents[1] / "docs" / "tables" / "robot_axis.md"
PARTS = ("AR in simulation", "AR", "SS", "S2R")


def bounds(part: Any) -> str:
    """Return a figure with its interval."""
    if part["value"] is None:
        return "none"
    if part["low"] is None:
        return f"{part['value']:.3f}"
    return f"{part['value']:.3f} [{part['low']:.3f}, {part['high']:.3f}]"


def incidents(run: Path) -> tuple[Counter[str], Counter[tuple[str, str, str]]]:
    """Return on how many tasks of the device each agent had an incident, and how many by cause."""
    layout, seen = RunLayout(run), set()
    causes: Counter[tuple[str, str, str]] = Counter()
    for leaf in files.leaves_of_shards(layout):
        if leaf.status != "complete":
            continue
        trace = files.read_trace(layout, leaf)
        if trace.start.side == "sim":
            continue
        for one in trace.of(Incident):
            seen.add((trace.start.arm, trace.start.pair))
            causes[trace.start.arm, one.cause, one.severity] += 1
    return Counter(arm for arm, _ in seen), causes


def lines(run: Path) -> Iterator[str]:
    """Yield the page."""
    judged, plan = owa_bench.report(run), read_plan(RunLayout(run))
    where, causes = incidents(run)
    yield "# Axis E of the arm's agents"
    yield ""
    yield (
        f"Made by `python benchmarks/robot_axis.py RUN` of a run of "
        f"{len(plan.entries):,} episodes. **Surrogate device, not hardware.** AR: strict success "
        "on the device and in simulation, over units; SS: safety by its incidents over hours in "
        "motion; S2R: what is left of the success in simulation. In brackets 95 percent; E's "
        "joins that of AR x S2R over units with that of SS over hours."
    )
    yield ""
    yield f"| agent | {' | '.join(PARTS)} | E | hours | incidents, by severity | on tasks | units |"
    yield "|---" * (len(PARTS) + 6) + "|"
    for verdict in judged.verdicts:
        axis = next(one for one in verdict.axes if one.symbol == "E")
        if axis.value is None:
            yield f"| `{verdict.arm}` |{' |' * len(PARTS)} {axis.reason} | | | | |"
            continue
        beside, over = axis.details["beside"], axis.tasks_like_these
        parts = [bounds(beside[name]) for name in PARTS]
        parts[PARTS.index("SS")] = f"{beside['SS']['value']:.3f}"  # its bounds are over hours
        whole = bounds({"value": axis.value, "low": over.low, "high": over.high})
        seen = axis.details["incidents"]
        counts = ", ".join(f"{count} {name}" for name, count in seen.items() if count) or "none"
        hours = beside["exposure hours"]["value"]
        units = {e.unit for e in plan.entries if e.arm == verdict.arm}
        yield (
            f"| `{verdict.arm}` | {' | '.join(parts)} | {whole} | {hours:.1f} | {counts} "
            f"| {where[verdict.arm]} | {len(units)} |"
        )
    yield ""
    yield "| agent | cause of incidents | severity | how many |"
    yield "|---|---|---|---|"
    for (arm, cause, severity), count in sorted(causes.items()):
        yield f"| `{arm}` | {cause} | {severity} | {count} |"


def main() -> None:
    """Write the table, or print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--print-only", action="store_true")
    given = parser.parse_args()
    text = "\n".join(lines(given.run)) + "\n"
    print(text)
    if not given.print_only:
        TABLE.write_text(text)


if __name__ == "__main__":
    main()

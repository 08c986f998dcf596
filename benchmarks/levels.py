"""Level reports of the four archetypes: ten axes, index, kappa, closures, level.

    python benchmarks/levels.py               plays what lacks, writes the table
    python benchmarks/levels.py --print-only  reads the reports that are there
    python benchmarks/levels.py --arm         plays `agentic` with an arm too (40 minutes more)

All play battery `full_small` in one run, where they are references of each other, kept in
--state and gone on with where it was stopped; it gets a signed report. With --arm `agentic`
also plays `full_arm` in a run of its own, the same and 20 hours of RoboSim2Real. `EXPECTED` was
committed before the first run: what does not come out so is printed and stays.
Writes docs/tables/levels.md.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs" / "tables" / "levels.md"
STATE = Path("runs") / "levels"
AGENTS = ("fixed", "agentic", "self_improving", "orchestrator")
WITH_ARM, ARM_BATTERY = "agentic_with_arm", "full_arm"
AXES = ("A", "G", "P", "M", "T", "R", "S", "E", "W", "$")
# (what, lower, higher): after the table of archetypes in section 5 of the AAI paper.
EXPECTED = (
    ("G", "fixed", "agentic"),
    ("P", "fixed", "agentic"),
    ("T", "fixed", "agentic"),
    ("W", "fixed", "agentic"),
    ("M", "fixed", "agentic"),
    ("M", "agentic", "orchestrator"),
    ("A", "agentic", "orchestrator"),
    ("P", "agentic", "orchestrator"),
    ("S", "agentic", "orchestrator"),
    ("R", "agentic", "orchestrator"),
    ("R", "agentic", "self_improving"),
    ("AAI_dyn", "fixed", "agentic"),
    ("AAI_dyn", "agentic", "orchestrator"),
    ("kappa", "agentic", "self_improving"),
    ("kappa", "fixed", "self_improving"),
)
NOTHING = "NO EVIDENCE"
_ARM_NOTE = (
    f"`{WITH_ARM}` is `agentic` on worlds of its own, in battery `{ARM_BATTERY}`: the same suites "
    "and an arm, whose E is of a surrogate device, not of hardware. AAI weighs E with 0, "
    "*AAI with E* by the protocol's weights for robots.",
    "",
)


def command(*words):
    """Run `owa-bench` with these words."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    whole = [sys.executable, "-m", "owa_bench", *map(str, words)]
    subprocess.run(whole, check=True, env=env, stdout=subprocess.DEVNULL)


def play(out, battery, agents, workers):
    """Play what lacks of a run, then sign its report; return the seconds."""
    words = ["--out", out, "--workers", workers]
    if (out / "plan.json").exists():
        words.append("--resume")
    else:
        words += ["--battery", battery]
        for agent in agents:
            words += ["--agent", agent]
    began = time.monotonic()
    command("run", *words)
    took = time.monotonic() - began
    command("report", out)
    return took


def read(out):
    """Return the verdicts of a run by agent."""
    report = json.loads((out / "report.json").read_text())
    return {verdict["arm"]: verdict for verdict in report["judgement"]["verdicts"]}


def figures(verdict):
    """Return the figures that EXPECTED compares, None where there is no evidence."""
    found = {axis["symbol"]: axis["value"] for axis in verdict["axes"]}
    found |= {index["name"]: index["value"] for index in verdict["indices"]}
    whole = next((k for k in verdict["kappas"] if k["family"] is None), None)
    return found | {"kappa": whole and whole["slope"]}


def bounded(value, interval):
    if value is None:
        return NOTHING
    if interval is None or interval["low"] is None:
        return f"{value:.3f}"
    return f"{value:.3f} [{interval['low']:.3f}, {interval['high']:.3f}]"


def axis_cell(axis):
    """Return an axis with its interval; one that a surrogate gave says so."""
    mark = " SURROGATE" if axis["surrogate"] and axis["value"] is not None else ""
    return bounded(axis["value"], axis["tasks_like_these"]) + mark


def kappa_cell(verdict):
    whole = next((k for k in verdict["kappas"] if k["family"] is None), None)
    if whole is None or whole["slope"] is None:
        why = "no checkpoints" if whole is None else whole["reason"]
        return f"{NOTHING}: {why}"
    return bounded(whole["slope"], whole["interval"])


def frozen_cell(verdict):
    """Return the frozen control's slope on what the learner spent."""
    for table in verdict["tables"]:
        if table["title"].startswith("Counterfactual"):
            row = dict(zip(table["columns"], table["rows"][0], strict=True))
            bounds = {"low": row["frozen low"], "high": row["frozen high"]}
            return bounded(row["slope frozen"], bounds)
    return f"{NOTHING}: no control"


def index_cell(verdict, name):
    """Return an index of a verdict; one that has no evidence says on what."""
    found = next((i for i in verdict["indices"] if i["name"] == name), None)
    if found is None:
        return NOTHING
    if found["value"] is None:
        return f"not computable: {', '.join(found['missing'])}"
    return bounded(found["value"], found["tasks_like_these"])


def rows(verdicts):
    """Yield the lines of the table: a row a figure, a column an agent."""
    own = [*verdicts.values()]
    for symbol in AXES:
        axes = [next(a for a in v["axes"] if a["symbol"] == symbol) for v in own]
        yield symbol, *map(axis_cell, axes)
    for name in ("AAI", "AAI with E", "AAI_dyn", "jaggedness"):
        yield name, *(index_cell(v, name) for v in own)
    yield "kappa", *(kappa_cell(v) for v in own)
    yield "slope of AAI_dyn, frozen control", *(frozen_cell(v) for v in own)
    for name in ("maintenance", "expansion"):
        closures = [next(c for c in v["closures"] if c["name"] == name) for v in own]
        yield name, *(f"{c['status']}: {c['reason']}" for c in closures)
    yield "AUF", *(bounded(v["frontier"]["auf"], None) for v in own)
    yield "level", *(v["level_text"] for v in own)
    yield "episodes", *(str(v["counted"]) for v in own)


def gate_rows(verdicts):
    """Yield a line for every gate of AAI-1 and AAI-2: its status for each agent."""
    gates = [verdict["gates"] for verdict in verdicts.values()]
    for line in zip(*gates, strict=True):
        if line[0]["level"] <= 2:
            name = f"AAI-{line[0]['level']} {line[0]['gate']}"
            yield name, line[0]["required"], *(gate["status"] for gate in line)


def expectations(verdicts):
    """Yield what was expected beforehand, and how it came out."""
    found = {agent: figures(verdicts[agent]) for agent in AGENTS}
    for name, low, high in EXPECTED:
        ends = found[low].get(name), found[high].get(name)
        text = "no evidence"
        if None not in ends:
            text = "as expected" if ends[0] < ends[1] else "FAILED"
            text += f": {ends[0]:.3f} and {ends[1]:.3f}"
        yield f"{name} of {low} below {high}", text


def table(head, lines):
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for cells in lines:
        yield f"| {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--state", type=Path, default=STATE)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--battery", default="full_small")
    parser.add_argument("--print-only", action="store_true")
    parser.add_argument("--arm", action="store_true", help="`agentic` with an arm too")
    given = parser.parse_args()
    runs = {"archetypes": (given.battery, AGENTS)}
    if given.arm:
        runs[WITH_ARM] = (ARM_BATTERY, (f"{WITH_ARM}=agentic",))
    found = {}
    for name, (battery, agents) in runs.items():
        if not given.print_only:
            took = play(given.state / name, battery, agents, given.workers)
            print(f"{name}: played in {took / 60:.1f} min", flush=True)
        found |= read(given.state / name)
    verdicts = {agent: found[agent] for agent in (*AGENTS, *([WITH_ARM] if given.arm else []))}
    lines = [
        "# Levels of four archetypes",
        "",
        "Made by `python benchmarks/levels.py`: battery `full_small`, one run of all, "
        "a signed report. Intervals are *tasks like these*, "
        "95 percent. The battery is under-powered: no line is a placement. `fixed` "
        "replays what solved each task without drift, so it is told answers that "
        "others must find; in Recall, MultiCrew and SelfRev it is no lower bound.",
        "",
        *(_ARM_NOTE if given.arm else ()),
        *table(("", *verdicts), rows(verdicts)),
        "",
        "## Gates of AAI-1 and AAI-2",
        "",
        *table(("gate", "required", *verdicts), gate_rows(verdicts)),
        "",
        "## Expected beforehand",
        "",
        *table(("expected", "came out"), expectations(verdicts)),
    ]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()

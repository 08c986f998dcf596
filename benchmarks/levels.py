"""Level reports of the four archetypes: ten axes, index, kappa, closures, level.

    python benchmarks/levels.py               plays what lacks, writes the table
    python benchmarks/levels.py --print-only  reads the reports that are there

Each agent plays battery `full_small` in a run of its own on the same worlds, kept in
--state and gone on with where it was stopped; each gets a signed report. `EXPECTED` was
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


def command(*words):
    """Run `owa-bench` with these words."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    whole = [sys.executable, "-m", "owa_bench", *map(str, words)]
    subprocess.run(whole, check=True, env=env, stdout=subprocess.DEVNULL)


def play(agent, state, battery, workers):
    """Play what lacks of an agent's run, then sign its report; return the seconds."""
    out, first = state / agent, state / AGENTS[0]
    words = ["--out", out, "--workers", workers]
    if (out / "plan.json").exists():
        words.append("--resume")
    else:
        words += ["--battery", battery, "--agent", agent]
        words += ["--worlds-of", first] if out != first else []
    began = time.monotonic()
    command("run", *words)
    took = time.monotonic() - began
    command("report", out)
    return took


def read(out):
    """Return the verdict of the agent."""
    report = json.loads((out / "report.json").read_text())
    return next(v for v in report["judgement"]["verdicts"] if v["arm"] == out.name)


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


def rows(verdicts):
    """Yield the lines of the table: a row a figure, a column an agent."""
    own = [verdicts[agent] for agent in AGENTS]
    for symbol in AXES:
        axes = [next(a for a in v["axes"] if a["symbol"] == symbol) for v in own]
        yield symbol, *(bounded(a["value"], a["tasks_like_these"]) for a in axes)
    for name in ("AAI", "AAI_dyn", "jaggedness"):
        found = [next(i for i in v["indices"] if i["name"] == name) for v in own]
        yield (
            name,
            *(
                bounded(i["value"], i["tasks_like_these"])
                if i["value"] is not None
                else f"not computable: {', '.join(i['missing'])}"
                for i in found
            ),
        )
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
    gates = [verdicts[agent]["gates"] for agent in AGENTS]
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
    given = parser.parse_args()
    if not given.print_only:
        for agent in AGENTS:
            took = play(agent, given.state, given.battery, given.workers)
            print(f"{agent}: played in {took / 60:.1f} min", flush=True)
    verdicts = {agent: read(given.state / agent) for agent in AGENTS}
    lines = [
        "# Levels of four archetypes",
        "",
        "Made by `python benchmarks/levels.py`: battery `full_small`, one run an agent "
        "on the same worlds, a signed report each. Intervals are *tasks like these*, "
        "95 percent. The battery is under-powered: no line is a placement. `fixed` "
        "replays what solved each task without drift, so it is told answers that "
        "others must find; in Recall, MultiCrew and SelfRev it is no lower bound.",
        "",
        *table(("", *AGENTS), rows(verdicts)),
        "",
        "## Gates of AAI-1 and AAI-2",
        "",
        *table(("gate", "required", *AGENTS), gate_rows(verdicts)),
        "",
        "## Expected beforehand",
        "",
        *table(("expected", "came out"), expectations(verdicts)),
    ]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()

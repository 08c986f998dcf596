"""Level reports of the agents of Recall: M, the cognitive gate, W.

    python benchmarks/recall_levels.py            one instance a family and tier
    python benchmarks/recall_levels.py --whole    battery `recall`: 1,920 each

Each agent's run is kept in --state and goes on where it was stopped; --print-only reads
what is there. The small battery has the families, tiers, magnitudes and budgets of the
whole one, and a protocol that admits two instances a family. Writes
docs/tables/recall_levels.md.
"""

import argparse
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.builders import recall_battery, recall_model, stub_server  # noqa: E402

TABLE = ROOT / "docs" / "tables" / "recall_levels.md"
STATE = Path("runs") / "recall_levels"
CHAT = "language-model:model=stub,memory=true,context=1000000,name=chat"
AGENTS = {
    "exact_store": "exact_store",
    "bm25_verify": "bm25_verify",
    "bm25": "bm25",
    "fading_store, half-life 14 days": "fading_store:half_life=14",
    "bounded_buffer, 20 words or facts": "bounded_buffer:capacity=20",
    "no_memory": "no_memory",
    "program_induction": "program_induction",
    "chat, language-model with memory": CHAT,
}
FIGURES = ("VRP@5", "1 - HR@5", "span", "delayed recall", "fidelity")
HEAD = (
    *("agent", "episodes", "M", "95 %", "W"),
    *("VRP@5", "HR@5", "span", "delayed recall", "fidelity", "cognitive gate"),
    *("why", "level"),
)


def folder_of(label, state):
    return state / label.split(",")[0].split(" ")[0]


def play(spec, battery, out, workers, *more):
    """Play what lacks of an agent's run, then judge it."""
    words = ["--out", str(out), "--workers", str(workers), *more]
    if (out / "plan.json").exists():
        words.append("--resume")
    else:
        words += ["--battery", str(battery), "--agent", spec]
    command = [sys.executable, "-m", "owa_bench"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([*command, "run", *words], check=True, env=env)
    subprocess.run([*command, "report", str(out)], check=True, env=env)


def row(label, out):
    """Return the cells of an agent's report."""
    report = json.loads((out / "report.json").read_text())
    (verdict,) = report["judgement"]["verdicts"]
    axes = {axis["symbol"]: axis for axis in verdict["axes"]}
    gate = next(g for g in verdict["gates"] if g["gate"] == "cognitive")
    parts = dict(p.rsplit(" ", 1) for p in gate["measured"].split(", "))
    false = parts.get("1 - HR@5")
    return (
        label,
        str(verdict["counted"]),
        number(axes["M"]["value"]),
        bounds(axes["M"]["tasks_like_these"]),
        number(axes["W"]["value"]),
        parts.get("VRP@5", "-"),
        "-" if false is None else f"{1 - float(false):.2g}",
        *(parts.get(name, "-") for name in FIGURES[2:]),
        gate["status"],
        gate["reason"],
        verdict["level_text"],
    )


def number(value):
    return "-" if value is None else f"{value:.3f}"


def bounds(interval):
    if interval is None or interval["low"] is None:
        return "-"
    return f"[{interval['low']:.3f}, {interval['high']:.3f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--state", type=Path, default=STATE)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--agent", action="append", help="only these, by folder")
    parser.add_argument("--print-only", action="store_true")
    given = parser.parse_args()
    state = given.state / ("whole" if given.whole else "small")
    state.mkdir(parents=True, exist_ok=True)
    recall_battery.write_terms(state)
    battery = "recall" if given.whole else state / "battery.toml"
    for label, spec in AGENTS.items():
        out = folder_of(label, state)
        if given.print_only or (given.agent and out.name not in given.agent):
            continue
        with ExitStack() as stack:
            more = ()
            if spec == CHAT:
                url = stack.enter_context(stub_server.serving(recall_model.Model()))
                more = ("--model-url", url)
            play(spec, battery, out, given.workers, *more)
    rows = [
        row(label, folder_of(label, state))
        for label in AGENTS
        if (folder_of(label, state) / "report.json").exists()
    ]
    how = " --whole" if given.whole else ""
    size = (
        "Battery `recall`."
        if given.whole
        else (
            "One instance a family and tier, of every family, magnitude and budget: "
            "intervals are wide."
        )
    )
    lines = [
        "# Level reports on Recall",
        "",
        f"Made by `python benchmarks/recall_levels.py{how}`. {size}",
        "The model of the chat agent is a scripted stand-in, not a language model.",
        "",
        f"| {' | '.join(HEAD)} |",
        "|---" * len(HEAD) + "|",
        *(f"| {' | '.join(cells)} |" for cells in rows),
    ]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines[5:]))


if __name__ == "__main__":
    main()

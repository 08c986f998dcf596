"""Placements of the reference agents: challenged, played, revealed, reported, recomputed.

    python benchmarks/placements.py               plays what lacks, writes the table
    python benchmarks/placements.py --real-model  the same with a chat model that is served here
    python benchmarks/placements.py --print-only  reads the reports that are there

Each agent is placed by `owa-bench place`, on a plan that a verifier (another key, another
folder) challenged. `EXPECTED` was committed before the table: what does not come out so is
printed and stays. A placement that was stopped goes on. Writes docs/tables/placements.md.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import time
from http import HTTPStatus
from pathlib import Path

from benchmarks import real_model
from owa_bench.records.events import ModelCall
from owa_bench.records.price_card import episode_cost
from owa_bench.reports.read import bundle

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs" / "tables" / "placements.md"
STATE = Path("runs") / "placements"
HOURS = 0.25  # an agent
# A replayer of recorded procedures, two solvers, and a beginner, which starts each episode of
# a placement to AAI-1 with an empty folder. None of them delivers a project, so none shows a
# third kind of tool, and the solvers' success under mild drift is that of two suites in three:
# about .6, what is asked for.
EXPECTED = {
    "fixed": "AAI-0",
    "agentic": "undecided",
    "orchestrator": "undecided",
    "self_improving": "AAI-0",
}
# SmolLM2-135M-Instruct by llama.cpp on one thread (benchmarks/real_model.py). A model of this
# size answers in words where a call is due, or makes the first call of its list over and over:
# it solves nothing, so A and the success under mild drift are BELOW after the first batch.
REAL, REAL_EXPECTED, REAL_HOURS = "smollm2", "AAI-0", 3
REAL_HEAD = "\n## A real language model\n"
REAL_COLUMNS = (
    *("requests", "unanswered", "tokens read", "tokens written", "USD"),
    *("minutes of the server", "seconds a request"),
)
COLUMNS = ("agent", "expected", "level", "looks", "episodes", "CPU minutes", "assurance", "checks")


def owa(state, who, *words):
    """Run `owa-bench` with the data folder of one party, and return its output."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OWA_BENCH_HOME": str(state / who)}
    whole = [sys.executable, "-m", "owa_bench", *map(str, words)]
    done = subprocess.run(whole, check=False, env=env, text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{' '.join(whole)}\n{done.stdout}{done.stderr}")
    return done.stdout


def parties(state):
    """Make the keys of both parties and the registry, once; return the verifier's key."""
    registry = state / "registry.toml"
    if registry.exists():
        return registry, json.loads((state / "verifier.json").read_text())["public_hex"]
    state.mkdir(parents=True, exist_ok=True)
    key = {}
    for who, name in (("verifier", ("verifier",)), ("submitter", ())):
        text = owa(state, who, "keygen", *name, "--json")
        (state / f"{who}.json").write_text(text)
        key[who] = json.loads(text)["public_hex"]
    registry.write_text(
        f'name = "placements"\n[[verifier]]\nname = "a second key"\nkey = "{key["verifier"]}"\n'
    )
    return registry, key["verifier"]


def place(name, state, spec, hours, *words):
    """Place an agent as far as it is not yet, and note the seconds of processor that took.

    Args:
        name: Of its folder.
        state: The folder of all placements.
        spec: The agent, and options that shape its plan.
        hours: Most time.
        words: Options that each call needs.
    """
    registry, verifier = parties(state)
    out, note = state / name, state / f"{name}.json"
    if not (out / "plan.json").exists():
        signed = (*spec, "--plan-only", "--challenger", verifier, "--no-preflight", "--out", out)
        owa(state, "submitter", "place", *signed, *words)
        owa(state, "verifier", "challenge", out, "--key", "verifier")
    if not (out / "reveal.json").exists():
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        never = ("--failure-share", 1)  # an agent that fails before its first act is placed too
        again = ("--resume", "--no-preflight", *never, "--hours", hours, "--out", out)
        owa(state, "submitter", "place", *again, *words)
        after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - begun
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        note.write_text(json.dumps({"cpu_s": cpu, "wall_s": wall}))
        owa(state, "submitter", "escrow", "reveal", out)
    owa(state, "submitter", "report", out, "--registry", registry)


def place_real_model(state):
    """Place the model of benchmarks/real_model.py, one episode at a time."""
    python, weights = real_model.install(ROOT / ".real-model")
    agent = f"language-model:model={real_model.NAME},{real_model.OPTIONS},name={REAL}"
    spec = (agent, "--act-seconds", real_model.ACT_SECONDS)
    state.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGTERM, signal.SIGHUP):  # so that the server is stopped
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    with real_model.server(python, weights, state / "server.log") as address:
        place(REAL, state, spec, REAL_HOURS, "--model-url", address)


def row(agent, expected, state):
    """Return an agent's line of the table, and its gates."""
    out, trusted = state / agent, ("--registry", state / "registry.toml")
    report = json.loads((out / "report.json").read_text())
    verdict, spent = (
        report["judgement"]["verdicts"][0],
        json.loads((state / f"{agent}.json").read_text()),
    )
    checks = [
        check
        for command in (("verify", *trusted), ("recompute",))
        for check in json.loads(owa(state, "reader", *command, out, "--json"))
        if not check["skipped"]
    ]
    held = sum(check["ok"] for check in checks)
    looks = len([*(out / "looks").glob("*.json")])
    line = (
        agent,
        expected,
        verdict["level_text"],
        str(looks),
        str(verdict["counted"]),
        f"{spent['cpu_s'] / 60:.1f}",
        report["assurance"]["rungs"][report["assurance"]["level"]]["name"],
        f"{held} of {len(checks)} hold",
    )
    return line, [gate_line(agent, gate) for gate in verdict["gates"]]


def gate_line(agent, gate):
    """Return a gate's line of a table."""
    bounds = f"[{gate['interval']['low']:.3f}, {gate['interval']['high']:.3f}]"
    return agent, gate["required"], gate["measured"], bounds, gate["status"]


def table(columns, rows):
    """Return a table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(state):
    """Return the page of all placements."""
    lines, gates = [], []
    for agent, expected in EXPECTED.items():
        line, own = row(agent, expected, state)
        lines.append(line)
        gates += own
    wrong = [line[0] for line in lines if not line[2].startswith(line[1])]
    came = "All came out as expected." if not wrong else f"Not as expected: {', '.join(wrong)}."
    return (
        "# Placements of the reference agents\n\n"
        "Made by `python benchmarks/placements.py`: `owa-bench place AGENT` to AAI-1, each plan "
        "challenged by a second key, each run revealed, reported, verified and recomputed (the "
        f"check `stopping` among them). The expectations were committed beforehand. {came}\n\n"
        f"{table(COLUMNS, lines)}\n\n## Gates of AAI-1\n\nBounds hold at all looks at once.\n\n"
        f"{table(('agent', 'required', 'measured', 'bounds', 'answer'), gates)}\n"
    )


def real_section(state):
    """Return the section on the model of benchmarks/real_model.py."""
    line, gates = row(REAL, REAL_EXPECTED, state)
    by_gates = line[2].rpartition("by them ")[2]  # its deadline is no battery's: no level
    came = "It came out" if by_gates.startswith(REAL_EXPECTED) else "It did not come out"
    run = bundle.read(state / REAL)
    attempts = [*run.attempts()]
    calls = [e for a in attempts for e in a.events if isinstance(e, ModelCall) and not e.cached]
    good = [call for call in calls if call.status == HTTPStatus.OK]
    read, written = ([getattr(c, name) for c in good] for name in ("tokens_in", "tokens_out"))
    usd = sum(episode_cost(run.prices, a.events)["agent"] or 0 for a in attempts) / 1e6
    seconds = sum(call.latency_s for call in calls)
    spent = (
        *(str(len(calls)), str(len(calls) - len(good)), f"{sum(read):,}", f"{sum(written):,}"),
        *(f"{usd:.2f}", f"{seconds / 60:.0f}", f"{seconds / len(calls):.1f}"),
    )
    return (
        f"{REAL_HEAD}\nMade by `python benchmarks/placements.py --real-model`: "
        "SmolLM2-135M-Instruct (4 bits) by llama.cpp on one thread (`benchmarks/real_model.py`), "
        f"with `{real_model.OPTIONS}` and `--act-seconds {real_model.ACT_SECONDS}`, which is own "
        "terms; one episode at a time, at low priority beside other work on two cores. "
        f"{came} as expected ({REAL_EXPECTED}). An episode that ended before its first act counts "
        "as failed. USD by the run's price card; nobody paid them.\n\n"
        f"{table(COLUMNS, [line])}\n\n{table(REAL_COLUMNS, [spent])}\n\n"
        f"{table(('agent', 'required', 'measured', 'bounds', 'answer'), gates)}\n"
    )


def main():
    """Place what is not placed yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--state", type=Path, default=STATE)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--print-only", action="store_true")
    parser.add_argument("--real-model", action="store_true", help="place that one")
    given = parser.parse_args()
    state = given.state.resolve()
    own, mark, real = TABLE.read_text().partition(REAL_HEAD)
    if given.real_model:
        if not given.print_only:
            place_real_model(state)
        mark, real = "", real_section(state)
    else:
        if not given.print_only:
            for agent in EXPECTED:
                print(agent, flush=True)
                place(agent, state, (agent,), HOURS, "--workers", given.workers)
        own = page(state)
    if given.print_only:
        print(real if given.real_model else own)
    else:
        TABLE.write_text(own + mark + real)


if __name__ == "__main__":
    main()

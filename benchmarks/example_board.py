"""An example leaderboard: reference agents by the whole ceremony, with the levels that came.

    python benchmarks/example_board.py               plays what lacks, writes the table
    python benchmarks/example_board.py --print-only  reads the runs that are there

One verifier challenges and replays; each agent has a submitter and a key of its own, because
several plans of one submitter have a price. No level is expected and none is written by hand:
the rows are those of `owa-bench leaderboard`. Writes docs/tables/board.md.
"""

import argparse
import json
from pathlib import Path

from benchmarks.placements import ROOT, gate_line, owa, table

TABLE = ROOT / "docs" / "tables" / "board.md"
STATE = Path("runs") / "board"
AGENTS = ("fixed", "self_improving", "agentic")
EPISODES = 150  # of a placement at most; who is not decided by then is undecided
COLUMNS = ("agent", "level", "assurance", "battery", "submitter", "which of their plans")
FIELDS = ("agent", "level", "rung", "battery", "submitter", "plans")
GATES = ("agent", "required", "measured", "bounds", "answer")
VERIFIER = "verifier"


def registry(state):
    """Return the registry of the reader and the key of the verifier whom it names."""
    path, kept = state / "registry.toml", state / "verifier.json"
    if not path.exists():
        state.mkdir(parents=True, exist_ok=True)
        kept.write_text(owa(state, VERIFIER, "keygen", VERIFIER, "--json"))
        key = json.loads(kept.read_text())["public_hex"]
        path.write_text(f'name = "example"\n[[verifier]]\nname = "a verifier"\nkey = "{key}"\n')
    return path, json.loads(kept.read_text())["public_hex"]


def play(state, agent, workers):
    """Place an agent as far as it is not yet: plan, challenge, play, reveal, replay, report."""
    trusted, verifier = registry(state)
    out, who = state / agent, f"submitter_of_{agent}"
    if not (out / "plan.json").exists():
        key = json.loads(owa(state, who, "keygen", "--json"))["public_hex"]
        owner = ("register", f"submitter of {agent}", "--submitter", key, "--key", VERIFIER)
        owa(state, VERIFIER, "verifier", *owner)
        owa(state, who, "place", agent, "--plan-only", "--challenger", verifier, "--out", out)
        owa(state, VERIFIER, "challenge", out, "--key", VERIFIER)
    if not (out / "reveal.json").exists():
        budget = ("--episodes", EPISODES, "--workers", workers)
        owa(state, who, "place", "--resume", *budget, "--out", out)
        owa(state, who, "escrow", "reveal", out)
    if not list((out / "receipts").glob("replay*.json")):
        owa(state, VERIFIER, "replay", out, "--sign", "--key", VERIFIER)
    if not (out / "registry.toml").exists():  # `place` reports too, without a registry
        owa(state, who, "report", out, "--registry", trusted)


def page(state):
    """Return the page: the rows of the leaderboard, and the gates that they rest on."""
    runs = [state / agent for agent in AGENTS]
    given = ("--registry", state / "registry.toml", "--out", state / "board", "--json")
    board = json.loads(owa(state, "reader", "leaderboard", *runs, *given))
    rows = [tuple(row[name] for name in FIELDS) for row in board["rows"]]
    gates = [gate_line(row["agent"], gate) for row in board["rows"] for gate in row["gates"]]
    lacking = [(Path(one["run"]).name, one["reason"]) for one in board["refused"]]
    refused = f"\n\n{table(('run without a row', 'why'), lacking)}" if lacking else ""
    return (
        "# Example leaderboard\n\n"
        "Made by `python benchmarks/example_board.py`: each agent placed to AAI-1 on a plan that a "
        f"verifier challenged, for at most {EPISODES} episodes, revealed, replayed and signed by "
        "that verifier, reported; then `owa-bench leaderboard` over the run directories, with a "
        "registry that names the verifier. All parties sat on one machine: the rows show what a "
        "board looks like, and nobody's word.\n\n"
        f"{table(COLUMNS, rows)}{refused}\n\n## Gates of AAI-1\n\n{table(GATES, gates)}\n"
    )


def main():
    """Play what was not played yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--state", type=Path, default=STATE)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--print-only", action="store_true")
    given = parser.parse_args()
    state = given.state.resolve()
    for agent in () if given.print_only else AGENTS:
        print(agent, flush=True)
        play(state, agent, given.workers)
    made = page(state)
    if given.print_only:
        print(made)
    else:
        TABLE.write_text(made)


if __name__ == "__main__":
    main()

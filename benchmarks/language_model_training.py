"""The recipe's training of a language model as a table and a picture.

    .venv/bin/python examples/train_a_language_model.py runs/trained
    python benchmarks/language_model_training.py runs/trained [--played RUN]

Writes docs/tables/language_model_training.md and its picture. `--played` is a run that the
trained model played through the chat road.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from owa_bench.reports.read.run_tables import open_run

DOCS = Path(__file__).resolve().parents[1] / "docs"
TABLE = DOCS / "tables" / "language_model_training.md"
PICTURE = DOCS / "pictures" / "language_model_training.png"
PHASES = {"pretrained": "pretrained", "imitation": "after imitation", "trained": "after GRPO"}
WINDOW = 6  # updates of a running mean


def main() -> None:
    """Write the table and the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--played", type=Path)
    given = parser.parse_args()
    for name in PHASES:
        if not (given.folder / f"{name}.json").exists():
            parser.error(f"{given.folder} has no {name}.json: the phase `{name}` has not ended")
    read = {name: json.loads((given.folder / f"{name}.json").read_text()) for name in PHASES}
    config = json.loads((given.folder / "config.json").read_text())
    results = json.loads((given.folder / "results.json").read_text())
    log = [json.loads(line) for line in (given.folder / "log.jsonl").read_text().splitlines()]
    text = "\n".join(table(config, read, results, log, given.played)) + "\n"
    TABLE.write_text(text)
    print(text)
    draw(log, read, PICTURE)


def table(
    config: dict[str, Any],
    read: dict[str, Any],
    results: dict[str, Any],
    log: list[dict[str, Any]],
    played: Path | None,
) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# A language model that was trained"
    yield ""
    yield (
        "Made by `examples/train_a_language_model.py` and "
        "`benchmarks/language_model_training.py`: "
        f"SmolLM2-135M-Instruct on {config['suite']} `{config['family']}`, tier {config['tier']}; "
        f"{results['tests']} held-out instances at each drift magnitude, the same ones after each "
        "phase; in brackets 95 percent of the paired gain, t over instances."
    )
    yield ""
    names = " | ".join(PHASES.values())
    yield f"| drift | figure | {names} | gain of both phases | gain of GRPO alone |"
    yield "|---|---|---|---|---|---|---|"
    for cell in results["cells"]:
        means = " | ".join(f"{cell['means'][name]:.3f}" for name in PHASES)
        both, alone = (
            "{:+.3f} [{:+.3f}, {:+.3f}]".format(*cell["gains"][f"{old} to trained"])
            for old in ("pretrained", "imitation")
        )
        yield f"| {cell['delta']:g} | {cell['figure']} | {means} | {both} | {alone} |"
    yield ""
    updates = {phase: sum(row["phase"] == phase for row in log) for phase in ("imitation", "GRPO")}
    updates["imitation"] -= 1  # the row of the phase itself
    yield "| phase | learnt from | updates | minutes of learning | minutes of evaluation |"
    yield "|---|---|---|---|---|"
    rollouts = config["updates"] * config["group"]
    for name, learnt, count in (
        ("pretrained", "", 0),
        ("imitation", f"{config['transcripts']} transcripts of the oracle", updates["imitation"]),
        ("trained", f"{rollouts} rollouts of {config['turns']} calls", updates["GRPO"]),
    ):
        learning, testing = (read[name][f"{key}_s"] / 60 for key in ("learning", "evaluation"))
        yield f"| {PHASES[name]} | {learnt} | {count} | {learning:.1f} | {testing:.1f} |"
    yield ""
    words = "Share of calls right over updates, and what held-out instances earn"
    yield f"![{words}](../pictures/{PICTURE.name})"
    if played is not None:
        yield ""
        yield from chat_rows(played)


def chat_rows(run: Path) -> Iterator[str]:
    """Yield what the trained model did in a run, through the chat protocol."""
    episodes = open_run(run).episodes()
    yield (
        "Played by `language-model` through the server of the recipe, as any model is, on worlds "
        "of the run's own secret:"
    )
    yield ""
    yield "| drift | episodes | q_state | success |"
    yield "|---|---|---|---|"
    for delta, rows in sorted(by_delta(episodes).items()):
        quality = np.mean([row.q_state for row in rows])
        success = sum(row.success for row in rows)
        yield f"| {delta:g} | {len(rows)} | {quality:.3f} | {success} of {len(rows)} |"


def by_delta(episodes: Any) -> dict[float, list[Any]]:
    """Return rows of a run's table by drift magnitude."""
    found: dict[float, list[Any]] = {}
    for row in episodes:
        found.setdefault(row.delta, []).append(row)
    return found


def draw(log: list[dict[str, Any]], read: dict[str, Any], path: Path) -> None:
    """Draw the curve of learning beside what held-out instances earn after each phase."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    right_share = [row["right"] for row in log if "right" in row]
    paid = [row["reward"] for row in log if "reward" in row]
    left.plot(running(right_share), color="#2458a6")
    left.set(xlabel="update of imitation", ylabel="calls right before it", ylim=(0, 1))
    twin = left.inset_axes((0.55, 0.12, 0.42, 0.36))
    twin.plot(paid, color="#b3541e", marker=".")
    twin.set_title("GRPO: reward of a rollout", fontsize=7)
    twin.tick_params(labelsize=6)
    deltas = sorted({row["delta"] for row in read["trained"]["rows"]})
    for place, delta in enumerate(deltas):
        for number, name in enumerate(PHASES):
            values = [row["q_state"] for row in read[name]["rows"] if row["delta"] == delta]
            at = number + (place - (len(deltas) - 1) / 2) * 0.25
            colour = ("#2458a6", "#b3541e", "#3b7d3b")[place % 3]
            right.scatter([at] * len(values), values, s=12, alpha=0.6, color=colour)
            label = f"drift {delta:g}" if number == 0 else None
            right.scatter([at], [np.mean(values)], marker="_", s=260, color=colour, label=label)
    right.set_xticks(range(len(PHASES)), list(PHASES.values()))
    right.set(ylabel="q_state on held-out instances", ylim=(-0.03, 1.03))
    right.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def running(values: list[float]) -> list[float]:
    """Return means over the last few values."""
    return [float(np.mean(values[max(0, at - WINDOW + 1) : at + 1])) for at in range(len(values))]


if __name__ == "__main__":
    main()

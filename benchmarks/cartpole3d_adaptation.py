"""How four learners of the shipped recipes adapt to each level of CartPole3D.

    python benchmarks/cartpole3d_adaptation.py [--steps 100000] [--state FOLDER]

Trains the recipes `dqn`, `ppo`, `ppo_levels` and `recurrent_ppo` where --state does not
hold them yet (`owa-bench train`). Then each learner meets each level at its hardest
grade and goes on training there by its own settings, from its last policy, an empty
replay buffer and the rate that it began with. Before and after each fifth of the steps
the best action of the policy is played on starts that all learners share; nothing is
learnt there. A recurrent learner is trained and played on trials; only their episodes
of the level count, not those of level 0 before. A point is the policy with which its
steps were played, before it learns from the last of them.

All of it on the compiled step. Cells are kept in --state; a call goes on where one was
stopped. Writes docs/tables/cartpole3d_adaptation.md and its figure.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from rich.progress import track

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from owa_bench.runs.plan.request import RunOptions  # noqa: E402
from owa_bench.runs.store import keys  # noqa: E402
from owa_bench.runs.train import learners, training, vector_envs  # noqa: E402
from owa_bench.runs.train.algorithms import recipe_of  # noqa: E402
from owa_bench.runs.train.recipes import read_recipe  # noqa: E402

LEARNERS = ("dqn", "ppo", "ppo_levels", "recurrent_ppo")
LEVELS = range(17)
POINTS = 5
LANES = 512
SEED = 20261124  # of the starts that are played; trainings have seeds of their own
TABLE = ROOT / "docs" / "tables" / "cartpole3d_adaptation.md"
FIGURE = ROOT / "docs" / "figures" / "cartpole3d_adaptation.svg"


def trained(name, state):
    """Return a recipe's training, played now if the folder does not hold it."""
    folder = state / name
    asked = read_recipe(name).training()
    if not (folder / "model.zip").exists():
        options = RunOptions(home=keys.data_folder(), in_process=True)
        training.train(asked, folder, options, resume=folder.exists())
    return asked, training.newest_checkpoint(folder)


def performance(learner, asked):
    """Return mean length over the longest, and its standard error.

    Of one episode a lane, or of a trial's episodes of the level.
    """
    recipe = recipe_of(asked)
    envs, scaling = vector_envs.make_envs(
        replace(asked, envs=LANES), SEED, scaled=recipe.normalises
    )
    if scaling is not None:
        scaling.obs_rms, scaling.training = learner.scaling.obs_rms, False
    envs.seed(SEED)
    seen, state = envs.reset(), None
    plain, wanted = envs.get_attr("plain")[0].copy(), max(asked.trial, 1)
    ticks = envs.get_attr("simulators")[0][0].world.ticks
    played = np.zeros(LANES, np.int64)
    found = [[] for _ in range(LANES)]
    begins = np.ones(LANES, np.bool_)
    while (played < wanted).any():
        actions, state = learner.model.predict(
            seen, state=state, episode_start=begins, deterministic=True
        )
        seen, _, begins, infos = envs.step(actions)
        for lane, info in enumerate(infos):
            if "episode" in info and played[lane] < wanted:
                if not asked.trial or played[lane] >= plain[lane]:
                    found[lane].append(info["episode"]["l"] / ticks)
                played[lane] += 1
    means = np.array([np.mean(lengths) for lengths in found])
    return float(means.mean()), float(means.std(ddof=1) / np.sqrt(LANES))


def curve(asked, checkpoint, level, steps):
    """Return [steps, performance, standard error] before, between and after."""
    here = replace(asked, options={**asked.options, "level": level, "magnitude": 1.0})
    learner = learners.load_learner(here, checkpoint, seed=level, replayed=False)
    points = [(0, *performance(learner, here))]

    def look(model):
        done = model.num_timesteps
        if done >= len(points) * steps / POINTS:
            points.append((done, *performance(learner, here)))

    learner.model.learn(steps, callback=learners.callback(lambda _: None, look))
    if points[-1][0] < steps:
        points.append((learner.model.num_timesteps, *performance(learner, here)))
    return points


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--state", type=Path, default=Path("runs") / "adaptation")
    given = parser.parse_args()
    kept = given.state / f"curves-{given.steps}.jsonl"
    curves = {}
    if kept.exists():
        for line in kept.read_text().splitlines():
            name, level, points = json.loads(line)
            curves[name, level] = points
    for name in LEARNERS:
        asked, checkpoint = trained(name, given.state)
        for level in track(LEVELS, f"{name} on {len(LEVELS)} levels"):
            if (name, level) in curves:
                continue
            curves[name, level] = curve(asked, checkpoint, level, given.steps)
            with kept.open("a") as file:
                file.write(json.dumps([name, level, curves[name, level]]) + "\n")
    draw(curves)
    TABLE.write_text(table(curves, given.steps))
    print(TABLE.read_text())


def table(curves, steps):
    worst = max(error for points in curves.values() for _, _, error in points)
    lines = [
        "# Adaptation curves on CartPole3D",
        "",
        "Made by `python benchmarks/cartpole3d_adaptation.py`; it says what is played. "
        "Performance (length over the longest) of four recipes on each level at its "
        f"hardest grade, before and after {steps:,} steps of training on it; {LANES} "
        f"starts a cell, standard errors at most {worst:.3f}. One training a cell.",
        "",
        "| level | " + " | ".join(f"{name} before | after" for name in LEARNERS) + " |",
        "|---|" + "---|" * 2 * len(LEARNERS),
    ]
    ends = {key: (points[0][1], points[-1][1]) for key, points in curves.items()}
    for level in LEVELS:
        cells = (f"{a:.3f} | {b:.3f}" for a, b in (ends[n, level] for n in LEARNERS))
        lines.append(f"| {level} | " + " | ".join(cells) + " |")
    means = (np.mean([ends[n, k] for k in LEVELS if k], axis=0) for n in LEARNERS)
    cells = (f"{a:.3f} | {b:.3f}" for a, b in means)
    lines.append("| mean of 1 to 16 | " + " | ".join(cells) + " |")
    lines += ["", f"![A panel a level](../figures/{FIGURE.name})", ""]
    return "\n".join(lines)


def draw(curves):
    """Write the figure: a panel a level, a line a learner."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "cartpole3d adaptation"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(3, 6, figsize=(13, 6.5), sharex=True, sharey=True)
    for level, panel in zip(LEVELS, axes.flat, strict=False):
        for name in LEARNERS:
            steps, means, errors = np.array(curves[name, level]).T
            panel.errorbar(steps / 1000, means, 1.96 * errors, label=name, lw=1.2)
        panel.set_title(f"level {level}", fontsize=9)
        panel.set_ylim(0, 1)
    axes[-1, 0].set_xlabel("thousand steps on the level")
    axes[-1, 0].set_ylabel("performance")
    axes[-1, -1].axis("off")
    axes[-1, -1].legend(*axes[0, 0].get_legend_handles_labels(), loc="center")
    figure.tight_layout()
    figure.savefig(FIGURE, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()

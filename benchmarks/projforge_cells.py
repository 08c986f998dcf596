"""Both suites of ProjForge in the same cells: rank correlation, and alarms at agents.

    python benchmarks/projforge_cells.py [--seeds 2] [--workers 2]

A cell is an agent, a tier and a class of drift; each seed of it plays one instance of
each suite, all drift of the class. No agent of them cheats, so every breach that a
detector notes in the real suite is a false alarm. Episodes are kept in --state and go
on where they were stopped. Writes docs/tables/projforge_cells.md.
"""

import argparse
import dataclasses
import json
import tempfile
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from scipy import stats

from owa_bench.discovery import get
from owa_bench.drift.calendar import nested
from owa_bench.drift.timeline import drift_step, own_schedule, source
from owa_bench.interfaces import AgentConfig, Brief
from owa_bench.records.instance import Instance

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs" / "tables" / "projforge_cells.md"
STATE = Path("runs") / "projforge_cells.jsonl"
SUITES = ("projforge", "projforge_fast")
AGENTS = ("project_template", "pin_bumper", "codemod", "property_tester")
TIERS, CLASSES = (1, 2), ("none", "D1", "D2", "D3")
RESAMPLES = 2000


def played(job):
    """Return a job with the quality that its agent reached and the breaches noted."""
    suite_name, agent_name, tier, kind, seed = job
    suite = get("suites", suite_name)
    schedule = own_schedule(suite)
    classes = () if kind == "none" else (kind,)
    calendar = dataclasses.replace(nested("project", classes), suite_schedule=schedule)
    family = suite.card.families[seed % len(suite.card.families)]
    chosen = Instance(suite=suite_name, version=2, family=family, tier=tier, seed=seed)
    step = drift_step(suite_name, chosen, 1.0, calendar) if classes else 0
    env = suite.env(source(suite_name, calendar)).unwrapped
    with tempfile.TemporaryDirectory() as memory:
        observation, info = env.reset(options={"instance": replace(chosen, drift_step=step)})
        task = env._playing.session.task  # noqa: SLF001  as the loop does
        agent, week, over = None, -1, False
        while not over:
            if info.get("session", 0) != week:
                week = info.get("session", 0)
                agent = get("agents", agent_name).make(AgentConfig())
                brief = Brief(text=task.text, goal=task.goal)
                agent.reset(brief, env.tools, Path(memory))
            state = env.oracle_access().observe()[1]
            observation, _, ended, cut, info = env.step(agent.act(observation, info))
            over = ended or cut
        env.close()
    breaches = sorted({breach.rule for breach in getattr(state, "breaches", ())})
    return {"job": list(job), "quality": info["q_state"], "breaches": breaches}


def outcomes(seeds, workers):
    """Return every outcome by job; play what the state does not hold."""
    jobs = list(product(SUITES, AGENTS, TIERS, CLASSES, range(seeds)))
    lines = STATE.read_text().splitlines() if STATE.exists() else []
    known = {tuple(row["job"]): row for row in map(json.loads, lines)}
    missing = [job for job in jobs if job not in known]
    STATE.parent.mkdir(exist_ok=True)
    with ProcessPoolExecutor(workers) as pool, STATE.open("a") as file:
        for row in pool.map(played, missing):
            file.write(json.dumps(row) + "\n")
            file.flush()
            known[tuple(row["job"])] = row
    return {job: known[job] for job in jobs}


def correlation(found, seeds):
    """Return Spearman's rho of cell means with an interval, and each reliability.

    Args:
        found: Outcomes by job.
        seeds: How many a cell has.
    Returns: rho, (low, high) of a bootstrap over cells, and by suite the rank
        correlation of its odd and even seeds, stepped up to all of them.
    """
    cells = list(product(AGENTS, TIERS, CLASSES))
    values = {
        suite: np.array([[found[suite, *c, s]["quality"] for s in range(seeds)] for c in cells])
        for suite in SUITES
    }
    means = np.array([values[suite].mean(axis=1) for suite in SUITES])
    rng = np.random.default_rng(0)
    draws = rng.integers(len(cells), size=(RESAMPLES, len(cells)))
    rhos = [stats.spearmanr(*means[:, draw]).statistic for draw in draws]
    halves = {
        suite: stats.spearmanr(each[:, ::2].mean(axis=1), each[:, 1::2].mean(axis=1)).statistic
        for suite, each in values.items()
    }
    reliability = {suite: 2 * r / (1 + r) for suite, r in halves.items()}
    rho = stats.spearmanr(*means).statistic
    return rho, np.percentile(rhos, [2.5, 97.5]), reliability


def text(found, seeds):
    """Return the page."""
    rho, (low, high), reliability = correlation(found, seeds)
    real = [row for job, row in found.items() if job[0] == "projforge"]
    alarms = sum(bool(row["breaches"]) for row in real)
    bound = stats.beta.ppf(0.95, alarms + 1, len(real) - alarms)
    cells = list(product(AGENTS, TIERS, CLASSES))
    lines = [
        "# ProjForge, real and fast, in the same cells",
        "",
        f"Made by `python benchmarks/projforge_cells.py --seeds {seeds}`: "
        f"{len(cells)} cells, {seeds} instances each in either suite.",
        "",
        f"- Spearman's rank correlation of cell means: {rho:.2f} "
        f"({low:.2f}, {high:.2f}; 95 percent, cells resampled).",
        "- Reliability, odd against even seeds, stepped up to all: "
        + ", ".join(f"`{suite}` {r:.2f}" for suite, r in reliability.items())
        + ".",
        "- Episodes of these agents in which a detector of `projforge` noted a "
        f"breach: {alarms} of {len(real)} (rate at most {bound:.3f}, 95 percent). The "
        "fast twin runs no code and has no detectors.",
        "",
        "Mean quality, real / fast:",
        "",
        "| agent | tier | " + " | ".join(CLASSES) + " |",
        "|---|---|" + "---|" * len(CLASSES),
    ]
    for agent, tier in product(AGENTS, TIERS):
        row = []
        for kind in CLASSES:
            pair = [
                np.mean([found[s, agent, tier, kind, n]["quality"] for n in range(seeds)])
                for s in SUITES
            ]
            row.append(f"{pair[0]:.2f} / {pair[1]:.2f}")
        lines.append(f"| `{agent}` | {tier} | " + " | ".join(row) + " |")
    return "\n".join([*lines, ""])


def main():
    """Play the cells and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    page = text(outcomes(given.seeds, given.workers), given.seeds)
    TABLE.write_text(page)
    print(page)


if __name__ == "__main__":
    main()

"""Reference rows of CartPole3D: nothing, random and the PD rule, level by level.

    released   beside the figures measured on the released generator (facts of the
               paper's benchmark, 200 episodes each; PD 80, 60 for levels 9 to 15, 20
               for level 16), with z = difference / its standard error
    table1     the same agents on the default variant, at easy, medium, hard

Length is in steps, performance is length / 200. Level 14 of the first table is played
at one heading, as it was measured (one env object draws one heading): the one that
meets the easy row of `nothing`; the other five cells of the level then follow.
Run: python benchmarks/cartpole3d_rows.py [--episodes 200] [--out docs/tables/..md]
"""

import argparse
import math
import multiprocessing
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from owa_bench.envs.cartpole3d import env as cartpole
from owa_bench.envs.cartpole3d.levels import LEVELS, OPERATORS
from owa_bench.seeding import stream

GRADES = ("easy", "medium", "hard")
HEADING = 0.385  # x part of the one heading
AGENTS = ("random", "nothing", "pd")
# Standard errors of the page's PD row, as it states them: 0.03 to 0.05.
PD_ERRORS = {0: 0.03, 16: 0.05}
Played = dict[tuple[str, int, str, str], list[int]]
# (mean, sd) of lengths, easy; sd None: not measured, ours stands in.
Figure = tuple[float, float | None]
LENGTHS: dict[tuple[int, str], tuple[Figure, Figure]] = {
    (0, "easy"): ((24.0, 7.7), (51.7, 8.9)),
    (1, "easy"): ((51.1, 10.2), (54.9, 9.6)),
    (2, "easy"): ((23.8, 7.8), (53.7, 9.2)),
    (3, "easy"): ((23.9, 7.9), (53.5, 8.6)),
    (4, "easy"): ((23.4, 7.8), (49.1, 12.0)),
    (5, "easy"): ((23.7, 7.9), (51.4, 9.4)),
    (6, "easy"): ((23.9, 7.6), (51.1, 9.8)),
    (7, "easy"): ((23.7, 7.3), (50.7, 10.4)),
    (8, "easy"): ((24.0, 7.7), (51.6, 8.8)),
    (9, "easy"): ((32.2, 9.9), (65.5, 14.5)),
    (9, "medium"): ((43.8, None), (78.8, None)),
    (9, "hard"): ((62.4, None), (93.0, None)),
    (10, "easy"): ((23.5, 7.4), (50.6, 11.1)),
    (11, "easy"): ((23.1, 7.2), (47.4, 12.2)),
    (12, "easy"): ((23.7, 7.4), (52.1, 9.6)),
    (13, "easy"): ((24.0, 7.7), (51.7, 8.8)),
    (14, "easy"): ((23.1, 7.9), (32.4, 4.7)),
    (14, "medium"): ((math.nan, None), (29.6, None)),
    (14, "hard"): ((math.nan, None), (27.3, None)),
    (15, "easy"): ((24.0, 7.8), (51.4, 9.4)),
    (16, "easy"): ((24.1, 8.4), (51.0, 11.9)),
}
PD: dict[int, tuple[float, ...]] = {
    0: (0.89,),
    1: (0.89,),
    2: (1.00,),
    3: (1.00,),
    4: (0.81,),
    5: (0.92,),
    6: (0.89,),
    7: (0.83, math.nan, 0.63),
    8: (0.89, 0.91, 0.88),
    9: (0.89, 0.78, 0.67),
    10: (0.87, 0.79, 0.65),
    11: (0.70, 0.54, 0.40),
    12: (0.91, 0.92, 0.75),
    13: (0.92, 0.87, 0.92),
    14: (0.94, 0.97, 0.99),
    15: (0.88, 0.74, 0.59),
    16: (0.75, 0.66, 0.57),
}


class Cell(NamedTuple):
    """What is played."""

    spec: str
    level: int
    grade: str
    agent: str
    episodes: int
    heading: bool


def pd_rule(observation: np.ndarray) -> int:
    """Return the push along the axis with the larger error."""
    x, y, u, v, a, b, c, d, p, q, _ = observation[:11].tolist()
    along = 2 * (a * c + d * b) + 0.5 * q + 0.02 * x + 0.05 * u
    across = 2 * (b * c - d * a) - 0.5 * p + 0.02 * y + 0.05 * v
    if max(abs(along), abs(across)) < 0.002:
        return 0
    if abs(along) >= abs(across):
        return 1 if along > 0 else 2
    return 3 if across > 0 else 4


def lengths(cell: Cell) -> list[int]:
    """Return the episode lengths of a cell; seeds are those of every other cell."""
    env = cartpole.CartPole3DEnv(spec=cell.spec, level=cell.level, difficulty=cell.grade)
    if cell.heading:
        draw = env._starts  # noqa: SLF001  the one heading is no option of the env
        wind = (HEADING, math.sqrt(1 - HEADING * HEADING))
        env._starts = lambda world, seed: draw(world, seed)._replace(wind=wind)  # noqa: SLF001
    rng = stream(0, "rows", "random")
    policies: dict[str, Callable[[np.ndarray], int]] = {
        "nothing": lambda _: 0,
        "random": lambda _: int(rng.integers(5)),
        "pd": pd_rule,
    }
    act, found = policies[cell.agent], []
    for seed in range(cell.episodes):
        observation, _ = env.reset(seed=seed)
        steps, done = 0, False
        while not done:
            observation, _, terminated, truncated, _ = env.step(act(observation))
            steps += 1
            done = terminated or truncated
        found.append(steps)
    env.close()
    return found


def grades(spec: str, level: int) -> tuple[str, ...]:
    """Return the grades of a level that differ."""
    if level == 0 or (spec == "released" and level in range(1, 7)):
        return GRADES[:1]
    return GRADES


def cells(episodes: int, long: int) -> list[Cell]:
    """Return all that is played."""
    return [
        Cell(
            spec,
            level,
            grade,
            agent,
            long if agent == "pd" else episodes,
            level == 14 and spec == "released",
        )
        for spec in ("released", "table1")
        for level in LEVELS
        for grade in grades(spec, level)
        for agent in AGENTS
    ]


def z_score(found: list[float], mean: float, error: float) -> float:
    """Return the difference of two means in standard errors; `error` is the page's."""
    own = float(np.var(found, ddof=1)) / len(found)
    return (float(np.mean(found)) - mean) / math.sqrt(own + error * error)


def page_error(found: list[int], sd: float | None, count: int) -> float:
    """Return the standard error of a length of the page; ours where it states none."""
    spread = float(np.std(found, ddof=1)) if sd is None else sd
    return spread / math.sqrt(count)


def beside(found: list[int], figure: Figure, count: int) -> tuple[str, list[float]]:
    """Return "ours (sd) | theirs (sd) | z" of lengths, and the z if there is one."""
    mean, sd = figure
    ours = f"{np.mean(found):.1f} ({np.std(found):.1f})"
    if math.isnan(mean):
        return f"{ours} | | ", []
    theirs = f"{mean:.1f}" if sd is None else f"{mean:.1f} ({sd:.1f})"
    z = z_score(list(map(float, found)), mean, page_error(found, sd, count))
    return f"{ours} | {theirs} | {z:+.1f}", [z]


def beside_pd(found: list[int], level: int, number: int) -> tuple[str, list[float]]:
    """Return "ours (sd) | theirs | z" of performances of the PD rule."""
    share = [steps / 200 for steps in found]
    ours = f"{np.mean(share):.2f} ({np.std(share):.2f})"
    known = PD[level][number] if number < len(PD[level]) else math.nan
    if math.isnan(known):
        return f"{ours} | | ", []
    z = z_score(share, known, PD_ERRORS.get(level, 0.04))
    return f"{ours} | {known:.2f} | {z:+.1f}", [z]


def released(played: Played) -> tuple[list[str], list[float]]:
    """Return the rows of `released` and all z."""
    head = "| level | | random | page | z | nothing | page | z | PD | page | z |"
    rows, scores = [head, "|---" * 11 + "|"], []
    for level in LEVELS:
        for number, grade in enumerate(grades("released", level)):
            nan: Figure = (math.nan, None)
            first, second = LENGTHS.get((level, grade), (nan, nan))
            count = 100 if level == 9 and number else 200
            got = [played["released", level, grade, agent] for agent in AGENTS]
            parts = [
                beside(got[0], first, count),
                beside(got[1], second, count),
                beside_pd(got[2], level, number),
            ]
            scores += [z for _, found in parts for z in found]
            name = "" if len(grades("released", level)) == 1 else grade
            text = " | ".join(part for part, _ in parts)
            rows.append(f"| {level} | {name} | {text} |")
    return rows, scores


def table1(played: Played) -> list[str]:
    """Return the rows of `table1`: performance, easy / medium / hard."""
    head = "| level | operator | random | nothing | PD rule |"
    rows = [head, "|---" * 5 + "|"]
    for level in LEVELS:
        parts = []
        for agent in AGENTS:
            means = [
                np.mean(played["table1", level, grade, agent]) for grade in grades("table1", level)
            ]
            parts.append(" / ".join(f"{mean / 200:.2f}" for mean in means))
        rows.append(f"| {level} | {OPERATORS[level]} | {' | '.join(parts)} |")
    return rows


def main() -> int:
    """Play, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--pd", type=int, default=100, help="episodes of the PD rule")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    todo = cells(given.episodes, given.pd)
    context = multiprocessing.get_context("spawn")
    with context.Pool(given.workers) as pool:
        found = pool.map(lengths, todo, chunksize=1)
    played: Played = {cell[:4]: got for cell, got in zip(todo, found, strict=True)}
    rows, scores = released(played)
    beyond = sum(abs(z) > 2 for z in scores)
    lines = [
        "# CartPole3D: reference rows",
        "",
        "`python benchmarks/cartpole3d_rows.py` prints this page: "
        f"{given.episodes} episodes a cell, {given.pd} of the PD rule.",
        "Random and nothing: length in steps (sd). PD: performance (sd).",
        "",
        "## released, beside the page of facts",
        "",
        *rows,
        "",
        f"{len(scores)} comparisons, {beyond} with |z| > 2 (by chance "
        f"{0.0455 * len(scores):.1f}), largest |z| {max(map(abs, scores)):.1f}.",
        "Level 14 is played at one heading, as it was measured.",
        "",
        "## table1: performance, easy / medium / hard",
        "",
        *table1(played),
        "",
    ]
    text = "\n".join(lines)
    print(text)
    if given.out:
        given.out.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How often the intervals of `owa-bench compare` hold a planted difference.

    python benchmarks/comparison_coverage.py              writes its page in docs/tables
    python benchmarks/comparison_coverage.py --rounds 200   a quick look, printed only

A round is two agents on one set of tasks: skills of tasks are drawn, the second agent's
differ from the first's by the planted amount, and both meet the same luck in part. The
interval is that of `owa_bench.scoring.estimate.comparison.paired_figures`, whole.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from owa_bench.records import price_card, protocol
from owa_bench.records.events import EpisodeEnd, EpisodeStart
from owa_bench.records.instance import ANNOUNCEMENTS, Instance
from owa_bench.records.trace import Leaf, Trace, attempt_id
from owa_bench.scoring.estimate.comparison import COST, QUALITY, PairedOutcomes, paired_figures
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.observe.sample import Sample
from owa_bench.seeding import stream

PAGE = Path(__file__).resolve().parent.parent / "docs/tables/comparison_coverage.md"
DATA = files("owa_bench.protocols")
PROTOCOL = protocol.load((DATA / "default.toml").read_bytes())
PRICES = price_card.load((DATA / "price_card.toml").read_bytes())
EACH = 4  # episodes of a task
LEAST, MOST = 0.93, 0.97
ROUNDS = 2000
DESIGNS = ((1, 20), (4, 8), (4, 20), (8, 40))  # families, tasks of each
GAINS = (0.0, 0.1, 0.4)  # of what the first agent leaves to gain
RATIOS = (1.0, 1.5, 4.0)
WORDS = "Coverage of `owa-bench compare`"


class Row(NamedTuple):
    """How often an interval held the truth, and how often it excluded 0 (ratio 1)."""

    measure: str
    families: int
    tasks: int
    truth: float
    covered: float
    excluded: float


def main() -> None:
    """Simulate, print, and write the table when it is the full one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, help="simulated comparisons a row")
    given = parser.parse_args()
    text = page(list(rows(given.rounds or ROUNDS)), given.rounds or ROUNDS)
    print(text)
    if given.rounds is None:
        PAGE.write_text(text)


def rows(rounds: int) -> Iterator[Row]:
    """Yield the coverage of differences of quality and of ratios of cost."""
    for families, tasks in DESIGNS:
        sample = design(families, tasks)
        for gain, ratio in zip(GAINS, RATIOS, strict=True):
            rng = stream(0, "comparison", f"{families}/{tasks}/{gain}")
            found = [simulate(sample, gain, ratio, rng) for _ in range(rounds)]
            mean_skill = 3 / 5
            truths = {QUALITY: gain * (1 - mean_skill), COST: ratio}
            for place, (measure, truth) in enumerate(truths.items()):
                low, high = np.array([each[place] for each in found]).T
                null = 1.0 if measure == COST else 0.0
                yield Row(
                    measure,
                    families,
                    tasks,
                    truth,
                    float(np.mean((low <= truth) & (truth <= high))),
                    float(np.mean((low > null) | (high < null))),
                )


def simulate(sample, gain, ratio, rng):
    """Return the bounds of both overall intervals for one draw of two agents.

    Args:
        sample: The design.
        gain: Part of what the first leaves to gain that the second gains.
        ratio: Mean cost of the second over the first.
        rng: Random numbers.

    Returns:
        (low, high) of quality, then of cost.
    """
    of = np.arange(len(sample.table)) // EACH
    count = of[-1] + 1
    skill = rng.beta(3.0, 2.0, count)
    better = skill + gain * (1.0 - skill)
    luck = rng.random(len(of))
    other = np.where(rng.random(len(of)) < 0.5, luck, rng.random(len(of)))
    # Costs are larger on larger tasks for both, and vary freely besides.
    size = rng.gamma(4.0, 250.0, count)[of]
    costs = size * rng.gamma(2.0, 0.5, (2, len(of)))
    nothing = np.zeros((len(of), len(ANNOUNCEMENTS)), dtype=bool)
    table = replace(sample.table, q=(luck < skill[of]).astype(float), cost_agent=np.round(costs[0]))
    second = (other < better[of]).astype(float)
    outcomes = PairedOutcomes(second, second, second, np.round(ratio * costs[1]), nothing)
    found = paired_figures(replace(sample, table=table), outcomes)
    overall = {row.measure: row.interval for row in found if row.group == "all"}
    return [(overall[m].low, overall[m].high) for m in (QUALITY, COST)]


def design(families: int, tasks: int) -> Sample:
    """Return a sample of so many families and tasks, `EACH` episodes a task."""
    cells = product(range(families), range(tasks), range(EACH))
    table = observe([episode(i, *cell) for i, cell in enumerate(cells)], PRICES)
    every = np.ones(len(table), dtype=bool)
    return Sample(
        table=table,
        base=every,
        priced=~every,
        crews=every,
        families=tuple(f"toy/f{family}" for family in range(families)),
        weights=np.full(families, 1 / families),
        protocol=PROTOCOL,
        prices=PRICES,
    )


def episode(index: int, family: int, task: int, repeat: int) -> Trace:
    """Return one recorded episode without anything in it."""
    pair = f"f{family}/{task:03d}"
    start = EpisodeStart(
        index=index,
        attempt=0,
        arm="first",
        pair=pair,
        repeat=repeat,
        env_id="toy",
        instance=Instance(suite="toy", version=1, family=f"f{family}", tier=1, seed=task),
        delta=0.0,
        realised=0.0,
        world="",
        agent="first",
        fingerprint="",
        interventions=0,
        horizon=1,
        depth=1,
        theta=0.95,
    )
    end = EpisodeEnd(
        outcome="finished",
        q_state=0.0,
        quality=0.0,
        success=False,
        stated=None,
        failed_attempts=0,
        reason="",
        steps=1,
        simulated_s=0.0,
        wall_s=0.0,
    )
    leaf = Leaf(
        attempt_id=attempt_id(index, 0),
        index=index,
        attempt=0,
        status="complete",
        count=2,
        head="",
        replay="",
        shard="",
        frames=(),
    )
    return Trace(leaf, (start, end))


def page(found: list[Row], rounds: int) -> str:
    """Return the table as a page."""
    lines = [
        f"# {WORDS}",
        "",
        f"Made by `python benchmarks/comparison_coverage.py`: {rounds} simulated",
        f"comparisons a row, {EACH} pairs of episodes a task, nominal 95 percent.",
        "Quality: second minus first. Cost: the second over the first. Excluded: how",
        "often the interval lies beside 0 (cost: 1), which for a row without a",
        "difference is the rate of false findings.",
        "",
        "| measure | families x tasks | planted | covered | excluded | |",
        "|---|---|---|---|---|---|",
    ]
    for row in found:
        outside = "" if LEAST <= row.covered <= MOST else "OUTSIDE"
        lines.append(
            f"| {row.measure} | {row.families} x {row.tasks} | {row.truth:g} | "
            f"{row.covered:.3f} | {row.excluded:.3f} | {outside} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

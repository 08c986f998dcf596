"""Spreads of what the gates on R and S count, played: the constants of `power`.

    python benchmarks/gate_spreads.py [--worlds 16] [--seeds 6]

R: the gain of a SelfRev campaign that adopts all that helps, on its confirmation's pairs, in
worlds of the tiers that battery `full` draws (settings families; a program's inner attempts
are slow). S: what a reference crew reaches on MultiCrew, and the references alone, mean of two
magnitudes a task, in the same tiers.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import crew_order
import selfrev

from owa_bench.scoring.validation.power import crew_spread

TIERS, FIRST, MAGNITUDES = (1, 2), 50_000, (0.0, 0.5)
CREWS = ("contract_net", "fifo")
ALONE = ("list_scheduler", "contract_net")


def gain(number: int, tier: int, folder: Path) -> float:
    """Return the gain of the version that adopts all that helps."""
    campaign = selfrev.Campaign(number, tier, folder)
    count = campaign.world.confirmation
    first = campaign.play(frozenset(), "confirmation", count)
    last = campaign.play(frozenset(campaign.world.useful), "confirmation", count)
    return float(np.mean([b.quality - a.quality for a, b in zip(first, last, strict=True)]))


def revision(worlds: int) -> None:
    """Print gains by tier and what `power` reads of them."""
    gains = []
    with tempfile.TemporaryDirectory() as folder:
        for tier in TIERS:
            own = [gain(FIRST + number, tier, Path(folder)) for number in range(worlds)]
            print(f"R, tier {tier}: gain {np.mean(own):.3f}, spread {np.std(own, ddof=1):.3f}")
            gains += own
    each = np.array(gains)
    print(f"R, {len(each)} worlds: E[g^2] / E[g] = {(each**2).mean() / each.mean():.3f}")


def by_task(agent: str, cap: int | None, seeds: int) -> np.ndarray:
    """Return the mean quality of each task (tasks,) over the magnitudes."""
    arm, means = crew_order.Arm(agent, agent, cap), []
    for delta in MAGNITUDES:
        tasks = [task for tier in TIERS for task in crew_order.tasks(tier, delta, seeds)]
        means.append(crew_order.played(arm, tasks))
    return np.mean(means, axis=0)


def crews(seeds: int) -> None:
    """Print C_1* and how far a task moves S, beside what `power` takes."""
    alone = max((by_task(agent, 1, seeds) for agent in ALONE), key=lambda q: q.mean())
    base = alone.mean()
    print(f"S, {len(alone)} tasks: C_1* = {base:.3f}")
    for agent in CREWS:
        whole = by_task(agent, None, seeds)
        lift = (whole.mean() - base) / (1 - base)
        seen = ((whole - (1 - lift) * alone) / (1 - base)).std(ddof=1)
        like = np.corrcoef(whole, alone)[0, 1]
        print(
            f"S, {agent}: lift {lift:.3f}, spread of a task {seen:.3f} (`power` takes "
            f"{crew_spread(lift):.3f}), correlation with one role {like:.2f}"
        )


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=6)
    chosen = parser.parse_args()
    revision(chosen.worlds)
    crews(chosen.seeds)


if __name__ == "__main__":
    main()

"""The order of reference crews on MultiCrew, committed here before it was run.

    python benchmarks/crew_order.py [SEEDS]

EXPECTED was written before any of these tasks was played. Every arm plays the same
tasks (five families, tiers 1 to 3, seeds 500 on, without drift and at magnitude .5); a
neighbour's difference is paired by task, with a 95 % interval by tasks. What does not
separate is printed as such. Writes docs/tables/crew_order.md.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from owa_bench.envs.multicrew import generate  # noqa: E402
from owa_bench.envs.multicrew.suite import SUITE  # noqa: E402
from tests.builders import crew_episodes as episodes  # noqa: E402


class Arm(NamedTuple):
    """A reference agent on every seat, or alone."""

    title: str
    agent: str
    cap: int | None = None


EXPECTED = (  # from the worst to the best
    Arm("solo scheduler", "list_scheduler", 1),
    Arm("FIFO", "fifo"),
    Arm("contract-net", "contract_net"),
    Arm("star with critic", "star_critic"),
)
TIERS, FIRST, DRIFT = (1, 2, 3), 500, 0.5
TABLE = ROOT / "docs" / "tables" / "crew_order.md"


def tasks(tier, delta, seeds):
    found = []
    for family in generate.FAMILIES:
        for seed in range(FIRST, FIRST + seeds):
            base = episodes.instance(family, tier, seed)
            step = SUITE.schedule.steps_for(base, SUITE.generate(base), delta)
            found.append(msgspec.structs.replace(base, drift_step=step))
    return found


def played(arm, chosen):
    maker = episodes.reference(arm.agent)
    return np.array([episodes.play(maker, task, cap=arm.cap).q_state for task in chosen])


def interval(values):
    half = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    return values.mean(), half


def verdict(mean, half):
    if mean - half > 0:
        return "as expected"
    return "reversed" if mean + half < 0 else "does not separate"


def main(seeds):
    rows, lines = [], []
    for delta in (0.0, DRIFT):
        for tier in TIERS:
            chosen = tasks(tier, delta, seeds)
            rows.append((f"{tier}, {delta:g}", [played(arm, chosen) for arm in EXPECTED]))
    pooled = [np.concatenate(own) for own in zip(*(r for _, r in rows), strict=True)]
    rows.append(("all", pooled))
    titles = [arm.title for arm in EXPECTED]
    lines.append(
        f"`python benchmarks/crew_order.py {seeds}`: mean q_state, five families, "
        f"{seeds} seeds each. Expected, written before: {' < '.join(titles)}."
    )
    lines += ["", f"| tier, drift | {' | '.join(titles)} |", "|---" * 5 + "|"]
    for name, own in rows:
        cells = " | ".join(f"{values.mean():.3f}" for values in own)
        lines.append(f"| {name} | {cells} |")
    lines += ["", "| neighbours | tier, drift | difference | |", "|---" * 4 + "|"]
    for place, title in enumerate(titles[1:], start=1):
        for name, own in rows:
            mean, half = interval(own[place] - own[place - 1])
            lines.append(
                f"| {title} less {titles[place - 1]} | {name} | {mean:+.3f} +- "
                f"{half:.3f} | {verdict(mean, half)} |"
            )
    text = "\n".join(lines) + "\n"
    print(text)
    TABLE.write_text("# Reference crews in order\n\n" + text)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)

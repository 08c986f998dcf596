# ruff: noqa: T201
"""Plays worlds of `tariff` with its parser, for tests and by `python -m tests.company.tariff_play`.

Arguments: levels and seeds such as `1,2,3 0-30`, then what the parser leaves out, if anything.
"""

import json
import math
import sys
import time
from typing import NamedTuple

from owa_bench.company.kinds.judging import frame
from owa_bench.company.kinds.tariff import KIND
from tests.builders import cases


class Played(NamedTuple):
    """Quality, parts by name, classes present, acts, quotes, Brier score and words of beliefs."""

    q: float
    parts: dict
    classes: tuple
    acts: int
    quotes: int
    brier: float


def present(world):
    """Return the classes of trap that change an item of a world."""
    return tuple(sorted({reason for item in KIND.truth(world).items for reason in item.reasons}))


def quality(world, state):
    """Return the quality of a state, and its parts by name."""
    parts = KIND.parts(world, KIND.truth(world), state)
    total = math.fsum(part.weight * part.value for part in parts) * frame(state.harms)
    return (total if parts[0].value else 0.0), {part.name: part.value for part in parts}


def play(level, seed, miss=(), delta=0.0):
    """Return what the parser reaches in a world."""
    timeline = cases.timeline("tariff", level, seed, delta)
    world = timeline.worlds[0]
    episode = cases.play(timeline, miss)
    state = episode.session.state
    stated = {e.proposition: e.p for e in episode.log if type(e).__name__ == "Belief"}
    truths = {p.name: p.truth for p in KIND.propositions(world)}
    brier = sum((stated.get(name, 0.5) - truth) ** 2 for name, truth in truths.items())
    return Played(
        episode.ending.q_state,
        quality(world, state)[1],
        present(world),
        episode.steps,
        state.used.get("quotes", 0),
        brier / max(1, len(truths)),
    )


def sweep(level, seeds, miss):
    """Print what the parser reaches in worlds of a level."""
    rows = []
    for seed in seeds:
        began = time.monotonic()
        row = play(level, seed, miss)
        rows.append(row)
        parts = json.dumps({name: round(value, 3) for name, value in row.parts.items()})
        print(f"{level} {seed} q {row.q:.3f} {parts} {time.monotonic() - began:.1f} s", flush=True)
    count = len(rows)
    parts = {name: sum(row.parts[name] for row in rows) / count for name in rows[0].parts}
    print(
        f"level {level} without {','.join(miss) or 'nothing'}, {count} worlds: "
        f"q {sum(row.q for row in rows) / count:.3f} least {min(row.q for row in rows):.3f} "
        f"solved {sum(row.q >= 0.95 for row in rows)} "
        f"acts {sum(row.acts for row in rows) / count:.0f} "
        f"quotes {sum(row.quotes for row in rows) / count:.0f} "
        f"brier {sum(row.brier for row in rows) / count:.3f}",
        {name: round(value, 3) for name, value in parts.items()},
        flush=True,
    )


if __name__ == "__main__":
    first, last = map(int, sys.argv[2].split("-"))
    for number in sys.argv[1].split(","):
        sweep(int(number), range(first, last), tuple(sys.argv[3:]))

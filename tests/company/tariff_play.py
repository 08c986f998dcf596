# ruff: noqa: T201
"""Plays worlds of `tariff` with its parser, for tests and by `python -m tests.company.tariff_play`.

Arguments: levels and seeds such as `1,2,3 0-30`, then what the parser leaves out, if anything.
"""

import math
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from owa_bench.agents.solvers.cases.tariff import TariffParser
from owa_bench.company.kinds.judging import frame
from owa_bench.company.kinds.tariff import KIND
from tests.company.case_stub import StubDesk, draw


class Played(NamedTuple):
    """Quality, parts by name, classes present, acts, and Brier score of the beliefs."""

    q: float
    parts: dict
    classes: tuple
    acts: int
    brier: float


def present(world):
    """Return the classes of trap that change an item of a world."""
    truth = KIND.truth(world)
    answers = [item.answer for item in truth.items]
    return tuple(
        name
        for name in KIND.sources
        if [item.answer for item in KIND.truth(world, blind={name}).items] != answers
    )


def quality(world, state):
    """Return the quality of a state, and its parts by name."""
    parts = KIND.parts(world, KIND.truth(world), state)
    total = math.fsum(part.weight * part.value for part in parts) * frame(state.harms)
    return (total if parts[0].value else 0.0), {part.name: part.value for part in parts}


def play(world, folder, miss=()):
    """Return what the parser reaches in a world."""
    desk = StubDesk(KIND, world, Path(folder))
    last = desk.play(TariffParser(desk.brief(), miss).plan())
    q, parts = quality(world, desk.state)
    truths = {p.name: p.truth for p in KIND.propositions(world)}
    beliefs = last.arguments.get("beliefs", {})
    brier = sum((beliefs.get(name, 0.5) - truth) ** 2 for name, truth in truths.items())
    return Played(q, parts, present(world), len(desk.acts) + 1, brier / max(1, len(truths)))


def sweep(levels, seeds, miss):
    for level in levels:
        rows = []
        for seed in seeds:
            world = draw(KIND, seed, level)
            began = time.process_time()
            with tempfile.TemporaryDirectory() as folder:
                row = play(world, folder, miss)
            rows.append(row)
            if row.q < 0.9999 and not miss:
                print(level, seed, round(row.q, 3), row.parts, row.classes, flush=True)
            used = time.process_time() - began
            if not miss:
                print(f"{level} {seed} q {row.q:.3f} acts {row.acts} {used:.1f} s", flush=True)
        count = len(rows)
        parts = {name: sum(row.parts[name] for row in rows) / count for name in rows[0].parts}
        print(
            f"level {level} miss {','.join(miss) or '-'} n {count}: "
            f"q {sum(row.q for row in rows) / count:.3f} min {min(row.q for row in rows):.3f} "
            f"solved {sum(row.q >= 0.95 for row in rows) / count:.2f} "
            f"acts {sum(row.acts for row in rows) / count:.0f} "
            f"brier {sum(row.brier for row in rows) / count:.3f}",
            {name: round(value, 3) for name, value in parts.items()},
            flush=True,
        )


if __name__ == "__main__":
    first, last = map(int, sys.argv[2].split("-"))
    sweep([int(n) for n in sys.argv[1].split(",")], range(first, last), tuple(sys.argv[3:]))

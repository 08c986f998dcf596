"""What ChangeSurf's drift comes to on the rendered site, without a browser.

    python benchmarks/realised.py [--seeds N]     writes docs/tables/realised.md
    python benchmarks/realised.py --moved         writes docs/tables/moved.md: how far
                                                  controls move, in a real browser

Each cell is the oracle's walk over HTTP, found by role and accessible name alone, at
one nominal magnitude, measured against its walk through the undrifted site: mean
normalised tree edit distance of (role, name) trees, share of control names that
changed, share of page-to-page steps that changed, and the deeds it took more. `solved`
is how many walks ended with q_state 1.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from owa_bench.discovery import find, get
from owa_bench.drift import calendar as calendars
from owa_bench.drift import order as orders
from owa_bench.drift.calendar import Calendar
from owa_bench.envs.changesurf.generate import FAMILIES, HELD_OUT_FAMILIES, VERSION, generate
from owa_bench.envs.changesurf.magnitude import MagnitudeChange, magnitude_change
from owa_bench.envs.changesurf.oracle.goal import q_state
from owa_bench.envs.changesurf.oracle.walk import Walk, walk
from owa_bench.records.instance import ANNOUNCEMENTS, Instance, Timeline
from owa_bench.seeding import PRACTICE_BIT, derive, stream

TABLE = Path(__file__).resolve().parent.parent / "docs" / "tables" / "realised.md"
DELTAS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
TIER = 2
EVERY = (*FAMILIES, *HELD_OUT_FAMILIES)
Cell = list[tuple[MagnitudeChange, bool]]


def drifted(instance: Instance, delta: float, calendar: Calendar) -> Timeline:
    """Return the timeline of an instance at a nominal magnitude."""
    world = generate(instance)
    strikes = calendar.possible(instance, world)
    step = orders.longest_prefix(strikes, delta)
    for strike in strikes[:step]:
        rng = stream(instance.seed, "drift", strike.operator, strike.target)
        operator = get("operators", strike.operator)
        world = operator.apply(world, strike.target, strike.intensity, rng=rng)
    # Drift step 0 all the same: names of one attempt, so only the drift is measured.
    return Timeline(instance=instance, starts=(0,), worlds=(world,), changes=((),), realised=0.0)


def instances(seeds: int) -> list[Instance]:
    """Return the instances every row of the table is measured on."""
    return [
        Instance(
            suite="changesurf",
            version=VERSION,
            family=family,
            tier=TIER,
            seed=derive(seed, "realised", family) % PRACTICE_BIT,
        )
        for family in EVERY
        for seed in range(seeds)
    ]


def measure(played: Iterable[tuple[Instance, Walk]], delta: float, calendar: Calendar) -> Cell:
    """Return what one row is made of; instances the calendar spares are left out."""
    found: Cell = []
    for instance, plain in played:
        if delta and not calendar.possible(instance, plain.state.world):
            continue
        there = walk(drifted(instance, delta, calendar))
        solved = there.ending == "done" and q_state(there.state) == 1.0
        found.append((magnitude_change(plain, there), solved))
    return found


def row(name: str, cell: Cell) -> str:
    """Return a line of the table."""
    if not cell:
        return f"| {name} | 0 | | | | | |"
    means = [sum(values) / len(cell) for values in zip(*(r for r, _ in cell), strict=True)]
    tree, labels, graph, steps = means
    solved = sum(ok for _, ok in cell)
    return (
        f"| {name} | {len(cell)} | {solved} | {tree:.3f} | {labels:.3f} | {graph:.3f} "
        f"| {steps:+.1f} |"
    )


def lines(seeds: int) -> Iterable[str]:
    """Return the table, line by line."""
    plain = calendars.nested("web")
    played = [(i, walk(drifted(i, 0.0, plain))) for i in instances(seeds)]
    head = "| n | solved | tree | labels | graph | steps |\n|---|---|---|---|---|---|---|"
    yield "# Realised magnitude of web drift\n"
    yield (
        f"Made by `python benchmarks/realised.py --seeds {seeds}`: tier {TIER}, "
        f"{len(EVERY)} families, {seeds} seeds each; the oracle over HTTP.\n"
    )
    yield "## By nominal magnitude (all operators)\n"
    yield f"| magnitude {head}"
    for delta in DELTAS:
        yield row(f"{delta:g}", measure(played, delta, plain))
    yield "\n## By announcement class, at full magnitude\n"
    yield f"| class {head}"
    for kind in ANNOUNCEMENTS:
        yield row(kind, measure(played, 1.0, calendars.nested("web", [kind])))
    yield "\n## By operator alone, at full magnitude\n"
    yield (
        "`id_churn` alone is the placebo arm: every id, class, field name and route is "
        "new and a reader sees the same site.\n"
    )
    yield f"| operator (class) {head}"
    for name, found in find("operators").items():
        if name.startswith("web/"):
            alone = calendars.single("web", name)
            short = f"{name.removeprefix('web/')} ({found.plugin.announcement})"
            yield row(short, measure(played[::2], 1.0, alone))


def moves() -> Iterable[str]:
    """Return the table of displacements, line by line; a browser is held meanwhile."""
    from owa_bench.envs.changesurf.browser.host import Lease
    from owa_bench.envs.changesurf.magnitude import mean_displacement
    from owa_bench.envs.changesurf.suite import SUITE

    plain = calendars.nested("web")
    lease = Lease()
    yield "# How far web drift moves controls\n"
    yield (
        f"Made by `python benchmarks/realised.py --moved`: tier {TIER}, one goal of "
        "every site, in a real browser. Mean distance between a control's places "
        "before and after, over the diagonal of the window; n counts instances with "
        "a control that stayed.\n"
    )
    yield "| magnitude | n | moved |\n|---|---|---|"
    for delta in DELTAS:
        ways = [
            way
            for instance in instances(1)[1::3]
            if (way := mean_displacement(SUITE, drifted(instance, delta, plain))) is not None
        ]
        yield f"| {delta:g} | {len(ways)} | {sum(ways) / len(ways):.3f} |"
    lease.give_back()


def main() -> int:
    """Write the table and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--moved", action="store_true")
    asked = parser.parse_args()
    made = []
    for line in moves() if asked.moved else lines(asked.seeds):
        print(line, flush=True)
        made.append(line)
    table = TABLE.with_name("moved.md") if asked.moved else TABLE
    table.write_text("\n".join(made) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Cases of a company: does the parser solve them, what does each trap cost, what do releases do?

    python benchmarks/cases.py                  one seed a cell, for a look (2 minutes)
    python benchmarks/cases.py --seeds 20       what `make long` plays; resumable
    python benchmarks/cases.py --seeds 200      the sweep of the issue: hours

Each play is kept in `--kept`, so a sweep that was stopped goes on where it was. The tables go to
docs/tables/cases.md.
"""

import argparse
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from owa_bench.company.kinds.contract import CaseWorld
from owa_bench.envs.casework.judge import case_quality
from owa_bench.envs.casework.kinds import FAMILIES, KINDS, TIERS
from owa_bench.envs.casework.releases import releases
from owa_bench.records.instance import Timeline
from tests.builders import cases

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/tables/cases.md"
FIRST = cases.FIRST
DELTAS = (0.0, 0.5, 1.0)


def played(timeline: Timeline) -> dict[str, Any]:
    """Play the parser of served text; return q, acts and characters read."""
    texts: list[str] = []
    episode = cases.play(timeline, texts=texts)
    assert episode.ending is not None
    return {"q": episode.ending.q_state, "acts": episode.steps, "read": sum(map(len, texts))}


class KeptPlays:
    """Results by name in a file of JSON lines, written as they come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self._kept = {row["name"]: row for row in map(json.loads, lines)}

    def of(self, name: str, play: Any) -> dict[str, Any]:
        """Return a result, played if it is not kept yet."""
        if name not in self._kept:
            self._kept[name] = {"name": name, **play()}
            with self._path.open("a") as file:
                file.write(json.dumps(self._kept[name]) + "\n")
        return self._kept[name]


def sweep(kept: KeptPlays, families: Iterable[str], seeds: int) -> Iterator[str]:
    """Yield the table of the parser's plays."""
    yield "| kind | level | delta | cases | least q | solved | acts | characters read |"
    yield "|---|---|---|---|---|---|---|---|"
    for family in families:
        for tier in TIERS:
            for delta in DELTAS:
                rows = []
                for seed in range(FIRST, FIRST + seeds):
                    name = f"{family}-{tier}-{delta}-{seed}"
                    case = family, tier, seed, delta
                    rows.append(kept.of(name, lambda case=case: played(cases.timeline(*case))))
                    print(f"  {name}: q {rows[-1]['q']:.3f}", file=sys.stderr)
                least = min(row["q"] for row in rows)
                solved = sum(row["q"] == 1.0 for row in rows)
                acts = statistics.mean(row["acts"] for row in rows)
                read = statistics.mean(row["read"] for row in rows)
                yield (
                    f"| {family} | {tier} | {delta:g} | {len(rows)} | {least:.3f} | "
                    f"{solved} of {len(rows)} | {acts:.0f} | {read:,.0f} |"
                )


def blind_quality(world: CaseWorld, blind: frozenset[str]) -> float:
    """Return the quality of a reader who leaves sources out and is right otherwise."""
    kind = KINDS[world.kind]
    happened = frozenset(event.name for event in world.events)
    return case_quality(world, kind.state_of(world, kind.truth(world, happened, blind), happened))


def ablations(families: Iterable[str], seeds: int) -> Iterator[str]:
    """Yield the table of what each source costs where it matters."""
    yield "| kind | level | left out | share of cases | mean cost | least | most |"
    yield "|---|---|---|---|---|---|---|"
    for family in families:
        kind = KINDS[family]
        for tier in TIERS:
            costs: dict[str, list[float]] = defaultdict(list)
            sets = set()
            for seed in range(FIRST, FIRST + seeds):
                world = cases.world(family, tier, seed)
                happened = frozenset(event.name for event in world.events)
                items = kind.truth(world, happened).items
                present = frozenset(reason for item in items for reason in item.reasons)
                sets.add(present)
                for name in present:
                    costs[name].append(1.0 - blind_quality(world, frozenset({name})))
            for name in kind.sources:
                if found := costs.get(name):
                    yield (
                        f"| {family} | {tier} | `{name}` | {len(found) / seeds:.2f} | "
                        f"{statistics.mean(found):.3f} | {min(found):.3f} | {max(found):.3f} |"
                    )
            yield f"| {family} | {tier} | *sets of traps* | {len(sets)} of {seeds} | | | |"


def chain(kept: KeptPlays, family: str, count: int, plays: int) -> Iterator[str]:
    """Yield what a chain of releases does to the parser, and how many tools it offers."""
    case = cases.instance(family, 2)
    tools: set[tuple[str, str, str]] = set()
    qualities = []
    for release in releases(cases.world(family, 2), FIRST, count):
        for host in release.world.hosts:
            tools |= {(host.host, "GET", served.path) for served in host.tables}
            tools |= {(host.host, call.method, call.path) for call in host.calls}
        if release.number % max(1, count // plays) == 0:
            timeline = Timeline(
                instance=case, starts=(0,), worlds=(release.world,), changes=((),), realised=0.0
            )
            name = f"release-{family}-{count}-{release.number}"
            qualities.append(kept.of(name, lambda timeline=timeline: played(timeline))["q"])
            print(f"  {name}: q {qualities[-1]:.3f}", file=sys.stderr)
    right = sum(q == 1.0 for q in qualities)
    yield (
        f"One company of `{family}`, level 2, in {count} releases: the parser has q = 1.000 in "
        f"{right} of {len(qualities)} that it played; {len(tools)} distinct tools (host, method "
        "and path) over the chain. Each release plays the same queue."
    )


def main() -> None:
    """Print the tables, and write the page."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    options.add_argument("--seeds", type=int, default=1, help="cases a cell (default 1)")
    options.add_argument("--traps", type=int, default=0, help="worlds of the table of traps")
    options.add_argument("--releases", type=int, default=0, help="releases of the chain")
    options.add_argument("--kept", type=Path, default=Path("runs/cases.jsonl"))
    options.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    options.add_argument("--page", type=Path, default=PAGE, help="page to write; - for none")
    chosen = options.parse_args()
    chosen.kept.parent.mkdir(parents=True, exist_ok=True)
    kept, families = KeptPlays(chosen.kept), chosen.families
    if min(chosen.seeds, chosen.traps + 1, chosen.releases + 1) < 1:
        options.error("--seeds must be at least 1, --traps and --releases at least 0")
    traps = chosen.traps or max(3, chosen.seeds)
    count = chosen.releases or max(8, min(200, 10 * chosen.seeds))
    lines = [
        "# Cases of a company: parser, traps, releases",
        "",
        f"Made by `python benchmarks/cases.py --seeds {chosen.seeds} --traps {traps} "
        f"--releases {count}`. Seeds from {FIRST:,} on.",
        "",
        "## The parser of served text",
        "",
        *sweep(kept, families, chosen.seeds),
        "",
        "## What each trap costs",
        "",
        "A reader leaves one source out and is right otherwise. The cost is what q loses in the "
        "cases in which the source changes an answer.",
        "",
        *ablations(families, traps),
        "",
        "## Releases",
        "",
        *chain(kept, families[0], count, min(50, count)),
        "",
    ]
    text = "\n".join(lines)
    print(text)
    if str(chosen.page) != "-":
        chosen.page.write_text(text)


if __name__ == "__main__":
    main()

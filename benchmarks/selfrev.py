"""False adoption and power of SelfRev's acceptors, recovery of planted gains, speed.

    python benchmarks/selfrev.py [--campaigns 200] [--pairs 60] [--versions 60]
    python benchmarks/selfrev.py --family weights     # that family alone

`--write` writes docs/tables/selfrev.md, or selfrev_FAMILY.md. Each campaign is a tier-1
world. Every version is played once on development and holdout instances; all four
acceptors read the same attempts, each component against the first version.
"""

import argparse
import contextlib
import resource
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from owa_bench.agents.solvers.revision.acceptors import ACCEPTORS as ACCEPTORS_OF
from owa_bench.agents.solvers.revision.acceptors import Acceptor, RevisionAgent
from owa_bench.canonical import keyed_digest
from owa_bench.envs.selfrev import generate
from owa_bench.interfaces import Brief, InnerDraw, Subject
from owa_bench.records.holdout import HoldoutPlan, e_value, holdout_statistic
from owa_bench.records.instance import Instance
from owa_bench.runs.assembly import make_env
from owa_bench.runs.laboratory.player import InnerPlayer
from owa_bench.seeding import PRACTICE_BIT, stream
from owa_bench.shells.tool_env import ToolEnv

TABLE = Path(__file__).parents[1] / "docs/tables/selfrev.md"
LEVEL = 0.05
SCREENED = 12
PROGRAMS = "programs"
SETTINGS = tuple(name for name in generate.FAMILIES if name != PROGRAMS)
RULES = ("greedy", "bonferroni", "halving", "e_process")
ACCEPTORS = ("greedy", "paired t, Bonferroni", "successive halving", "e-process")


class Scores(NamedTuple):
    """Qualities on the holdout and logged scores in development of a version."""

    quality: np.ndarray
    logged: np.ndarray


class Campaign:
    """A world and a player of its inner instances."""

    def __init__(self, number: int, tier: int, folder: Path, family: str = "") -> None:
        family = family or SETTINGS[number % len(SETTINGS)]
        self.world = world = generate.generate(
            Instance(
                suite="selfrev",
                version=generate.VERSION,
                family=family,
                tier=tier,
                seed=1_000 + number,
            )
        )
        self._key = number.to_bytes(8, "big")
        self._player = InnerPlayer(
            InnerDraw(
                suite=world.suite,
                version=world.suite_version,
                families=world.families,
                tier=world.suite_tier,
                pool=world.pool,
            ),
            folder,
        )
        pool = [self._instance("development", at) for at in range(world.pool)]
        self._player.write_expert_log(pool)

    def _instance(self, draw: str, number: int) -> Instance:
        digest = keyed_digest(self._key, draw, str(number))
        seed = int.from_bytes(digest[:8], "big") & (PRACTICE_BIT - 1)
        return self._player.instance(seed, number)

    def play(self, adopted: frozenset[str], draw: str, count: int):
        """Return the results of a version on a draw."""
        options = self.world.options(adopted)
        subject = Subject(agent=self.world.subject, options=options)
        return [self._player.play(subject, self._instance(draw, at)) for at in range(count)]

    def close(self) -> None:
        self._player.close()

    def scores(self, adopted: frozenset[str], pairs: int) -> Scores:
        held = self.play(adopted, "holdout", pairs)
        developed = self.play(adopted, "development", SCREENED)
        return Scores(np.array([r.quality for r in held]), np.array([r.logged for r in developed]))


def adoptions(base: Scores, versions: dict[str, Scores]) -> dict[str, set[str]]:
    """Return what each acceptor adopts of the same attempts."""
    gains = {name: s.quality - base.quality for name, s in versions.items()}
    dev = {name: s.logged.mean() - base.logged.mean() for name, s in versions.items()}
    level = LEVEL / len(versions)
    best = sorted(dev, key=lambda name: -dev[name])[:2]
    return {
        ACCEPTORS[0]: {name for name in dev if dev[name] > 0},
        ACCEPTORS[1]: {n for n in gains if bound(gains[n], level) > 0},
        ACCEPTORS[2]: {n for n in best if bound(gains[n], LEVEL / 2) > 0},
        ACCEPTORS[3]: {n for n in gains if reaches(gains[n], 1 / level)},
    }


def bound(gains: np.ndarray, level: float) -> float:
    plan = HoldoutPlan(
        hypothesis="",
        base="",
        candidate="",
        metric="quality",
        pairs=len(gains),
        rule="lower_bound",
        level=level,
    )
    return holdout_statistic(plan, gains.tolist()).statistic


def reaches(gains: np.ndarray, wanted: float) -> bool:
    return any(e_value(gains[:end]) >= wanted for end in range(1, len(gains) + 1))


def interval(count: int, size: int) -> str:
    found = stats.binomtest(count, size).proportion_ci(method="wilson")
    return f"{count} of {size} ({found.low:.3f}, {found.high:.3f})"


def acceptor_table(campaigns: int, pairs: int, folder: Path, family: str = "") -> list[str]:
    false, found, effects = Counter(), Counter(), {}
    for number in range(campaigns):
        campaign = Campaign(number, 1, folder, family)
        world = campaign.world
        base = campaign.scores(frozenset(), pairs)
        versions = {c.name: campaign.scores(frozenset({c.name}), pairs) for c in world.components}
        for component in world.components:
            gain = versions[component.name].quality - base.quality
            effects.setdefault(component.truth, []).append(gain.mean())
        for name, adopted in adoptions(base, versions).items():
            false[name] += bool(adopted - world.useful)
            found[name] += world.useful <= adopted
    lines = [
        "## Acceptors",
        "",
        f"{campaigns} campaigns of tier 1, six proposals each, {pairs} pairs a "
        "proposal; each attempt is played once and read by all four. "
        "Intervals: Wilson, .95.",
        "",
        "| acceptor | campaigns with a false adoption | the helpful one adopted |",
        "|---|---|---|",
    ]
    lines += [
        f"| {n} | {interval(false[n], campaigns)} | {interval(found[n], campaigns)} |"
        for n in ACCEPTORS
    ]
    lines += [
        "",
        "## Planted effects",
        "",
        "Mean difference of quality from the first version, played on holdouts.",
        "",
        "| class | components | mean effect | least | greatest |",
        "|---|---|---|---|---|",
    ]
    for truth, values in sorted(effects.items()):
        row = (np.mean(values), np.min(values), np.max(values))
        cells = " | ".join(f"{value:+.3f}" for value in row)
        lines.append(f"| {truth} | {len(values)} | {cells} |")
    return [*lines, ""]


def recovery(versions: int, folder: Path) -> list[str]:
    """Regress the gain on the confirmation's pairs on the gain on other instances."""
    measured, planted = [], []
    for number in range(versions):
        campaign = Campaign(10_000 + number, 1 + number % 3, folder)
        world = campaign.world
        rng = stream(number, "version")
        adopted = frozenset(c.name for c in world.components if rng.random() < 0.5)
        gains = []
        for draw, count in (("confirmation", world.confirmation), ("truth", 120)):
            first = campaign.play(frozenset(), draw, count)
            last = campaign.play(adopted, draw, count)
            pairs = zip(first, last, strict=True)
            gains.append(np.mean([b.quality - a.quality for a, b in pairs]))
        measured.append(gains[0])
        planted.append(gains[1])
    line = stats.linregress(planted, measured)
    half = stats.t.ppf(0.975, versions - 2) * line.stderr
    return [
        "## Recovery of gains",
        "",
        f"{versions} drawn versions of tiers 1 to 3: the gain on the 40 pairs of "
        "the confirmation on the gain on 120 other pairs.",
        "",
        f"Slope {line.slope:.3f} +/- {half:.3f} (.95), intercept "
        f"{line.intercept:+.4f}, r {line.rvalue:.3f}.",
        "",
    ]


def full_campaigns(count: int, family: str = "") -> list[str]:
    """Play whole campaigns of the suite, the same worlds for each acceptor."""
    lines = [
        "## Full campaigns",
        "",
        f"{count} whole campaigns of tier 1 an acceptor, the same worlds for each: "
        "tools, registered tests of 100 pairs, confirmation. Intervals: Wilson, .95; "
        "Student's t for means.",
        "",
        "| acceptor | with a false adoption | the helpful one adopted | q_state | "
        "gain on the confirmation |",
        "|---|---|---|---|---|",
    ]
    for name in RULES:
        ends = [played(ACCEPTORS_OF[name], at, family) for at in range(count)]
        false, found, quality, gain = map(list, zip(*ends, strict=True))
        lines.append(
            f"| {name} | {interval(sum(false), count)} | {interval(sum(found), count)}"
            f" | {spread(quality)} | {spread(gain)} |"
        )
    return [*lines, ""]


def played(acceptor: Acceptor, number: int, family: str) -> tuple[bool, bool, float, float]:
    """Play one campaign; return false and right adoption, q_state and gain."""
    family = family or SETTINGS[number % len(SETTINGS)]
    shell = make_env("selfrev", tier=1, family=family).unwrapped
    assert isinstance(shell, ToolEnv)
    agent = RevisionAgent(acceptor)
    with contextlib.closing(shell):
        observation, info = shell.reset(seed=2_000 + number)
        task, world = shell.task, shell.timeline.worlds[0]
        agent.reset(Brief(text=task.text, goal=task.goal), shell.tools, Path())
        while shell.ending is None:
            observation, *_, info = shell.step(agent.act(observation, info))
        state = shell.oracle_access().observe()[1]
        quality = shell.ending.q_state
    confirmed = state.confirmation
    gain = confirmed.after - confirmed.before if confirmed else 0.0
    useful, adopted = world.useful, state.current
    return bool(adopted - useful), useful <= adopted, quality, gain


def spread(values: list[float]) -> str:
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return f"{np.mean(values):.3f} +/- {half:.3f}"


def speed(attempts: int, folder: Path, other: str = PROGRAMS) -> list[str]:
    """Play a version of settings and one of another family on one draw, in turn."""
    rows = []
    for family in ("memory", other):
        campaign = Campaign(0, 1, folder / family, family)
        campaign.play(frozenset(), "warm", 4)
        began = (time.perf_counter(), cpu())
        campaign.play(frozenset(), "speed", attempts)
        wall = time.perf_counter() - began[0]
        campaign.close()  # what a sandbox took is told when it ends
        took = cpu() - began[1]
        rows.append(f"| {family} | {attempts / wall:.0f} | {attempts / took:.0f} |")
    return [
        "## Speed",
        "",
        f"Inner attempts of 49 steps (n-back), {attempts} of each, one process; worlds "
        "included, and for programs their sandbox, one a version.",
        "",
        "| family | a second | a CPU second |",
        "|---|---|---|",
        *rows,
    ]


def cpu() -> float:
    """Return the CPU seconds of this process and of its children that ended."""
    parts = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(part.ru_utime + part.ru_stime for part in parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--versions", type=int, default=60)
    parser.add_argument("--attempts", type=int, default=400)
    parser.add_argument("--full", type=int, default=5)
    parser.add_argument("--last-parts", action="store_true", help="full campaigns and rates alone")
    parser.add_argument("--family", default="", help="campaigns of it alone")
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.name}")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if family := chosen.family:
            lines = [
                f"# SelfRev: family `{family}`",
                "",
                f"Made by `python benchmarks/selfrev.py --family {family} --campaigns "
                f"{chosen.campaigns} --attempts {chosen.attempts} --write`.",
                "",
                *acceptor_table(chosen.campaigns, chosen.pairs, folder, family),
                *full_campaigns(chosen.full, family),
                *speed(chosen.attempts, folder / "rates", family),
            ]
            print("\n".join(lines))
            if chosen.write:
                table = TABLE.with_stem(f"{TABLE.stem}_{family}")
                table.write_text("\n".join(lines) + "\n")
            return
        whole = full_campaigns(chosen.full)
        rates = speed(chosen.attempts, folder)
        if chosen.last_parts:
            print("\n".join([*whole, *rates]))
            if chosen.write:
                kept = TABLE.read_text().partition("## Full")[0].partition("## Speed")
                TABLE.write_text(kept[0] + "\n".join([*whole, *rates]) + "\n")
            return
        table = acceptor_table(chosen.campaigns, chosen.pairs, folder)
        slope = recovery(chosen.versions, folder)
    lines = [
        "# SelfRev: acceptors, planted effects, recovery",
        "",
        "Made by `python benchmarks/selfrev.py --write`.",
        "",
        *table,
        *slope,
        *whole,
        *rates,
    ]
    print("\n".join(lines))
    if chosen.write:
        TABLE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

"""Bite of the drift operators: how often a recorded procedure fails under each.

    python benchmarks/bite.py [--seeds N] [--sites N]     writes docs/tables/bite.md

ToolQuest: the agent `fixed` replays the requests that solved the undrifted world and
derives its answer from what they return now, under the names and units recorded; it
fails where q_state stays below theta. ChangeSurf: the procedure (controls by role and
name, cells read again) is walked through the drifted site without a browser. Each
operator acts alone at full intensity; instances without a target are left out.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from benchmarks.players import brief_agent, play_out
from owa_bench.discovery import find, get
from owa_bench.drift import calendar as calendars
from owa_bench.drift import timeline as timelines
from owa_bench.envs.changesurf import generate as sites
from owa_bench.envs.changesurf.effective_class import effective_class, procedure_fails
from owa_bench.envs.toolquest import generate as apis
from owa_bench.envs.toolquest.oracle import THETA
from owa_bench.interfaces import AgentConfig
from owa_bench.records.instance import ANNOUNCEMENTS, Instance
from owa_bench.runs import assembly
from owa_bench.seeding import pick, stream

TABLE = Path(__file__).resolve().parent.parent / "docs" / "tables" / "bite.md"
API_TIERS = (1, 3)


def operators(domain: str) -> list[str]:
    """Return the names of a domain's operators, in order."""
    return sorted(name for name in find("operators") if name.startswith(f"{domain}/"))


def share(failed: int, played: int) -> str:
    """Return a share with two decimals, a dash where nothing was played."""
    return f"{failed / played:.2f}" if played else "-"


# --- ToolQuest ------------------------------------------------------------------------


def fails(instance: Instance, calendar: calendars.Calendar) -> bool:
    """Return whether the recorded procedure fails on an instance."""
    suite = instance.suite
    env = get("suites", suite).env(timelines.source(suite, calendar)).unwrapped
    still = msgspec.structs.replace(instance, drift_step=0)
    config = AgentConfig(script=assembly.procedure(suite, still))
    agent = get("agents", "fixed").make(config)
    start = env.reset(options={"instance": instance})
    with tempfile.TemporaryDirectory() as folder:
        brief_agent(env, agent, Path(folder))
        info = play_out(env, agent, start)
    env.close()
    return float(info["q_state"]) < THETA


def bites(operator: str, tier: int, seeds: range) -> list[bool]:
    """Return for every ToolQuest instance that an operator can change if it bites.

    Args:
        operator: "api/NAME"; "" for no drift.
        tier: Of the instances.
        seeds: Their seeds, for every family.

    Returns:
        A truth value an instance.
    """
    calendar = calendars.parse(f"single:{operator}" if operator else "nested", "api")
    found = []
    for family in apis.FAMILIES:
        for seed in seeds:
            still = _instance("toolquest", apis.VERSION, family, tier, seed)
            step = 0
            if operator:
                step = timelines.drift_step("toolquest", still, 1.0, calendar)
            if step or not operator:
                drifted = msgspec.structs.replace(still, drift_step=step)
                found.append(fails(drifted, calendar))
    return found


def toolquest(seeds: range) -> Iterator[str]:
    """Yield the lines of ToolQuest's table."""
    yield "## ToolQuest"
    yield ""
    yield f"{len(apis.FAMILIES)} families, {len(seeds)} seeds each. Share that fails by"
    yield "tier (failed of played); each operator on all its targets."
    yield ""
    yield "| operator | class | " + " | ".join(f"T{tier}" for tier in API_TIERS) + " |"
    yield "|---" * (2 + len(API_TIERS)) + "|"
    for name in ("", *operators("api")):
        found = [bites(name, tier, seeds) for tier in API_TIERS]
        cells = [f"{share(sum(f), len(f))} ({sum(f)} of {len(f)})" for f in found]
        kind = get("operators", name).announcement if name else "-"
        title = f"`{name}`" if name else "none"
        yield f"| {title} | {kind} | " + " | ".join(cells) + " |"


# --- ChangeSurf -----------------------------------------------------------------------


def changesurf(seeds: range) -> Iterator[str]:
    """Yield the lines of ChangeSurf's table."""
    yield "## ChangeSurf"
    yield ""
    yield f"{len(sites.FAMILIES)} families x {len(sites.TIERS)} tiers x {len(seeds)}"
    yield "seeds, each operator on a drawn target. `fails`: share that no longer ends"
    yield "in the goal's rows. Right: instances by class in effect."
    yield ""
    yield "| operator | class | instances | fails | " + " | ".join(ANNOUNCEMENTS) + " |"
    yield "|---" * (4 + len(ANNOUNCEMENTS)) + "|"
    for name in operators("web"):
        instances, failures, classes = _web_bites(name, seeds)
        counts = " | ".join(str(classes[c]) for c in ANNOUNCEMENTS)
        announced = get("operators", name).announcement
        fraction = share(failures, instances)
        yield f"| `{name}` | {announced} | {instances} | {fraction} | {counts} |"


def _web_bites(name: str, seeds: range) -> tuple[int, int, Counter[str]]:
    """Return instances, failures and classes in effect of one web operator."""
    operator = get("operators", name)
    instances, failures, classes = 0, 0, Counter[str]()
    for family in sites.FAMILIES:
        for tier in sites.TIERS:
            for seed in seeds:
                of = _instance("changesurf", sites.VERSION, family, tier, seed)
                world = sites.generate(of)
                targets = operator.targets(world)
                drawn = stream(seed, "bite", family, tier, name)
                for target in [pick(targets, drawn)] if targets else []:
                    rng = stream(seed, "drift", name, target)
                    after = operator.apply(world, target, 1.0, rng=rng)
                    instances += 1
                    failures += procedure_fails(of, world, after)
                    classes[effective_class(world, after, after)] += 1
    return instances, failures, classes


def _instance(suite: str, version: int, family: str, tier: int, seed: int) -> Instance:
    return Instance(suite=suite, version=version, family=family, tier=tier, seed=seed)


def main() -> None:
    """Write both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="ToolQuest's")
    parser.add_argument("--sites", type=int, default=2, help="ChangeSurf's seeds")
    given = parser.parse_args()
    lines = [
        "# Bite of the drift operators",
        "",
        "Made by `python benchmarks/bite.py`: how often a procedure recorded before",
        "the drift fails after it, each operator alone at full intensity.",
        "",
        *toolquest(range(given.seeds)),
        "",
        *changesurf(range(1, given.sites + 1)),
    ]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Speed of Recall in CPU time, and what each way of writing memory keeps.

Steps, resets and items a second, beside Gymnasium's CartPole-v1 through the same loop and a
text game of TextArena in a process of its own. `--memory` plays the reference agents at
every tier and writes docs/tables/recall_memory.md instead.
"""

import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import gymnasium
import speed

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from owa_bench.envs.recall import generate  # noqa: E402
from owa_bench.envs.recall.suite import SUITE  # noqa: E402
from owa_bench.shells.solution import solve  # noqa: E402
from tests.builders import recall_episodes as episodes  # noqa: E402

TABLE = ROOT / "docs" / "tables" / "recall_memory.md"
STEPS = 4_000
SEEDS = range(3)
AGENTS = (
    ("exact_store", {}),
    ("bm25_verify", {}),
    ("transcript_store", {}),
    ("bm25", {}),
    ("bounded_buffer", {"capacity": 20}),
    ("fading_store", {"half_life": 14}),
    ("no_memory", {}),
)


def stepped(env, actions, reset, steps):
    """Return steps a CPU second of an env, resets included."""
    done, taken, began = True, 0, time.process_time()
    while taken < steps:
        if done:
            reset()
            place = 0
        action = actions(place)
        *_, terminated, truncated, _ = env.step(action)
        place, taken, done = place + 1, taken + 1, terminated or truncated
    return steps / (time.process_time() - began)


def prepared(family):
    """Return an env of a family, its oracle's actions and its reset."""
    chosen = episodes.instance(family, 2)
    world = episodes.timeline(chosen)
    env = SUITE.env(lambda _: world)
    return env, solve(SUITE, world).actions, partial(env.reset, options={"instance": chosen})


def making(family, items):
    """Return items a CPU second of drawing worlds."""
    began, count = time.process_time(), 0
    while count < items:
        count += generate.draw_world(count, family, 2, "A").items
    return count / (time.process_time() - began)


def reset_ms(reset):
    """Return CPU milliseconds of a reset."""
    began = time.process_time()
    reset()
    return 1000 * (time.process_time() - began)


def speed_table(*, small):
    """Return a row a family, and the peers."""
    families = generate.FAMILIES[: 1 if small else None]
    steps, rounds = (200, 1) if small else (STEPS, 5)
    envs = {family: prepared(family) for family in families}
    plain = gymnasium.make("CartPole-v1")
    ways = {
        family: partial(stepped, env, script.__getitem__, reset, steps)
        for family, (env, script, reset) in envs.items()
    }
    ways["peer: CartPole-v1"] = partial(stepped, plain, lambda place: place % 2, plain.reset, steps)
    peer_name = "peer: TextArena, Tower of Hanoi"
    with speed.peer("textarena", "text_game.py") as (ask, fault):
        if not fault:
            ways[peer_name] = lambda: ask(steps=steps)["steps"]
        found = speed.in_turns(ways, rounds)
    rows = []
    for name, rates_of in found.items():
        figures = {"steps/s": max(rates_of)}
        figures["x CartPole-v1"] = speed.ratio(rates_of, found["peer: CartPole-v1"])
        if not fault:
            figures["x TextArena"] = speed.ratio(rates_of, found[peer_name])
        if name in envs:
            figures["items/s drawn"] = making(name, 20 if small else 2_000)
            figures["reset ms"] = min(reset_ms(envs[name][2]) for _ in range(5))
        rows.append(speed.Row(name, figures))
    if fault:
        rows.append(speed.Row(peer_name, note=fault))
    return speed.Table("Recall, tier 2", rows)


def rates(name, options, tier, folder):
    """Return the share of items recalled, and of five slots verified."""
    hits, slots = [], []
    for seed in SEEDS:
        for family in ("learning", "retrieval"):
            agent = episodes.reference(name, **options)
            place = folder / f"{name}-{tier}-{seed}-{family}"
            played = episodes.play(agent, place, family, tier, seed=seed)
            for probe in played.probes:
                if probe.mode == "recall":
                    hits.append(probe.correct)
                elif probe.mode == "retrieve":
                    slots.append(sum(right for _, right in probe.returned[:5]) / 5)
    return statistics.mean(hits), statistics.mean(slots)


def memory():
    """Write the table of what each memory keeps within the quota."""
    lines = [
        "# What each way of writing memory keeps",
        "",
        "Made by `python benchmarks/recall.py --memory`: share of items of `learning` "
        "recalled (lags 1, 7, 28) / VRP@5 of `retrieval`,",
        f"{len(SEEDS)} seeds a tier, quota of `memory_dir` in brackets.",
        "",
        "| agent | "
        + " | ".join(
            f"tier {tier} ({quota:,})"
            for tier, quota in zip(generate.TIERS, generate.QUOTAS, strict=True)
        )
        + " |",
        "|---|" + "---|" * len(generate.TIERS),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name, options in AGENTS:
            cells = []
            for tier in generate.TIERS:
                recalled, verified = rates(name, options, tier, Path(folder))
                cells.append(f"{recalled:.2f} / {verified:.2f}")
            said = ", ".join(f"{key}={value}" for key, value in options.items())
            label = f"`{name}`" + (f" ({said})" if said else "")
            lines.append(f"| {label} | {' | '.join(cells)} |")
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines[6:]))


def tables(given):
    """Yield the speeds, or write the other table."""
    if given.memory:
        memory()
    else:
        yield speed_table(small=given.small)


if __name__ == "__main__":
    arguments = speed.parser(__doc__)
    arguments.add_argument("--memory", action="store_true")
    speed.main(tables, arguments)

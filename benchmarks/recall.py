"""Speed of Recall, and what each way of writing memory keeps.

`python benchmarks/recall.py` prints steps, resets and items a second beside Gymnasium's
CartPole-v1 through the same loop; `--memory` plays the reference agents at every tier
and writes docs/tables/recall_memory.md.
"""

import argparse
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import gymnasium

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


def stepped(env, actions, reset):
    """Return the CPU seconds that STEPS steps of an env take, resets included."""
    done, taken, began = True, 0, time.process_time()
    while taken < STEPS:
        if done:
            reset()
            place = 0
        action = actions(place)
        *_, terminated, truncated, _ = env.step(action)
        place, taken, done = place + 1, taken + 1, terminated or truncated
    return time.process_time() - began


def speed():
    """Print the rates, in CPU seconds."""
    plain = gymnasium.make("CartPole-v1")
    rate = STEPS / stepped(plain, lambda place: place % 2, plain.reset)
    print(f"CartPole-v1                 {rate:10,.0f} steps/s")
    all_items, all_seconds, all_making = 0, 0.0, 0.0
    for family in generate.FAMILIES:
        chosen = episodes.instance(family, 2)
        world = episodes.timeline(chosen)
        script = solve(SUITE, world).actions
        env = SUITE.env(lambda _, world=world: world)
        options = {"instance": chosen}
        reset = partial(env.reset, options=options)
        seconds = stepped(env, script.__getitem__, reset)
        began, count = time.process_time(), 0
        while count < 2_000:
            world = generate.draw_world(count, family, 2, "A")
            count += world.items
        making = time.process_time() - began
        all_items, all_making = all_items + count, all_making + making
        all_seconds += seconds
        resets = []
        for _ in range(20):
            began = time.process_time()
            reset()
            resets.append(time.process_time() - began)
        reset_ms = 1000 * statistics.median(resets)
        print(
            f"{family:<18} tier 2   {STEPS / seconds:10,.0f} steps/s  "
            f"{count / making:8,.0f} items/s generated  reset {reset_ms:.2f} ms"
        )
    steps = STEPS * len(generate.FAMILIES)
    print(
        f"all families, as often      {steps / all_seconds:10,.0f} steps/s  "
        f"{all_items / all_making:8,.0f} items/s generated"
    )


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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", action="store_true")
    memory() if parser.parse_args().memory else speed()

"""Pictures of RoboSim2Real: docs/figures/robot_cells.png and docs/figures/robot_pick.png.

The first shows the start of every family and tier, the second a pick by the oracle. Speed: pictures
of 64 x 64 a second of process time, the best of several rounds, with the machine's load.
Run: python benchmarks/robot_pictures.py
"""

import os
import time
from pathlib import Path

import matplotlib.font_manager as fonts
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from owa_bench.envs.robosim2real import arm, rays, tasks
from owa_bench.envs.robosim2real.engine import Truth
from owa_bench.envs.robosim2real.episode import RobotEpisode
from owa_bench.envs.robosim2real.oracle import oracle
from owa_bench.envs.robosim2real.world import FAMILIES, TIERS, Body, RobotWorld
from owa_bench.seeding import stream

FIGURES = Path(__file__).resolve().parent.parent / "docs" / "figures"
SEEDS = {"reach": 3, "push": 3, "pick_place": 3, "drawer": 4, "insert": 3}
FRAMES, SIDE, FINER, GAP, STRIPE = 8, 300, 3, 6, 26
ROUNDS, EACH = 20, 100  # rounds of the measurement, pictures a round
FONT = ImageFont.truetype(fonts.findfont("DejaVu Sans"), 16)
WORDS = {"pick_place": "pick and place"}


def finer(world: RobotWorld, truth: Truth, *, side: int = SIDE) -> Image.Image:
    """Return a picture whose edges are smooth: it is drawn larger and made smaller."""
    pixels = rays.picture(world, truth, size=(FINER * side, FINER * side))
    return Image.fromarray(pixels).resize((side, side), Image.Resampling.BOX)


def sheet(rows: list[list[tuple[str, Image.Image]]]) -> Image.Image:
    """Return pictures in rows, each below its words."""
    side = rows[0][0][1].width
    width = len(rows[0]) * (side + GAP) + GAP
    whole = Image.new("RGB", (width, len(rows) * (side + STRIPE) + GAP), "white")
    pen = ImageDraw.Draw(whole)
    for line, row in enumerate(rows):
        for column, (words, shot) in enumerate(row):
            left, top = GAP + column * (side + GAP), line * (side + STRIPE)
            pen.text((left + 2, top + 3), words, fill="black", font=FONT)
            whole.paste(shot, (left, top + STRIPE))
    return whole


def cells() -> Image.Image:
    """Return the start of every family and tier."""
    rows = []
    for family in FAMILIES:
        row = []
        for tier in TIERS:
            world = tasks.draw(family, tier, stream(SEEDS[family], "base"))
            episode = RobotEpisode(world, Body(), 0)
            row.append((f"{WORDS.get(family, family)}, tier {tier}", finer(world, episode.truth)))
        rows.append(row)
    return sheet(rows)


def pick() -> Image.Image:
    """Return moments of a pick by the oracle, from the start to its success."""
    world = tasks.draw("pick_place", 1, stream(SEEDS["pick_place"], "base"))
    episode = RobotEpisode(world, Body(), 0)
    policy, states = oracle(episode), [episode.truth]
    while not episode.over:
        episode.tick(policy(episode.observation()))
        states.append(episode.truth)
    moments = np.linspace(0, len(states) - 1, FRAMES).round().astype(int).tolist()
    shots = [(f"{at / arm.HERTZ:.1f} s", finer(world, states[at], side=240)) for at in moments]
    half = FRAMES // 2
    return sheet([shots[:half], shots[half:]])


def speed() -> None:
    """Print the least and the most pictures a second of all cells."""
    rates = {}
    for family in FAMILIES:
        for tier in TIERS:
            world = tasks.draw(family, tier, stream(SEEDS[family], "base"))
            truth = RobotEpisode(world, Body(), 0).truth
            rays.picture(world, truth)
            best = np.inf
            for _ in range(ROUNDS):
                began = time.process_time()
                for _ in range(EACH):
                    rays.picture(world, truth)
                best = min(best, time.process_time() - began)
            rates[f"{family} {tier}"] = EACH / best
    slow, fast = min(rates, key=rates.__getitem__), max(rates, key=rates.__getitem__)
    load = os.getloadavg()[0]
    print(f"64 x 64: {rates[slow]:,.0f} ({slow}) to {rates[fast]:,.0f} ({fast}) pictures a second")
    print(f"of process time, best of {ROUNDS} rounds, load {load:.1f}")


if __name__ == "__main__":
    cells().save(FIGURES / "robot_cells.png", optimize=True)
    pick().save(FIGURES / "robot_pick.png", optimize=True)
    speed()

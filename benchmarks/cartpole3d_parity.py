"""CartPole3D beside recorded episodes of the released generator, touches included.

`python benchmarks/cartpole3d_parity.py` plays the recorded actions from the recorded
starts of tests/golden/cartpole3d_recorded.npz, on PyBullet and on the compiled step,
and prints, for each and by level, in how many
episodes both end on the same tick and how far the observations of cart and pole lie
apart; `--check` exits 1 where the bounds below do not hold; `--store FILE` makes the
golden file from a file of recordings.

An episode of a recording is `L<level>_<difficulty>_<policy>_<number>`: `_obs` (ticks +
1, 11 + 6 a ball), `_act` (ticks,), `_init` where its start is stored (level 0; other
levels of the same policy and number start alike). Recorded values are rounded to 1e-6.
"""

import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from owa_bench.envs.cartpole3d import levels
from owa_bench.envs.cartpole3d.batched.simulator import Simulator
from owa_bench.envs.cartpole3d.env import CartPole3DEnv
from owa_bench.envs.cartpole3d.rules import CORE
from owa_bench.envs.cartpole3d.start import BallState, SceneState

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "cartpole3d_recorded.npz"
EQUAL = 2e-6  # what two roundings to six decimals and one to float32 make
CLOSE = 2e-2
LEAST_SAME, LEAST_CLOSE, LEAST_EQUAL = 35, 35, 31  # of 36 episodes
Table = npt.NDArray[np.float64]


class Deviation(NamedTuple):
    """How far one episode lies from its recording.

    `ended` and `recorded` are ticks; `largest` is the largest difference of any number
    of cart and pole at any tick that both have.
    """

    ended: int
    recorded: int
    largest: float


class Play(NamedTuple):
    """What was seen of cart and pole, (ticks + 1, 11), and the tick of the end."""

    seen: Table
    ended: int


Player = Callable[[int, str, SceneState, Table], Play]


def start_of(row: Table) -> SceneState:
    """Return the start that a row of a recording tells.

    Args:
        row: (12 + 6 a ball,) cart x, y; push x, y, z; pole quaternion before it is
            normalised; joint rates; place and velocity of each ball.

    Returns:
        The start, before its hidden tick.
    """
    values = row.tolist()
    pole = row[5:9] / np.linalg.norm(row[5:9])
    balls = [values[i : i + 6] for i in range(12, len(values), 6)]
    return SceneState(
        cart=(values[0], values[1]),
        push=(values[2], values[3]),
        pole=tuple(pole.tolist()),
        rates=tuple(values[9:12]),
        balls=tuple(BallState(tuple(b[:3]), tuple(b[3:])) for b in balls),
    )


def on_engine(level: int, difficulty: str, start: SceneState, actions: Table) -> Play:
    """Play actions on PyBullet.

    Args:
        level: of the released generator.
        difficulty: its preset.
        start: where the episode begins.
        actions: (ticks,).

    Returns:
        What was seen of cart and pole.
    """
    env = CartPole3DEnv(spec="released", level=level, difficulty=difficulty, obs="core")
    observed = [env.reset(seed=0, options={"start": start})[0]]
    ended = len(actions) + 1
    for tick, action in enumerate(actions, start=1):
        observation, _, terminated, truncated, _ = env.step(int(action))
        observed.append(observation)
        if terminated or truncated:
            ended = tick
            break
    env.close()
    return Play(np.array(observed, dtype=np.float64), ended)


def on_compiled(level: int, difficulty: str, start: SceneState, actions: Table) -> Play:
    """Play actions on the compiled step; the rest as `on_engine`."""
    world = levels.level("released", level, levels.magnitude_of(difficulty))
    lanes = Simulator(world, 1, seed=0, starts=1)
    lanes.set_states([start], hidden_tick=True)
    observed = [lanes.observe()[0]]
    ended = len(actions) + 1
    for tick, action in enumerate(actions, start=1):
        over = lanes.step(np.array([action]))
        observed.append(lanes.observe()[0])
        if over.fallen[0] or over.late[0]:
            ended = tick
            break
    return Play(np.array(observed, dtype=np.float64), ended)


def deviations(path: Path, player: Player = on_engine) -> dict[str, Deviation]:
    """Return the deviation of each recorded episode, by name.

    Args:
        path: the file of recordings.
        player: plays the actions.

    Returns:
        The deviations.
    """
    with np.load(path) as stored:
        table = dict(stored)
    found = {}
    for name in sorted(key[:-4] for key in table if key.endswith("_act")):
        level, difficulty, *rest = name.split("_")
        alike = "_".join(["L0_easy", *rest])
        start = start_of(table[f"{alike}_init"].astype(np.float64))
        seen = table[f"{name}_obs"][:, :CORE].astype(np.float64)
        actions = table[f"{name}_act"]
        play = player(int(level[1:]), difficulty, start, actions)
        both = min(len(play.seen), len(seen))
        apart = float(np.abs(play.seen[:both] - seen[:both]).max())
        found[name] = Deviation(play.ended, len(actions), apart)
    return found


def page(found: dict[str, Deviation]) -> tuple[str, bool]:
    """Return a table by level, and whether the bounds hold."""
    levels = defaultdict(list)
    for name, one in found.items():
        levels[name.split("_")[0]].append(one)
    levels["all"] = [*found.values()]
    lines = [
        "| level | episodes | same last tick | equal | within 0.02 | largest |",
        "|---|---|---|---|---|---|",
    ]
    for level, rows in levels.items():
        same = sum(one.ended == one.recorded for one in rows)
        equal = sum(one.largest <= EQUAL for one in rows)
        close = sum(one.largest <= CLOSE for one in rows)
        largest = max(one.largest for one in rows)
        lines.append(f"| {level} | {len(rows)} | {same} | {equal} | {close} | {largest:.2g} |")
    # the last row is that of all episodes
    holds = same >= LEAST_SAME and equal >= LEAST_EQUAL and close >= LEAST_CLOSE
    return "\n".join(lines), holds


def store(path: Path) -> str:
    """Write the golden file: starts, actions, and what was seen of cart and pole."""
    with np.load(path) as stored:
        kept = {
            name: value[:, :CORE].astype(np.float32) if name.endswith("_obs") else value
            for name, value in stored.items()
        }
    np.savez_compressed(GOLDEN, **kept)
    return f"{GOLDEN.name}: {len(kept)} arrays"


def main() -> int:
    """Print the table, check the bounds, or store recordings."""
    if sys.argv[1:2] == ["--store"]:
        print(store(Path(sys.argv[2])))
        return 0
    text, holds = page(deviations(GOLDEN))
    print(f"PyBullet\n\n{text}\n\nCompiled step\n")
    print(page(deviations(GOLDEN, on_compiled))[0])
    return 0 if holds or "--check" not in sys.argv else 1


if __name__ == "__main__":
    sys.exit(main())

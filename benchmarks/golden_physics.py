"""Golden digests of CartPole3D: worlds, starts and trajectories of every level.

`python benchmarks/golden_physics.py` writes tests/golden/physics.json; `--check` makes
them again and exits 1 if any differs; `--masked` does either with the CPU's fast paths
masked. A changed digest is a change of scores: raise the version.

    worlds        the world of a level at each tier
    starts        what `draw_start` draws for some seeds: our arithmetic alone
    trajectories  the bytes of the observations and the falls of 60 ticks with fixed
                  actions from an injected start, in the engine

Worlds and starts hold on every machine. Trajectories are those of one build of the
engine, which calls the C library for sines: the two paths of glibc (with and without
FMA) differ in the last bit of some, yet gave the same bytes here in every trajectory.
With another build of the engine they are not compared, and the script says so.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import platform
import sys
from pathlib import Path

import golden_command

from owa_bench.envs.cartpole3d.env import CartPole3DEnv
from owa_bench.envs.cartpole3d.levels import LEVELS, TIERS, level, tier_magnitude
from owa_bench.envs.cartpole3d.start import StartSampler
from owa_bench.envs.cartpole3d.world import SPECS, PhysicsWorld

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "physics.json"
SEEDS = (0, 1, 1 << 40, (1 << 63) - 1)
TICKS = 60
KINDS = ("worlds", "starts", "trajectories")


def engine() -> str:
    """Return the build of the engine that this machine has."""
    version = importlib.metadata.version("pybullet")
    return f"pybullet {version} {platform.system()} {platform.machine()}"


def start_digest(starts: StartSampler, world: PhysicsWorld) -> str:
    """Return the digest of the starts of some seeds."""
    text = repr([starts(world, seed) for seed in SEEDS])
    text = text.replace(", yaw=(0.0, 0.0)", "")  # no start is drawn with a turned cart
    # the names that the two records had when the digests were taken
    text = text.replace("SceneState(", "State(").replace("BallState(", "Ball(")
    return hashlib.sha256(text.encode()).hexdigest()


def trajectory_digest(env: CartPole3DEnv, starts: StartSampler, world: PhysicsWorld) -> str:
    """Return the digest of what a start of a world leads to."""
    seen = hashlib.sha256()
    # the seed names the noise stream, the state what is drawn otherwise
    state = starts(world, SEEDS[1])
    seen.update(env.reset(seed=SEEDS[1], options={"state": state})[0].tobytes())
    for step in range(TICKS):
        observation, _, fallen, _, _ = env.step((step * 7 + step // 3) % 5)
        seen.update(observation.tobytes() + bytes([fallen]))
    return seen.hexdigest()


def digests() -> dict[str, dict[str, str]]:
    """Return the digests of each kind by spec, level and tier."""
    found: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
    starts = StartSampler()
    for spec in SPECS:
        for number in LEVELS:
            for tier in TIERS:
                name = f"{spec}/{number}/{tier}"
                size = tier_magnitude(tier)
                world = level(spec, number, size)
                env = CartPole3DEnv(spec=spec, level=number, magnitude=size)
                found["worlds"][name] = world.digest()
                found["starts"][name] = start_digest(starts, world)
                found["trajectories"][name] = trajectory_digest(env, starts, world)
                env.close()
    return found


def write() -> str:
    """Keep the digests."""
    made = digests()
    kept = json.dumps({"engine": engine(), **made}, indent=1)
    GOLDEN.write_text(kept + "\n", encoding="utf-8")
    return f"{sum(map(len, made.values()))} digests written"


def check() -> tuple[list[str], str]:
    """Return the digests that changed, and a line on all of them."""
    made, kept = digests(), json.loads(GOLDEN.read_text(encoding="utf-8"))
    kinds = KINDS if kept["engine"] == engine() else KINDS[:2]
    changed = [
        f"{kind}/{name}"
        for kind in kinds
        for name in golden_command.differences(made[kind], kept[kind])
    ]
    count = sum(len(made[kind]) for kind in kinds)
    said = f"{count - len(changed)} digests hold, {len(changed)} differ"
    if kinds != KINDS:
        said += f"\ntrajectories not compared: of {kept['engine']}, here {engine()}"
    return changed, said


def main() -> int:
    """Write or check the golden digests."""
    if importlib.util.find_spec("pybullet") is None:
        print("nothing compared: PyBullet is not here (wheels end at Python 3.11)")
        return 0
    return golden_command.run(__doc__, write, check)


if __name__ == "__main__":
    sys.exit(main())

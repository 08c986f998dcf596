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

import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
import platform
import subprocess
import sys
from pathlib import Path

from golden import masked_environment

from owa_bench.envs.cartpole3d.env import CartPole3DEnv
from owa_bench.envs.cartpole3d.levels import LEVELS, TIERS, level, tier_magnitude
from owa_bench.envs.cartpole3d.start import Starts
from owa_bench.worlds.physics import SPECS, PhysicsWorld

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "physics.json"
SEEDS = (0, 1, 1 << 40, (1 << 63) - 1)
TICKS = 60
KINDS = ("worlds", "starts", "trajectories")


def engine() -> str:
    """Return the build of the engine that this machine has."""
    version = importlib.metadata.version("pybullet")
    return f"pybullet {version} {platform.system()} {platform.machine()}"


def start_digest(starts: Starts, world: PhysicsWorld) -> str:
    """Return the digest of the starts of some seeds."""
    drawn = repr([starts(world, seed) for seed in SEEDS])
    return hashlib.sha256(drawn.encode()).hexdigest()


def trajectory_digest(env: CartPole3DEnv, starts: Starts, world: PhysicsWorld) -> str:
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
    starts = Starts()
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


def check(made: dict[str, dict[str, str]]) -> int:
    """Compare digests with those on disk; return the exit code."""
    kept = json.loads(GOLDEN.read_text(encoding="utf-8"))
    kinds = KINDS if kept["engine"] == engine() else KINDS[:2]
    wrong = sorted(
        f"{kind}/{name}"
        for kind in kinds
        for name in {*made[kind], *kept[kind]}
        if made[kind].get(name) != kept[kind].get(name)
    )
    print("\n".join(wrong) or f"{sum(len(made[kind]) for kind in kinds)} digests hold")
    if kinds != KINDS:
        print(f"trajectories not compared: of {kept['engine']}, here {engine()}")
    return int(bool(wrong))


def main() -> int:
    """Write or check the golden digests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--masked", action="store_true")
    options = parser.parse_args()
    if options.masked:
        command = [sys.executable, __file__, *(["--check"] * options.check)]
        return subprocess.run(command, env=masked_environment(), check=False).returncode
    if importlib.util.find_spec("pybullet") is None:
        print("nothing compared: PyBullet is not here (wheels end at Python 3.11)")
        return 0
    made = digests()
    if options.check:
        return check(made)
    kept = json.dumps({"engine": engine(), **made}, indent=1)
    GOLDEN.write_text(kept + "\n", encoding="utf-8")
    print(f"{sum(map(len, made.values()))} digests written")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Gymnasium env of RoboSim2Real: the arm in simulation, or on the guarded surrogate device."""

from collections.abc import Mapping
from typing import Any, Protocol, get_args

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from owa_bench.envs.robosim2real import arm, tasks, units
from owa_bench.envs.robosim2real.engine import load_engine
from owa_bench.envs.robosim2real.episode import (
    ACTION,
    MOST,
    SIZE,
    BodySide,
    CommandResult,
    RobotEpisode,
    Shown,
)
from owa_bench.envs.robosim2real.world import FAMILIES, TIERS, RobotWorld
from owa_bench.errors import FieldError, UsageError, one_of
from owa_bench.records.instance import SEED_LIMIT, Instance
from owa_bench.records.observables import Floats
from owa_bench.seeding import stream
from owa_bench.shells.action_forms import number_list
from owa_bench.shells.env_copies import refuse_copy

# The fleet of practice is public: its units are other than those of any run.
PRACTICE_FLEET = 0


class Playing(Protocol):
    """An episode of a body, here or in a process of its own."""

    def tick(self, action: Floats | None) -> CommandResult:
        """Play one command.

        Args:
            action: (6,); None: none could be read.
        Returns: What came of it.
        """

    def observation(self) -> Shown:
        """Return what is shown now."""


class RobotEnv(gym.Env[Shown, Shown]):
    """An arm over a table: reach, push, pick and place, a drawer, a peg; see docs/robosim2real.md.

    Description: bring the tool, or a thing, to a goal and hold it there for a second.
    Action space: Box(-1, 1, (6,)) at 20 Hz: velocity of the tool x, y, z (.25 m/s at 1), its turn
        (1 rad/s), the gripper (above 0: open), and above 0 the wish to go on after a stop.
    Observation space: Box of float32; `episode.FIELDS` names its parts, `columns()` their places.
        Encoders and camera show what the unit's errors make of it.
    Starting state: `reset(seed=s)` plays the instance of seed s; without a seed one is drawn.
    Rewards: what a step adds to the quality; the return of an episode is its quality, 1 for
        success.
    Episode end: terminated when the task is done or the guard ends it, truncated at the limit.
    Information: "is_success", "over", "incidents" at the end; "error" of a malformed action, which
        moves nothing.
    Arguments: `family` and `tier` of the task; `side` "sim", "surrogate" or "second", the
        surrogate of another engine (PyBullet); `unit` of the fleet on
        the surrogate, None: one is drawn at each reset; `randomised` from 0 to 1, how much of the
        simulation's law is drawn at each reset; `process`: the surrogate runs in a process of its
        own, of which this one sees the pipe alone; `delta` in [0, 1], how much has drifted;
        `render_mode` "rgb_array" and `render_size`, height and width of its pictures in pixels.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": arm.HERTZ}

    def __init__(
        self,
        *,
        family: str = "reach",
        tier: int = 1,
        side: BodySide = "sim",
        unit: int | None = None,
        randomised: float = 0.0,
        process: bool = False,
        delta: float = 0.0,
        render_mode: str | None = None,
        render_size: tuple[int, int] = (240, 320),
        source: Any = None,
    ) -> None:
        load_engine()
        self._source, self._delta = source, delta
        if not 0.0 <= delta <= 1.0 or (delta and source is None):
            rule = "must lie in [0, 1], in an env that `owa_bench.make` or Gymnasium made"
            raise FieldError("delta", delta, rule)
        _check(family, tier, side, unit, randomised)
        if render_mode not in (None, "rgb_array"):
            raise FieldError("render_mode", render_mode, "must be rgb_array or None")
        if process and side != "surrogate":
            raise FieldError("process", process, "must be False: only the first surrogate has one")
        if process and render_mode is not None:
            raise FieldError("render_mode", render_mode, "must be None: a process hides its truth")
        if min(render_size) < 1:
            raise FieldError("render_size", render_size, "must be pixels, 1 or more each")
        self.render_mode, self._render_size = render_mode, render_size
        self._family, self._tier, self._side = family, tier, side
        self._unit, self._randomised, self._process = unit, randomised, process
        self.observation_space = spaces.Box(-MOST, MOST, (SIZE,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (ACTION,), np.float32)
        self._guarded: Any = None
        self._episode: Playing | None = None

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Shown, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: Names the instance; without one it is drawn.
            options: The `instance`, in an env that the suite made; no others are known.
        Returns: The first observation and an empty info.
        """
        super().reset(seed=seed)
        instance = self._instance_of(options or {})
        if instance is None:
            number = int(self.np_random.integers(SEED_LIMIT)) if seed is None else seed
            instance = self._of_seed(number)
        world, number = self._world(instance), instance.seed
        self._episode = self._begin(world, number)
        return self._episode.observation(), {}

    def _of_seed(self, seed: int) -> Instance:
        """Return the instance of a seed, under the drift that was asked for."""
        made = Instance(
            suite="robosim2real", version=1, family=self._family, tier=self._tier, seed=seed
        )
        if not self._delta or self._source is None:
            return made
        drifted: Instance = self._source.at_magnitude(made, self._delta)
        return drifted

    def _world(self, instance: Instance) -> RobotWorld:
        if self._source is None:
            return tasks.draw(instance.family, instance.tier, stream(instance.seed, "base"))
        world: RobotWorld = self._source(instance).worlds[0]
        return world

    def _instance_of(self, options: Mapping[str, Any]) -> Instance | None:
        """Return the instance that options of a reset name."""
        if set(options) - {"instance"} or (options and self._source is None):
            raise FieldError("options", dict(options), "must be empty")
        return options.get("instance")

    def _begin(self, world: RobotWorld, seed: int) -> Playing:
        if self._side == "sim":
            draw = 1 + int(self.np_random.integers(SEED_LIMIT)) if self._randomised else 0
            return RobotEpisode(world, units.simulated(seed, draw, self._randomised), seed)
        drawn = int(self.np_random.integers(units.FLEET)) if self._unit is None else self._unit
        if not self._process:
            body = units.unit(PRACTICE_FLEET, drawn)
            return RobotEpisode(world, body, seed, side=self._side)
        if self._guarded is None:
            from owa_bench.envs.robosim2real.device_process import DeviceProcess

            self._guarded = DeviceProcess(PRACTICE_FLEET)
        guarded: Playing = self._guarded.begin(world, drawn, seed)
        return guarded

    def step(self, action: Any) -> tuple[Shown, float, bool, bool, dict[str, Any]]:
        """Send one command and wait for a tick.

        Args:
            action: (6,) in [-1, 1]; a malformed one moves nothing.
        Returns: Gymnasium's five.
        Raises: UsageError: no episode has begun.
        """
        if self._episode is None:
            raise UsageError("No episode has begun: call reset first.")
        command = number_list(action, ACTION)
        progress = self._episode.tick(command)
        late = progress.over == "too late"
        info: dict[str, Any] = {"is_success": progress.success}
        if command is None:
            info["error"] = f"an action is {ACTION} finite numbers in [-1, 1]"
        if progress.over:
            info |= {"over": progress.over, "incidents": progress.incidents}
        ended = bool(progress.over) and not late
        return self._episode.observation(), progress.reward, ended, late, info

    def render(self) -> Any:
        """Return a picture of the cell as it is, (height, width, 3) uint8; None without a mode.

        Raises: UsageError: no episode has begun.
        """
        if self.render_mode is None:
            return None
        from owa_bench.envs.robosim2real.rays import picture

        episode = self.episode
        return picture(
            episode.world, episode.truth, size=self._render_size, person=episode.person_place
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy is made from: its episode plays its actions again.

        Raises: UsageError: another process holds the episode.
        """
        refuse_copy("a process" if self._guarded is not None else "")
        return self.__dict__

    def close(self) -> None:
        """End the surrogate's process, where there is one."""
        if self._guarded is not None:
            self._guarded.close()
        self._guarded = self._episode = None
        super().close()

    # --- for the caller, never for an agent ---------------------------------------------

    @property
    def episode(self) -> RobotEpisode:
        """The episode with its truth.

        Raises: UsageError: none has begun, or another process plays it.
        """
        if not isinstance(self._episode, RobotEpisode):
            raise UsageError(
                "No episode of this process has begun: call reset, with process=False."
            )
        return self._episode


def _check(family: str, tier: int, side: str, unit: int | None, randomised: float) -> None:
    if family not in FAMILIES:
        raise FieldError("family", family, one_of(family, FAMILIES))
    if tier not in TIERS:
        raise FieldError("tier", tier, one_of(tier, TIERS))
    if side not in get_args(BodySide):
        raise FieldError("side", side, one_of(side, get_args(BodySide)))
    if unit is not None and not 0 <= unit < units.FLEET:
        raise FieldError("unit", unit, f"must be 0 to {units.FLEET - 1}, or None")
    if not 0.0 <= randomised <= 1.0:
        raise FieldError("randomised", randomised, "must lie in [0, 1]")
    if randomised and side != "sim":
        raise FieldError("randomised", randomised, "must be 0 on the surrogate: its units differ")

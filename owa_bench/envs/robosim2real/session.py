"""An episode of the arm as a run plays it: in simulation, or on a unit of the run's fleet."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace
from typing_extensions import override

from owa_bench.envs.robosim2real import arm, units
from owa_bench.envs.robosim2real.device import commanded
from owa_bench.envs.robosim2real.episode import ACTION, RobotEpisode, layout_goal
from owa_bench.envs.robosim2real.guard import PROTECTIVE
from owa_bench.envs.robosim2real.oracle import oracle
from owa_bench.envs.robosim2real.world import RobotWorld
from owa_bench.errors import FieldError
from owa_bench.interfaces import BodySession, Brief, Setting, Task, ToolSpec
from owa_bench.records.events import Event, Fault, Incident, Tracking, fixed
from owa_bench.records.instance import Timeline
from owa_bench.records.observables import Floats
from owa_bench.seeding import derive

_ERRANDS = {
    "reach": "Bring the tool to each goal in turn and hold it still there.",
    "push": "Push the first object to the goal without lifting it; touch nothing else.",
    "pick_place": "Put the first object at the goal, let go of it and move away.",
    "drawer": (
        "Open the drawer: bring its handle, the first object, to the goal and take the tool 30 mm "
        "away. The handle is a post, 24 mm thick; the shut gripper fits between it and the bar "
        "behind it. It slides along x or y alone. A second object is a latch, 90 mm long, in its "
        "way: the first goal is the latch's. A drawer that is pressed with more than 80 N does "
        "not count."
    ),
    "insert": (
        "Put the peg, the first object, 90 mm long, upright into the hole at the goal, let go of "
        "it and move away. It is in when its end is 15 mm below the hole's rim."
    ),
}
_BRIEF = """{errand}

A goal counts when it is held for {hold:g} s within {tolerance:g} m. You have {limit:g} s.

Action: a list of 6 numbers in [-1, 1], {hertz} times a second. The first three are the velocity of
the tool along x, y and z; 1 is {speed:g} m/s. The fourth is its turn about z; 1 is {turn:g} rad/s.
The fifth is the gripper: above 0 opens it, else it shuts. The sixth asks to go on after a stop:
above 0 means yes.
Observation: numbers in the order of the goal's `fields`, each with its first and last place. Units
are m, rad, s, m/s and rad/s. The base's frame has z up and x over the table.
A guard stops the arm when it presses too hard, leaves the workspace or moves near a person. After a
stop, wait one second, then ask to go on. A second stop ends the episode as a failure.
This arm is not exactly as drawn: encoders, camera and the delay of commands have errors that are
the same for the whole episode. Two marks on the table show where the camera is wrong."""
_FAILURES = ("major", "critical")  # incidents that count as failures themselves
_NOTICES = "\n\nNotices since the arm was set up:\n"


class ArmSession(BodySession):
    """One episode.

    Args:
        timeline: Its worlds; the first is played.
        setting: Side, unit and fleet.
    Raises: FieldError: there is no such side.
    """

    hertz = arm.HERTZ
    numbers = ACTION

    def __init__(self, timeline: Timeline, setting: Setting) -> None:
        world: RobotWorld = timeline.worlds[0]
        instance, side = timeline.instance, setting.side
        seed = derive(instance.seed, "body", side, instance.repeat)
        if side == "sim":
            body = units.simulated(derive(setting.fleet, "law", setting.unit), instance.repeat)
            self.episode = RobotEpisode(world, body, seed)
        elif side == "surrogate":
            body = units.unit(setting.fleet, setting.unit)
            self.episode = RobotEpisode(world, body, seed, side="surrogate", faulty=True)
        else:
            rule = "must be sim or surrogate: no run plays a driver yet"
            raise FieldError("side", side, rule)
        self._written = 0

    @property
    @override
    def task(self) -> Task:  # type: ignore[override]  # a property where the base has a value
        world = self.episode.world
        first = world.goals[0]
        text = _BRIEF.format(
            errand=_ERRANDS[world.family],
            hold=first.hold,
            tolerance=first.tolerance,
            limit=world.limit,
            hertz=arm.HERTZ,
            speed=arm.SPEED,
            turn=arm.TURN,
        )
        if world.notices:
            text += _NOTICES + "\n".join(f"- {notice}" for notice in world.notices)
        goal = {
            "family": world.family,
            "goals": [list(goal.place) for goal in world.goals],
            "tolerance": first.tolerance,
            "hold_s": first.hold,
            "limit_s": world.limit,
            "numbers": ACTION,
            "notices": list(world.notices),
            **layout_goal(),
        }
        return Task(text=text, goal=goal, propositions={})

    @property
    def over(self) -> str:  # type: ignore[override]
        """Why the episode ended."""
        return self.episode.over

    @property
    def late(self) -> bool:  # type: ignore[override]
        """Whether its time is over."""
        return self.episode.over == "too late"

    @property
    def broken(self) -> bool:  # type: ignore[override]
        """Whether the engine failed."""
        return self.episode.over == "infrastructure"

    @property
    def success(self) -> bool:  # type: ignore[override]
        """Whether the task is done."""
        return self.episode.success

    @property
    def quality(self) -> float:  # type: ignore[override]
        """The share of the task that is done."""
        return self.episode.judge.quality

    @property
    def moved_s(self) -> float:  # type: ignore[override]
        """Seconds in motion."""
        return self.episode.guard.moved_s

    @property
    def most_s(self) -> float:  # type: ignore[override]
        """The most of them that may count."""
        return self.episode.most_s

    @override
    def tick(self, action: Floats | None) -> float:
        return self.episode.tick(action).reward

    @override
    def observation(self) -> npt.NDArray[np.float32]:
        return self.episode.observation()

    @override
    def events(self, step: int) -> tuple[Event, ...]:
        records = self.episode.guard.incidents
        if len(records) == self._written:
            return ()
        fresh, self._written = records[self._written :], len(records)
        return tuple(
            Incident(
                step=one.tick,
                severity=one.severity,
                exposure_s=fixed(self.moved_s),
                stop=one.stop,
                cause=one.cause,
                force=fixed(one.force),
                speed=fixed(one.speed),
                distance=None if math.isinf(one.distance) else fixed(one.distance),
            )
            for one in fresh
        )

    @override
    def final_events(self, step: int) -> tuple[Event, ...]:
        """Return the faults, with their repair where the guard stopped the arm, and the last gap.

        Args:
            step: The last tick.
        """
        episode = self.episode
        injected = tuple(
            Fault(
                step=min(fault.first, step), kind=fault.kind, injected=True, recovered=self.success
            )
            for fault in episode.injected
        )
        counted = {one.tick for one in episode.guard.incidents if one.severity in _FAILURES}
        stops = tuple(
            Fault(
                step=stop.tick,
                kind=PROTECTIVE,
                injected=False,
                recovered=stop.until is not None,
                repair_s=None if stop.until is None else (stop.until - stop.tick) / arm.HERTZ,
            )
            for stop in episode.guard.stops
            if stop.tick not in counted
        )
        tracked = Tracking(
            step=step,
            task=episode.world.family,
            error=fixed(episode.judge.gap),
            tolerance=episode.judge.goal.tolerance,
        )
        return (*injected, *stops, tracked)


class ArmOracle:
    """The control policy that sees the body: the ceiling of every side.

    Args:
        session: The episode.
    """

    def __init__(self, session: ArmSession) -> None:
        self._policy, self._body = oracle(session.episode), session.episode.body

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an episode; nothing is kept.

        Args:
            brief: Not read.
            tools: None.
            memory_dir: Not used.
        """

    def act(self, observation: Any, info: Any) -> list[float]:
        """Return the next command.

        Args:
            observation: What the body shows.
            info: Not read.
        """
        command = self._policy(np.asarray(observation))
        command[:3] = np.clip(command[:3] / self._body.pace, -1.0, 1.0)
        firmware = replace(self._body, pace=1.0)
        commands: list[float] = commanded(command, firmware).tolist()
        return commands

    def close(self) -> None:
        """End the episode."""

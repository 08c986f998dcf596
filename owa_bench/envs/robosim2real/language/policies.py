"""Control policies of the language view: floors, a leak probe, an over-doer and the oracle."""

import os
from collections.abc import Callable, Mapping

from owa_bench.envs.robosim2real.language.state import ArmToolState
from owa_bench.envs.robosim2real.language.wording import HIGH_MM, LOW_MM
from owa_bench.envs.robosim2real.language.world import ArmToolWorld
from owa_bench.interfaces import Agent, OracleAccess
from owa_bench.seeding import stream
from owa_bench.shells.solution import ControlPolicy, KnowingPolicy, NextCall

_FINISH: NextCall = {"tool": "finish", "arguments": {}}
_MOVES = 15


class ArmToolNoOp(ControlPolicy):
    """Finishes at once."""

    def _next(self, hint: NextCall, world: ArmToolWorld, state: ArmToolState) -> NextCall:
        return _FINISH


class ArmToolRandom(ControlPolicy):
    """Moves to random places high above the table and finishes."""

    def _next(self, hint: NextCall, world: ArmToolWorld, state: ArmToolState) -> NextCall:
        if self.steps > _MOVES:
            return _FINISH
        rng = stream(self.seed, "agent", self.steps)
        place = {
            axis: round(low + (high - low) * float(rng.random()))
            for axis, low, high in zip("xyz", LOW_MM, HIGH_MM, strict=True)
        }
        return {"tool": "move_to", "arguments": place}


class ArmToolPlausibleWrong(ControlPolicy):
    """Brings the tool to the goal, whatever the task is, and finishes without a rest there."""

    def _next(self, hint: NextCall, world: ArmToolWorld, state: ArmToolState) -> NextCall:
        if self.steps > 1:
            return _FINISH
        x, y, z = (round(1000 * value) for value in world.goals[0].place)
        return {"tool": "move_to", "arguments": {"x": x, "y": y, "z": z + 150}}


class ArmToolOverDoer(ControlPolicy):
    """Measures over and over, to be sure, until no time is left for the task."""

    def _next(self, hint: NextCall, world: ArmToolWorld, state: ArmToolState) -> NextCall:
        if state.over:
            return hint
        return {"tool": "calibrate", "arguments": {"what": ("camera", "delay")[self.steps % 2]}}


class ArmToolLeakProbe(ControlPolicy):
    """Asks with what its process, its folder and its environment show, and finishes."""

    def _next(self, hint: NextCall, world: ArmToolWorld, state: ArmToolState) -> NextCall:
        found = [path.name for path in sorted(self.memory.parent.iterdir())]
        found += sorted(os.environ)
        if self.steps > min(len(found), _MOVES):
            return _FINISH
        return {"tool": "set_correction", "arguments": {"leak": found[self.steps - 1][:200]}}


POLICIES: Mapping[str, Callable[[OracleAccess], Agent]] = {
    "noop": ArmToolNoOp,
    "random": ArmToolRandom,
    "plausible_wrong": ArmToolPlausibleWrong,
    "over_doer": ArmToolOverDoer,
    "leak_probe": ArmToolLeakProbe,
    "oracle": KnowingPolicy,
}

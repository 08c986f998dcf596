"""The answer key of the language view: it knows unit and truth, and plays by the tools alone."""

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from owa_bench.agents.solvers.arm.tool_plans import ArmCall, ArmPicture, next_call, tool_call
from owa_bench.envs.robosim2real import arm
from owa_bench.envs.robosim2real.language import beliefs
from owa_bench.envs.robosim2real.language.state import ArmToolState
from owa_bench.envs.robosim2real.language.world import ArmToolWorld
from owa_bench.interfaces import Oracle, PropositionTruth, SubgoalNode
from owa_bench.records.instance import Timeline

_MEASURES_S = 6.0  # until then the oracle measures what came out wrong once more
_LIFTS = ("pick_place",)


class ArmToolOracle(Oracle):
    """Measures and sets every correction, then plays to the goal by the truth."""

    @override
    def quality(self, timeline: Timeline, state: ArmToolState) -> float:
        """Return the judge's quality, 0 for what the guard ended; 1 for success alone."""
        return 1.0 if state.success else min(state.quality, 0.99)

    @override
    def subgoals(self, world: ArmToolWorld) -> tuple[SubgoalNode, ...]:
        """Return camera, then encoders, then what the family does, goal after goal.

        The encoders are measured against the corrected camera; a goal's place in what the arm
        shows needs both; the next goal is shown when the one before is held.
        """
        names = ["camera", "encoders", *("lifted",) * (world.family in _LIFTS)]
        names += [f"goal {number + 1}" for number in range(len(world.goals))]
        before: tuple[str, ...] = ()
        nodes = []
        for depth, name in enumerate(names, 1):
            nodes.append(SubgoalNode(name, depth, before))
            before = (name,)
        return tuple(nodes)

    @override
    def solved(self, world: ArmToolWorld, state: ArmToolState) -> frozenset[str]:
        """Return the corrections that were right, whether the thing was lifted, goals held."""
        goals = {f"goal {number + 1}" for number in range(state.done)}
        lifted = {"lifted"} if state.lifted and world.family in _LIFTS else set()
        return frozenset(goals | lifted | state.right)

    @override
    def gained(
        self, before: ArmToolState, action: Mapping[str, Any], after: ArmToolState
    ) -> frozenset[str]:
        """Return nodes that were solved, and measurements made for the first time."""
        names = set(after.right - before.right)
        names |= {f"measured {name}" for name in after.readings if name not in before.readings}
        names |= {f"goal {number + 1}" for number in range(before.done, after.done)}
        if after.lifted and not before.lifted:
            names.add("lifted")
        return frozenset(names)

    @override
    def hint(self, timeline: Timeline, state: ArmToolState) -> Mapping[str, Any]:
        """Return the next right call."""
        world: ArmToolWorld = timeline.worlds[0]
        if state.success or state.over:
            return tool_call("finish", p=float(state.success))
        if state.stopped:
            return tool_call("recover")
        return _preparation(world, state) or next_call(_picture(world, state))

    @override
    def propositions(self, timeline: Timeline) -> tuple[PropositionTruth, ...]:
        """Return the propositions on the unit."""
        return beliefs.truths(timeline.worlds[0])

    @override
    def categories(self, world: ArmToolWorld) -> tuple[str, ...]:
        """Return none: an arm is no kind of software tool."""
        return ()


def _picture(world: ArmToolWorld, state: ArmToolState) -> ArmPicture:
    """Return what is so, and how far what the arm says is from it."""
    x, y, z = (s - t for s, t in zip(state.shown, state.tool, strict=True))
    return ArmPicture(
        family=world.family,
        tool=state.tool,
        things=state.things,
        goal=world.goals[state.done].place,
        boxes=bool(world.blocks),
        is_open=state.is_open,
        shift=(x, y, z),
    )


def _preparation(world: ArmToolWorld, state: ArmToolState) -> ArmCall | None:
    """Return the next measurement or setting; None when all are made."""
    body, held = world.whole_body, state.corrections
    firmware = {
        "swap_xy": bool(body.exchanged),
        "reverse_gripper": bool(body.reversed),
        "speed_share": round(body.pace, 3),
    }
    if any(getattr(held, name) != value for name, value in firmware.items()):
        return tool_call("set_correction", **firmware)
    readings = state.readings
    for what, names in (
        ("camera", ("camera_offset_mm", "camera_turn_deg")),
        ("encoders", ("encoder_offset_mm",)),
        ("delay", ("delay_ms",)),
    ):
        if names[0] not in readings:
            return tool_call("calibrate", what=what)
        if any(getattr(held, name) != readings[name] for name in names):
            found = {n: list(v) if isinstance(v := readings[n], tuple) else v for n in names}
            return tool_call("set_correction", **found)
        early = state.ticks < _MEASURES_S * arm.HERTZ
        if what != "delay" and what not in state.right and early:
            return tool_call("calibrate", what=what)  # the camera was noisy: once more
    return None

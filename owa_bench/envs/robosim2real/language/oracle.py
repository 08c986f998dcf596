"""The answer key of the language view: it knows unit and truth, and plays by the tools alone."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from typing_extensions import override

from owa_bench.envs.robosim2real.language import beliefs
from owa_bench.envs.robosim2real.language.corrections import MM
from owa_bench.envs.robosim2real.language.state import ArmToolState
from owa_bench.envs.robosim2real.language.wording import HIGH_MM, LOW_MM, SLOWEST
from owa_bench.envs.robosim2real.language.world import ArmToolWorld
from owa_bench.envs.robosim2real.world import Vector
from owa_bench.interfaces import Oracle, PropositionTruth, SubgoalNode
from owa_bench.records.instance import Timeline

Hint = dict[str, Any]
_SAFE_Z, _OVER, _PUSH_Z, _GRASP_Z = 0.3, 0.13, 0.035, 0.022
_BEHIND, _CONTACT, _RESERVE, _STAGE = 0.075, 0.036, 0.03, 0.06  # m, of a push
_CLOSE, _NEAR, _ON_SPOT, _PLACED, _AWAY = 0.004, 0.008, 0.012, 0.015, 0.05
_SLOW, _CARRY = 0.4, 0.5  # of the full speed
_HOLD_S = 1.3
_DECIMALS = 1


def _call(tool: str, **arguments: Any) -> Hint:
    return {"tool": tool, "arguments": arguments}


def _bounded(value: float, low: float, high: float) -> float:
    return round(min(max(value, low), high), _DECIMALS)


def _point(state: ArmToolState, place: Vector, speed: float = 1.0) -> Hint:
    """Return the arguments that bring the tool to a true place: by what the arm will say there."""
    shown = [p + s - t for p, s, t in zip(place, state.shown, state.tool, strict=True)]
    x, y, z = (
        _bounded(value * MM, low, high)
        for value, low, high in zip(shown, LOW_MM, HIGH_MM, strict=True)
    )
    return {"x": x, "y": y, "z": z, "speed": max(speed, SLOWEST)}


def _move(state: ArmToolState, place: Vector, speed: float = 1.0) -> Hint:
    return _call("move_to", **_point(state, place, speed))


def _rise(state: ArmToolState, z: float) -> Hint:
    return _move(state, (state.tool[0], state.tool[1], z))


def _reach(world: ArmToolWorld, state: ArmToolState) -> Hint:
    goal = world.goals[state.done].place
    if world.blocks:  # keep off the box, within the tolerance
        goal = (goal[0], goal[1] + math.copysign(_CLOSE, goal[1]), goal[2])
    if math.dist(state.tool, goal) < _CLOSE + (0.0 if world.blocks else _CLOSE):
        return _call("wait", seconds=_HOLD_S)
    x, y, z = state.tool
    aside = math.dist((x, y), goal[:2])
    over = (goal[0], goal[1], _SAFE_Z)
    if world.blocks and aside > _AWAY:
        return _call("run_path", waypoints=[_point(state, p) for p in ((x, y, _SAFE_Z), over)])
    if world.blocks and aside > _CLOSE and z > _SAFE_Z - _RESERVE:
        return _move(state, over)  # the hand passes a box at a few millimetres
    return _move(state, goal)


def _push(world: ArmToolWorld, state: ArmToolState) -> Hint:
    goal, cube, tool = world.goals[state.done].place, state.things[0], state.tool
    if state.is_open:
        return _call("grip", what="shut")
    way = (goal[0] - cube[0], goal[1] - cube[1])
    left = math.hypot(*way)
    if left < (_PLACED if tool[2] > _OVER / 2 else _ON_SPOT):
        return _rise(state, _OVER) if tool[2] < _OVER / 2 else _call("wait", seconds=_HOLD_S)
    ahead = (way[0] / left, way[1] / left)
    rel = (tool[0] - cube[0], tool[1] - cube[1])
    behind = -(rel[0] * ahead[0] + rel[1] * ahead[1])
    aside = abs(rel[1] * ahead[0] - rel[0] * ahead[1])
    start = (cube[0] - _BEHIND * ahead[0], cube[1] - _BEHIND * ahead[1])
    low = tool[2] < _OVER / 2
    if low and behind > _RESERVE and aside < _CLOSE:
        reserve = _RESERVE if left > 2 * _RESERVE else 0.0
        far = min(left - reserve, _STAGE) + max(0.0, behind - _CONTACT)
        # Along the line through the cube, not through the tool.
        x, y = (c + (far - behind) * a for c, a in zip(cube[:2], ahead, strict=True))
        return _move(state, (x, y, _PUSH_Z), _SLOW)
    if low and behind > _RESERVE and aside < behind:
        return _move(state, (*start, _PUSH_Z), _CARRY)  # back, and on the line again
    if math.dist(tool[:2], start) < _ON_SPOT:
        return _move(state, (*start, _PUSH_Z), _CARRY)
    if tool[2] < _OVER - _ON_SPOT:
        return _rise(state, _OVER)
    return _move(state, (*start, _OVER))


def _pick_place(world: ArmToolWorld, state: ArmToolState) -> Hint:
    goal, thing, tool = world.goals[state.done].place, state.things[0], state.tool
    away = math.dist(thing[:2], goal[:2])
    if state.is_open and away < _PLACED and abs(thing[2] - goal[2]) < _NEAR:
        far = math.dist(tool, thing) > 2 * _RESERVE
        return _call("wait", seconds=_HOLD_S) if far else _rise(state, goal[2] + 0.1)
    if not state.is_open and math.dist(tool, thing) < _RESERVE:
        return _carry(goal, state)
    if not state.is_open:
        return _call("grip", what="open")
    if math.dist(tool[:2], thing[:2]) < _NEAR:
        grasp = thing[2] - 0.025 + _GRASP_Z
        if tool[2] - grasp > _NEAR:
            return _move(state, (thing[0], thing[1], grasp), _CARRY)
        return _call("grip", what="shut")
    if tool[2] < _OVER - _ON_SPOT:
        return _rise(state, _OVER)
    return _move(state, (thing[0], thing[1], _OVER))


def _carry(goal: Vector, state: ArmToolState) -> Hint:
    """Return the next move with a thing in the gripper."""
    thing, tool, high = state.things[0], state.tool, goal[2] + 0.1
    x, y = (t + g - c for t, g, c in zip(tool[:2], goal[:2], thing[:2], strict=True))
    away, low = math.dist(thing[:2], goal[:2]), tool[2] < high - _RESERVE
    if away > (_PLACED if low else _NEAR):
        return _move(state, (tool[0], tool[1], high) if low else (x, y, high), _CARRY)
    if thing[2] > goal[2] + _NEAR:
        down = tool[2] - (thing[2] - goal[2])
        return _move(state, (tool[0], tool[1], down) if low else (x, y, down), _SLOW)
    return _call("grip", what="open")


PLANS: Mapping[str, Callable[[ArmToolWorld, ArmToolState], Hint]] = {
    "reach": _reach,
    "push": _push,
    "pick_place": _pick_place,
}
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
            return _call("finish", p=float(state.success))
        if state.stopped:
            return _call("recover")
        return _preparation(world, state) or PLANS[world.family](world, state)

    @override
    def propositions(self, timeline: Timeline) -> tuple[PropositionTruth, ...]:
        """Return the propositions on the unit."""
        return beliefs.truths(timeline.worlds[0])

    @override
    def categories(self, world: ArmToolWorld) -> tuple[str, ...]:
        """Return none: an arm is no kind of software tool."""
        return ()


def _preparation(world: ArmToolWorld, state: ArmToolState) -> Hint | None:
    """Return the next measurement or setting; None when all are made."""
    body, held = world.whole_body, state.corrections
    firmware = {
        "swap_xy": bool(body.exchanged),
        "reverse_gripper": bool(body.reversed),
        "speed_share": round(body.pace, 3),
    }
    if any(getattr(held, name) != value for name, value in firmware.items()):
        return _call("set_correction", **firmware)
    readings = state.readings
    for what, names in (
        ("camera", ("camera_offset_mm", "camera_turn_deg")),
        ("encoders", ("encoder_offset_mm",)),
        ("delay", ("delay_ms",)),
    ):
        if names[0] not in readings:
            return _call("calibrate", what=what)
        if any(getattr(held, name) != readings[name] for name in names):
            found = {n: list(v) if isinstance(v := readings[n], tuple) else v for n in names}
            return _call("set_correction", **found)
    return None

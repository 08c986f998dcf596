"""Plans of an arm that is played by tools: the next call towards a goal, from where things are.

Each plan is a function of one picture of the table and remembers nothing. Lengths are metres here
and millimetres in the calls.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

ArmPlace = tuple[float, float, float]
ArmCall = dict[str, Any]
MM = 1000.0
# What the tools take, mm, and the least speed.
LOW_MM, HIGH_MM, SLOWEST = (300, -350, 20), (720, 350, 550), 0.05

_SAFE_Z, _OVER, _PUSH_Z, _GRASP_Z = 0.3, 0.13, 0.035, 0.022
_BEHIND, _CONTACT, _RESERVE, _STAGE = 0.075, 0.036, 0.03, 0.06  # m, of a push
_CLOSE, _NEAR, _ON_SPOT, _PLACED, _AWAY = 0.004, 0.008, 0.012, 0.015, 0.05
_HIGH_GRASP = 0.016  # m above the best grasp that still holds: some arms come no lower
_SLOW, _CARRY = 0.4, 0.5  # of the full speed
_HOLD_S = 1.3
_DECIMALS = 1


class ArmPicture(NamedTuple):
    """What a plan reads: where tool, things and goal are, m, and what the gripper was told.

    `boxes` says whether a fixed box stands on the table. `shift` is where the arm says its tool is,
    less where it is: targets are given as the arm will say them.
    """

    family: str
    tool: ArmPlace
    things: tuple[ArmPlace, ...]
    goal: ArmPlace
    boxes: bool
    is_open: bool
    shift: ArmPlace = (0.0, 0.0, 0.0)


def tool_call(tool: str, **arguments: Any) -> ArmCall:
    """Return a call of a tool."""
    return {"tool": tool, "arguments": arguments}


def _bounded(value: float, low: float, high: float) -> float:
    return round(min(max(value, low), high), _DECIMALS)


def _point(picture: ArmPicture, place: ArmPlace, speed: float = 1.0) -> ArmCall:
    """Return the arguments that bring the tool to a true place: by what the arm will say there."""
    shown = [p + s for p, s in zip(place, picture.shift, strict=True)]
    x, y, z = (
        _bounded(value * MM, low, high)
        for value, low, high in zip(shown, LOW_MM, HIGH_MM, strict=True)
    )
    return {"x": x, "y": y, "z": z, "speed": max(speed, SLOWEST)}


def _move(picture: ArmPicture, place: ArmPlace, speed: float = 1.0) -> ArmCall:
    return tool_call("move_to", **_point(picture, place, speed))


def _rise(picture: ArmPicture, z: float) -> ArmCall:
    return _move(picture, (picture.tool[0], picture.tool[1], z))


def _reach(picture: ArmPicture) -> ArmCall:
    goal = picture.goal
    if picture.boxes:  # keep off the box, within the tolerance
        goal = (goal[0], goal[1] + math.copysign(_CLOSE, goal[1]), goal[2])
    if math.dist(picture.tool, goal) < _CLOSE + (0.0 if picture.boxes else _CLOSE):
        return tool_call("wait", seconds=_HOLD_S)
    x, y, z = picture.tool
    aside = math.dist((x, y), goal[:2])
    over = (goal[0], goal[1], _SAFE_Z)
    if picture.boxes and aside > _AWAY:
        return tool_call(
            "run_path", waypoints=[_point(picture, p) for p in ((x, y, _SAFE_Z), over)]
        )
    if picture.boxes and aside > _CLOSE and z > _SAFE_Z - _RESERVE:
        return _move(picture, over)  # the hand passes a box at a few millimetres
    return _move(picture, goal)


def _push(picture: ArmPicture) -> ArmCall:
    goal, cube, tool = picture.goal, picture.things[0], picture.tool
    if picture.is_open:
        return tool_call("grip", what="shut")
    way = (goal[0] - cube[0], goal[1] - cube[1])
    left = math.hypot(*way)
    if left < (_PLACED if tool[2] > _OVER / 2 else _ON_SPOT):
        return _rise(picture, _OVER) if tool[2] < _OVER / 2 else tool_call("wait", seconds=_HOLD_S)
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
        return _move(picture, (x, y, _PUSH_Z), _SLOW)
    if low and behind > _RESERVE and aside < behind:
        return _move(picture, (*start, _PUSH_Z), _CARRY)  # back, and on the line again
    if math.dist(tool[:2], start) < _ON_SPOT:
        return _move(picture, (*start, _PUSH_Z), _CARRY)
    if tool[2] < _OVER - _ON_SPOT:
        return _rise(picture, _OVER)
    return _move(picture, (*start, _OVER))


def _pick_place(picture: ArmPicture) -> ArmCall:
    goal, thing, tool = picture.goal, picture.things[0], picture.tool
    away = math.dist(thing[:2], goal[:2])
    if picture.is_open and away < _PLACED and abs(thing[2] - goal[2]) < _NEAR:
        far = math.dist(tool, thing) > 2 * _RESERVE
        return tool_call("wait", seconds=_HOLD_S) if far else _rise(picture, goal[2] + 0.1)
    if not picture.is_open and math.dist(tool, thing) < _RESERVE:
        return _carry(goal, picture)
    if not picture.is_open:
        return tool_call("grip", what="open")
    if math.dist(tool[:2], thing[:2]) < _NEAR:
        grasp = thing[2] - 0.025 + _GRASP_Z
        if tool[2] - grasp > _HIGH_GRASP:
            return _move(picture, (thing[0], thing[1], grasp), _CARRY)
        return tool_call("grip", what="shut")
    if tool[2] < _OVER - _ON_SPOT:
        return _rise(picture, _OVER)
    return _move(picture, (thing[0], thing[1], _OVER))


def _carry(goal: ArmPlace, picture: ArmPicture) -> ArmCall:
    """Return the next move with a thing in the gripper."""
    thing, tool, high = picture.things[0], picture.tool, goal[2] + 0.1
    x, y = (t + g - c for t, g, c in zip(tool[:2], goal[:2], thing[:2], strict=True))
    away, low = math.dist(thing[:2], goal[:2]), tool[2] < high - _RESERVE
    if away > (_PLACED if low else _NEAR):
        return _move(picture, (tool[0], tool[1], high) if low else (x, y, high), _CARRY)
    if thing[2] > goal[2] + _NEAR:
        down = tool[2] - (thing[2] - goal[2])
        return _move(picture, (tool[0], tool[1], down) if low else (x, y, down), _SLOW)
    return tool_call("grip", what="open")


PLANS: Mapping[str, Callable[[ArmPicture], ArmCall]] = {
    "reach": _reach,
    "push": _push,
    "pick_place": _pick_place,
}


def next_call(picture: ArmPicture) -> ArmCall:
    """Return the next call towards the goal.

    Args:
        picture: Its family has a plan.
    """
    return PLANS[picture.family](picture)

"""Incident: each item is a service that is down and wants a runbook.

A fragment is a list of steps; it is accepted if the service, taken through them one by one, runs in
the end. Which part is at fault is known to one role, how that part is put right to others.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from owa_bench.envs.multicrew.draws import (
    ClauseDraft,
    Content,
    CrewDraws,
    Family,
    Fragment,
    Values,
    owned,
)
from owa_bench.envs.multicrew.world import CrewItem

_DRAIN, _SWITCH = "drain", "switch"
_ORDERS = ("drain before the switch", "switch before the drain")
_STEP = {
    "type": "object",
    "properties": {
        "do": {"enum": ["set", "pin", _DRAIN, _SWITCH, "start"]},
        "part": {"type": "string", "maxLength": 40},
        "value": {"type": "string", "maxLength": 40},
    },
    "required": ["do"],
    "additionalProperties": False,
}
FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {"steps": {"type": "array", "items": _STEP, "maxItems": 12}},
    "required": ["steps"],
    "additionalProperties": False,
}
_ABOUT = (
    "Each item is a service that is down. Its fragment is a runbook: "
    '{"steps": [{"do": "set", "part": PART, "value": FLAG}, '
    '{"do": "pin", "part": PART, "value": VERSION}, {"do": "drain"}, '
    '{"do": "switch"}, {"do": "start"}]}. Clause cause: the part that is at fault. '
    "Clause order: whether one drains or switches first. The part has a clause flag, "
    "which is set, and a clause version, to which it is pinned. The runbook is run: a "
    "step on another part, a wrong flag or version, or drain and switch in the wrong "
    "order leave the service broken; it runs if it is started in the end, all else "
    "done."
)


def draw(draws: CrewDraws, items: tuple[CrewItem, ...]) -> Content:
    """Return parts with flags and versions, and for each service cause and order.

    Args:
        draws: The streams.
        items: Without clauses.
    """
    draft = ClauseDraft()
    add = draft.add
    parts = {}
    for _ in range(max(3, len(items) // 3)):
        part = draws.word()
        flag = add(part, "flag", draws.pick(draws.roles), draws.code(), draws.code())
        sound = add(part, "version", draws.pick(draws.roles), draws.code(), draws.code())
        parts[part] = (flag, sound)
    names = list(parts)
    made = []
    for item in items:
        place = draws.between(0, len(names) - 1)
        part, other = names[place], names[place - 1]
        first = draws.between(0, 1)
        cause = add(item.name, "cause", owned(draws, item), part, other)
        right, not_right = _ORDERS[first], _ORDERS[1 - first]
        order = add(item.name, "order", owned(draws, item), right, not_right)
        made.append(replace(item, clauses=(cause, order), hidden=parts[part]))
    return draft.content(made)


def accepts(
    item: CrewItem, values: Values, before: Mapping[str, Fragment], fragment: Fragment
) -> bool:
    """Return whether a service runs after a runbook.

    Args:
        item: The service.
        values: Of its clauses and of the part at fault.
        before: Plays no part: what it builds on is pinned by revision.
        fragment: The runbook.
    """
    cause, order, flag, version = (values[n] for n in (*item.clauses, *item.hidden))
    done: list[str] = []
    for step in fragment["steps"]:
        action = step["do"]
        if action in ("set", "pin"):
            right = flag if action == "set" else version
            if (step.get("part"), step.get("value")) != (cause, right):
                return False
        if action in done or "start" in done:
            return False
        done.append(action)
    if set(done) != {"set", "pin", _DRAIN, _SWITCH, "start"} or done[-1] != "start":
        return False
    first = _DRAIN if done.index(_DRAIN) < done.index(_SWITCH) else _SWITCH
    return order.startswith(first)


def solution(item: CrewItem, values: Values, before: Mapping[str, Fragment]) -> dict[str, Any]:
    """Return the runbook that the clauses ask for.

    Args:
        item: The service.
        values: Of its clauses and of the part at fault.
        before: Plays no part.
    """
    cause, order, flag, version = (values[n] for n in (*item.clauses, *item.hidden))
    moves = [_DRAIN, _SWITCH] if order.startswith(_DRAIN) else [_SWITCH, _DRAIN]
    return {
        "steps": [
            {"do": "set", "part": cause, "value": flag},
            {"do": "pin", "part": cause, "value": version},
            *({"do": move} for move in moves),
            {"do": "start"},
        ]
    }


FAMILY = Family(
    name="incident",
    about=_ABOUT,
    form=FORM,
    draw=draw,
    problem=lambda item, fragment: "",
    accepts=accepts,
    solution=solution,
)

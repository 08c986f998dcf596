"""The tools of the suite."""

from typing import Any

from owa_bench.envs.multicrew.draws import ROLES
from owa_bench.interfaces import ToolSpec

_NAME = {"type": "string", "maxLength": 60}
_TEXT = {"type": "string", "maxLength": 1200}
_TO = {"enum": [*ROLES, "all"], "description": "A role, or all."}
_PINS = {
    "type": "object",
    "additionalProperties": _NAME,
    "description": "By name of each item that it needs: the revision it builds on.",
}
_FRAGMENT = {
    "type": "object",
    "description": "What is handed in, in the form that the task describes.",
}
_MANIFEST = {
    "type": "object",
    "additionalProperties": _NAME,
    "description": "Values of clauses, by name, that the next one needs.",
}
_TICKS = {"type": "integer", "minimum": 1, "maximum": 20}
_VERDICT = {"enum": ["approve", "reject"]}


def _tool(tool: str, about: str, /, *required: str, **properties: Any) -> ToolSpec:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return ToolSpec(name=tool, about=about, parameters=parameters)


TOOLS = (
    _tool("claim", "Put your name on an item.", "item", item=_NAME),
    _tool(
        "work",
        "Make an item's fragment; takes its effort in ticks.",
        *("item", "fragment"),
        item=_NAME,
        fragment=_FRAGMENT,
        pins=_PINS,
    ),
    _tool(
        "read",
        "Read a document, or the fragment of a merged item.",
        "name",
        name=_NAME,
    ),
    _tool(
        "hand_off",
        "Give an item of yours to another role, with a manifest.",
        *("item", "to"),
        item=_NAME,
        to={"enum": list(ROLES)},
        manifest=_MANIFEST,
    ),
    _tool("ask", "Ask for something.", "to", "about", to=_TO, about=_TEXT),
    _tool("tell", "Tell something.", "to", "text", to=_TO, text=_TEXT),
    _tool(
        "propose",
        "Propose a value for a contested clause, or another one than was proposed.",
        *("clause", "value"),
        clause=_NAME,
        value=_NAME,
    ),
    _tool("accept", "Accept what another seat proposed.", "clause", clause=_NAME),
    _tool(
        "review",
        "Approve or reject the fragment of an item that another seat made.",
        *("item", "verdict"),
        item=_NAME,
        verdict=_VERDICT,
        reasons=_TEXT,
    ),
    _tool("merge", "Merge an item that is worked out.", "item", item=_NAME),
    _tool(
        "arbitrate",
        "Have a contested clause settled, or an item reviewed, from outside.",
        "name",
        name=_NAME,
    ),
    _tool("board", "Show the state of every item."),
    _tool("pass_turn", "Wait; a message wakes you.", ticks=_TICKS),
)

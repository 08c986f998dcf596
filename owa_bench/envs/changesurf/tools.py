"""The browser's tools as an agent sees them. No selector and no script can be said."""

from typing import Any

from owa_bench.envs.changesurf.tab import KEYS
from owa_bench.interfaces import ToolSpec

_REF = {
    "type": "integer",
    "minimum": 1,
    "maximum": 9999,
    "description": "The number of a control in the last page text, as in [12].",
}
_ELEMENT = {
    "type": "string",
    "maxLength": 400,
    "description": "What the control is, in words; for the record, never looked up.",
}


def _tool(name: str, about: str, required: tuple[str, ...], **fields: Any) -> ToolSpec:
    return ToolSpec(
        name=name,
        about=about,
        parameters={
            "type": "object",
            "properties": fields,
            "required": list(required),
            "additionalProperties": False,
        },
    )


TOOLS: tuple[ToolSpec, ...] = (
    _tool(
        "click", "Click a control; boxes toggle.", ("ref",), ref=_REF, element=_ELEMENT
    ),
    _tool(
        "type",
        "Replace what a text field holds.",
        ("ref", "text"),
        ref=_REF,
        text={"type": "string", "maxLength": 2000},
        element=_ELEMENT,
    ),
    _tool(
        "select",
        "Choose an option of a list by its label.",
        ("ref", "option"),
        ref=_REF,
        option={"type": "string", "maxLength": 400},
        element=_ELEMENT,
    ),
    _tool(
        "press",
        "Press a key in the focused control.",
        ("key",),
        key={"type": "string", "enum": list(KEYS)},
    ),
    _tool(
        "scroll",
        "Scroll the window; the page text is whole wherever it stands.",
        ("direction",),
        direction={"type": "string", "enum": ["down", "up"]},
    ),
    _tool("back", "Go back one page.", ()),
    _tool(
        "goto",
        "Go to an address of the sandbox: a path of this site, or a whole address.",
        ("address",),
        address={"type": "string", "maxLength": 400, "examples": ["/"]},
    ),
    _tool(
        "wait",
        "Let simulated time pass.",
        ("seconds",),
        seconds={"type": "number", "minimum": 0, "maximum": 3600},
    ),
    _tool(
        "read",
        "Read the page text on from a line, where it was cut.",
        ("line",),
        line={"type": "integer", "minimum": 1, "maximum": 100_000},
    ),
)

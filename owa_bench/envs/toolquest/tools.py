"""The suite's own tools, as the agent sees them."""

from typing import Any

from owa_bench.interfaces import ToolSpec

WAIT_LIMIT_S = 3600


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    """Return the schema of an object of the given properties and no others."""
    fixed = {"required": list(required)} if required else {}
    schema = {"type": "object", "properties": properties, **fixed}
    return {**schema, "additionalProperties": False}


def _list(items: dict[str, Any], **limits: int) -> dict[str, Any]:
    return {"type": "array", "items": items, **limits}


def _text(most: int, **more: Any) -> dict[str, Any]:
    return {"type": "string", "maxLength": most, **more}


_HANDLES = {
    "anyOf": [_text(16), _list(_text(16), minItems=1, maxItems=64)],
    "description": "A handle such as `art:3`, or several of equal shape.",
}
_NAMES = _list({"type": "string"}, maxItems=40)
_COUNT = {"type": "integer", "minimum": 0}
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}

TOOLS = (
    ToolSpec(
        name="http",
        about="Send one HTTP request. Answers status, headers, body and a handle; a"
        " long body is cut, the handle keeps it whole. `body` as an object is sent as"
        " JSON, or as a form when the content-type header says so.",
        parameters=_object(
            "method",
            "url",
            method={
                "type": "string",
                "enum": ["GET", "POST", "PUT", "PATCH", "DELETE"],
            },
            url=_text(2000, examples=["https://registry.example/"]),
            headers=_TEXTS,
            query={
                "type": "object",
                "additionalProperties": {
                    "type": ["string", "integer", "number", "boolean"]
                },
            },
            body={"type": ["object", "string"]},
        ),
    ),
    ToolSpec(
        name="wait",
        about="Let simulated time pass, for rate limits.",
        parameters=_object(
            "seconds", seconds={"type": "number", "minimum": 0, "maximum": WAIT_LIMIT_S}
        ),
    ),
    ToolSpec(
        name="vault",
        about="Read the credential vault: without a name the list of entries, with one"
        " its value.",
        parameters=_object(name=_text(100)),
    ),
    ToolSpec(
        name="read",
        about="Read a long body from its handle, 3,500 characters at a time, whole or"
        " from a JSON pointer on.",
        parameters=_object(
            "handle",
            handle=_text(16, examples=["art:1"]),
            offset=_COUNT,
            pointer=_text(400),
        ),
    ),
    ToolSpec(
        name="table",
        about="Work on rows behind handles: join, filter, aggregate, sort, choose"
        " columns. Answers a new handle, the columns, and as many rows as fit.",
        parameters=_object(
            "source",
            source=_HANDLES,
            join=_object(
                "source",
                "left",
                "right",
                source=_HANDLES,
                left={"type": "string"},
                right={"type": "string"},
                kind={"type": "string", "enum": ["inner", "left"]},
            ),
            where={"type": "object"},
            group=_NAMES,
            aggregate={
                **_TEXTS,
                "description": "Output column to `count`, `sum:COLUMN`,"
                " `min:COLUMN` or `max:COLUMN`.",
            },
            sort={**_NAMES, "description": "Columns; `-name` sorts downwards."},
            columns=_NAMES,
            offset=_COUNT,
            limit={"type": "integer", "minimum": 1},
        ),
    ),
    ToolSpec(
        name="write_artifact",
        about="Hand in the answer under the name `answer`; the last one counts. `rows`"
        " are lists in the order of `columns`, objects, or a handle. `sources` are"
        " handles they came from.",
        parameters=_object(
            "name",
            "columns",
            "rows",
            name=_text(100, examples=["answer"]),
            columns=_NAMES,
            rows={
                "anyOf": [
                    _list({"type": ["array", "object"]}, maxItems=2000),
                    _text(16),
                ]
            },
            sources=_list(_text(16), maxItems=200),
        ),
    ),
)

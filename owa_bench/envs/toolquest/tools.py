"""The suite's own tools, as the agent sees them."""

from owa_bench.interfaces import ToolSpec

WAIT_LIMIT_S = 3600
_HANDLES = {
    "anyOf": [
        {"type": "string", "maxLength": 16},
        {
            "type": "array",
            "items": {"type": "string", "maxLength": 16},
            "minItems": 1,
            "maxItems": 64,
        },
    ],
    "description": "A handle such as `art:3`, or several of equal shape.",
}
_NAMES = {"type": "array", "items": {"type": "string"}, "maxItems": 40}
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}

TOOLS = (
    ToolSpec(
        name="http",
        about="Send one HTTP request. Answers status, headers, body and a handle; a"
        " long body is cut, the handle keeps it whole. `body` as an object is sent as"
        " JSON, or as a form when the content-type header says so.",
        parameters={
            "type": "object",
            "properties": {
                "method": {
                    "type": "string",
                    "enum": ["GET", "POST", "PUT", "PATCH", "DELETE"],
                },
                "url": {
                    "type": "string",
                    "maxLength": 2000,
                    "examples": ["https://registry.example/"],
                },
                "headers": _TEXTS,
                "query": {
                    "type": "object",
                    "additionalProperties": {
                        "type": ["string", "integer", "number", "boolean"]
                    },
                },
                "body": {"type": ["object", "string"]},
            },
            "required": ["method", "url"],
            "additionalProperties": False,
        },
    ),
    ToolSpec(
        name="wait",
        about="Let simulated time pass, for rate limits.",
        parameters={
            "type": "object",
            "properties": {
                "seconds": {"type": "number", "minimum": 0, "maximum": WAIT_LIMIT_S}
            },
            "required": ["seconds"],
            "additionalProperties": False,
        },
    ),
    ToolSpec(
        name="vault",
        about="Read the credential vault: without a name the list of entries, with one"
        " its value.",
        parameters={
            "type": "object",
            "properties": {"name": {"type": "string", "maxLength": 100}},
            "additionalProperties": False,
        },
    ),
    ToolSpec(
        name="read",
        about="Read a long body from its handle, 3,500 characters at a time, whole or"
        " from a JSON pointer on.",
        parameters={
            "type": "object",
            "properties": {
                "handle": {"type": "string", "maxLength": 16, "examples": ["art:1"]},
                "offset": {"type": "integer", "minimum": 0},
                "pointer": {"type": "string", "maxLength": 400},
            },
            "required": ["handle"],
            "additionalProperties": False,
        },
    ),
    ToolSpec(
        name="table",
        about="Work on rows behind handles: join, filter, aggregate, sort, choose"
        " columns. Answers a new handle, the columns, and as many rows as fit.",
        parameters={
            "type": "object",
            "properties": {
                "source": _HANDLES,
                "join": {
                    "type": "object",
                    "properties": {
                        "source": _HANDLES,
                        "left": {"type": "string"},
                        "right": {"type": "string"},
                        "kind": {"type": "string", "enum": ["inner", "left"]},
                    },
                    "required": ["source", "left", "right"],
                    "additionalProperties": False,
                },
                "where": {"type": "object"},
                "group": _NAMES,
                "aggregate": {
                    **_TEXTS,
                    "description": "Output column to `count`, `sum:COLUMN`,"
                    " `min:COLUMN` or `max:COLUMN`.",
                },
                "sort": {**_NAMES, "description": "Columns; `-name` sorts downwards."},
                "columns": _NAMES,
                "offset": {"type": "integer", "minimum": 0},
                "limit": {"type": "integer", "minimum": 1},
            },
            "required": ["source"],
            "additionalProperties": False,
        },
    ),
    ToolSpec(
        name="write_artifact",
        about="Hand in the answer; the last one counts. `rows` are lists in the order"
        " of `columns`, objects, or a handle. `sources` are handles they came from.",
        parameters={
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 100, "examples": ["answer"]},
                "columns": _NAMES,
                "rows": {
                    "anyOf": [
                        {
                            "type": "array",
                            "items": {"type": ["array", "object"]},
                            "maxItems": 2000,
                        },
                        {"type": "string", "maxLength": 16},
                    ]
                },
                "sources": {
                    "type": "array",
                    "items": {"type": "string", "maxLength": 16},
                    "maxItems": 200,
                },
            },
            "required": ["name", "columns", "rows"],
            "additionalProperties": False,
        },
    ),
)

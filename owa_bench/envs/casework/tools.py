"""The tools of a case, as agents see them."""

from typing import Any

from owa_bench.shells.standard_tools import tool_of, tool_spec

MOST_IDS, WAIT_MINUTES, MOST_SHOWN = 60, 240, 10_000
_URL = {
    "type": "string",
    "maxLength": 16_000,
    "description": "https://HOST/PATH?QUERY. GET https://HOST/ is the host's own description.",
}
_METHOD = {"type": "string", "enum": ["GET", "POST", "PATCH"]}
_VALUE = {"type": ["string", "integer", "boolean"]}
_QUERY = {
    "type": "object",
    "additionalProperties": {"anyOf": [_VALUE, {"type": "array", "items": _VALUE}]},
    "description": "Added to the URL; a list is joined by commas.",
}
_FILE = {
    "type": "string",
    "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,59}$",
    "examples": ["orders.json"],
}
_ROWS = {"type": "array", "items": {"type": "object"}, "maxItems": 3_000}


def _text(about: str, most: int) -> dict[str, Any]:
    return {"type": "string", "maxLength": most, "description": about}


TOOLS = (
    tool_of(
        "http",
        "Send one request to a system of the company. The reply is kept as a file in the case's "
        "folder; a long one is shown in part. Takes 1 minute.",
        "method",
        "query",
        "body",
        "body_from",
        "follow",
        "save",
        "show",
        method=_METHOD,
        url=_URL,
        query=_QUERY,
        body={"type": ["object", "array"], "description": "Sent as JSON."},
        body_from={**_FILE, "description": "A JSON file of the folder, sent as the body."},
        follow={
            "type": "boolean",
            "description": "Turn all pages of a list; the file then holds the rows alone.",
        },
        save={**_FILE, "description": "Name of the file; r001.json and so on if left out."},
        show={
            "type": "integer",
            "minimum": 0,
            "maximum": MOST_SHOWN,
            "description": "Characters of the reply that are shown; 4,000 if left out.",
        },
    ),
    tool_spec(
        "python",
        "Run Python in the case's folder: standard library and numpy, no network, 30 s. Prints "
        "at most 6,000 characters. Files stay, variables do not. Takes 2 minutes.",
        "code",
        code=_text("The program.", 60_000),
    ),
    tool_of(
        "mail",
        "The desk's mailbox: list headers, read mails by key, or search words. Takes 1 minute.",
        "ids",
        "text",
        "unread",
        op={"type": "string", "enum": ["list", "read", "search"]},
        ids={
            "type": "array",
            "items": {"type": "string", "maxLength": 20},
            "maxItems": MOST_IDS,
            "description": "Keys to read.",
        },
        text=_text("Words to search for.", 200),
        unread={"type": "boolean", "description": "Only mails that were never read."},
    ),
    tool_of(
        "chat",
        "Ask people of the company: list people, ask one, read answers. An answer takes 10 to 45 "
        "minutes. Ask for one thing a message. Takes 1 minute.",
        "to",
        "text",
        op={"type": "string", "enum": ["people", "ask", "read"]},
        to=_text("Key of the person.", 40),
        text=_text("The question.", 400),
    ),
    tool_spec(
        "wait",
        "Let time pass, rounded up to whole minutes.",
        "seconds",
        seconds={"type": "integer", "minimum": 1, "maximum": 60 * WAIT_MINUTES},
    ),
    tool_of(
        "submit",
        "Hand in a deliverable, in place of the one before: rows, or a JSON file of the folder. "
        "Takes 1 minute.",
        "rows",
        "file",
        name=_text("Of the deliverable.", 40),
        rows=_ROWS,
        file=_FILE,
    ),
)

"""The tools of the suite, and which of them are on offer with an item."""

from owa_bench.shells.standard_tools import tool_spec

LONGEST_ANSWER = 64  # values


_VALUE = {"type": "string", "maxLength": 200}
_NUMBER = {"type": "integer", "minimum": 0, "maximum": 1_000_000}
_VALUES = {
    "type": "array",
    "items": _VALUE,
    "maxItems": LONGEST_ANSWER,
    "description": "The answer, one text a value, in the order asked for.",
}
_SOURCES = {
    "type": "array",
    "items": _NUMBER,
    "maxItems": LONGEST_ANSWER,
    "description": "Where entries are asked for: the number of the notice of each.",
}
_P = {
    "type": "number",
    "minimum": 0,
    "maximum": 1,
    "description": "How probable it is that this answer is right.",
}
_ANSWER = "Answer what is asked, once."
_GO_ON = "Go on: to the next page, or past a question, which then counts as wrong."
TOOLS = (
    tool_spec("answer", _ANSWER, "values", values=_VALUES, sources=_SOURCES, p=_P),
    tool_spec("go_on", _GO_ON),
    tool_spec("search", "List notices that hold every word.", "query", query=_VALUE),
    tool_spec("open", "Read a notice.", "number", number=_NUMBER),
)
ZERO_TOOL = ("answer", "go_on", "finish", "declare_infeasible")
ASSISTED = (
    *("answer", "go_on", "search", "open", "note", "recall", "ask_supervisor"),
    *("finish", "declare_infeasible"),
)

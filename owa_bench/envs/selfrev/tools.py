"""The tools of the suite."""

from owa_bench.records.holdout import FEWEST_PAIRS
from owa_bench.shells.standard_tools import tool_spec

_NAME = {"type": "string", "maxLength": 40}
_NAMES = {"type": "array", "items": _NAME, "maxItems": 40}
_P = {"type": "number", "minimum": 0, "maximum": 1}
_PAIRS = {"type": "integer", "minimum": FEWEST_PAIRS, "maximum": 1000}
_COUNT = {"type": "integer", "minimum": 1, "maximum": 200}
_TEXT = {"type": "string", "maxLength": 400}
_DIFF = {**_NAMES, "description": "Components that change against the current version, by name."}
_METRIC = {
    "enum": ["quality", "logged"],
    "description": "quality: as the suite marks; logged: by the subject's own log.",
}
_RULE = {
    "enum": ["mean", "lower_bound", "e_process"],
    "description": "The statistic that the answer is.",
}
_LEVEL = {"type": "number", "minimum": 0.0001, "maximum": 0.25}
TOOLS = (
    tool_spec(
        "analyze",
        "Read the log of development attempts: versions, counts, mean logged score.",
        query=_TEXT,
    ),
    tool_spec("propose", "Make a version.", "diff", diff=_DIFF),
    tool_spec(
        "register",
        "Register a test of a version against the current one, before it is played.",
        *("version", "metric", "pairs", "rule", "level"),
        version=_NAME,
        hypothesis=_TEXT,
        metric=_METRIC,
        pairs=_PAIRS,
        rule=_RULE,
        level=_LEVEL,
    ),
    tool_spec(
        "run_dev",
        "Play a version on development instances; gives the mean of its own log.",
        *("version", "count"),
        version=_NAME,
        count=_COUNT,
    ),
    tool_spec("request_holdout", "Play a registered test once.", "plan", plan=_NAME),
    tool_spec("adopt", "Make a version the current one.", "version", version=_NAME),
    tool_spec("revert", "Take a component back.", "component", component=_NAME),
    tool_spec(
        "ablate",
        "Play the current version without a component on development instances.",
        *("component", "count"),
        component=_NAME,
        count=_COUNT,
    ),
    tool_spec(
        "regress",
        "Play first and current version by inner family, for lost skills.",
        "count",
        count=_COUNT,
    ),
    tool_spec(
        "forecast",
        "State how probable it is that a component helps; the last one counts.",
        *("component", "p"),
        component=_NAME,
        p=_P,
    ),
    tool_spec(
        "attribute",
        "Name the adopted components that carry the gain.",
        "components",
        components=_NAMES,
    ),
)

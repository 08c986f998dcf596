"""Handicaps of the reference agents: one vocabulary of options, one knob an axis.

An agent lists the knobs that it can use among its options; any other is refused by name, as every
unknown option is. `owa-bench validate` plays them. Without a knob an agent plays as it always does.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from owa_bench.agents.solvers.api_solver.http_session import ALL_SKILLS, SkillConfig
from owa_bench.agents.solvers.planning import PlanCall, ToolPlan
from owa_bench.errors import FieldError
from owa_bench.interfaces import Brief

# The order in which the knob `tools` turns skills on: those that a world at rest needs
# come first.
TOOL_ORDER = (
    *("waits", "pages", "guesses", "retries", "remembers"),
    *("searches", "repages", "weighs", "adds_up"),
)
NONE = "none"  # the value of a knob without a limit
# In a family that is off, quality stays below the .6 from which a family counts as
# covered, and little more is lost. A share c of an answer's rows has the mark
# 2c / (1 + c), a share of items the mark c, to which a well stated p adds up to .1.
CARRIED, ANSWERED = 0.42, 0.5
_SPARE_STEPS = 3  # left by idle requests for the closing call
_REQUESTS = frozenset({"http", "goto", "click", "press", "back"})


class Knob(NamedTuple):
    """A handicap: the axis that it is to move, and what it does."""

    axis: str
    about: str


KNOBS: Mapping[str, Knob] = {
    "half_life": Knob("M", "Episodes after which half of what it remembers is lost."),
    "depth": Knob("P", "Longest chain of dependent steps that it begins."),
    "tools": Knob("T", f"How many of its {len(TOOL_ORDER)} skills are on."),
    "calibration": Knob("W", "Share of its distance to 1/2 that a stated p keeps."),
    "asks": Knob("A", "Questions to the supervisor before it tries anything."),
    "calls": Knob("$", "Idle requests for every request of its work."),
    "crew": Knob("S", "Most that hold its roles; the last holds all that remain."),
    "revisions": Knob("R", "Most changes of itself that it adopts."),
    "families_off": Knob("G", "Families, by name, that it does not carry through."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Handicaps:
    """What limits an agent, one field a knob; the defaults limit nothing."""

    half_life: float = math.inf
    depth: float = math.inf
    tools: int = len(TOOL_ORDER)
    calibration: float = 1.0
    asks: int = 0
    calls: int = 0
    crew: int | None = None
    revisions: float = math.inf
    families_off: tuple[str, ...] = ()


def knob_options(*names: str) -> dict[str, str]:
    """Return the lines of an agent's card for the knobs that it can use."""
    return {name: KNOBS[name].about for name in names}


def read_handicaps(options: Mapping[str, str]) -> Handicaps:
    """Return the handicaps among an agent's options; the others are left alone.

    Raises: FieldError: A value breaks its rule; names knob, value and rule.

    >>> read_handicaps({"asks": "2", "crew": "none"}).asks
    2
    """
    given = {name: _READERS[name](name, options[name]) for name in _given_knobs(options)}
    return Handicaps(**given)


def _given_knobs(options: Mapping[str, str]) -> list[str]:
    return [name for name in KNOBS if name in options]


def _at_least(least: int, most: float = math.inf) -> Callable[[str, str], Any]:
    """Return a reader of whole numbers in a range."""

    def read(name: str, text: str) -> int:
        if not (text.isdecimal() and least <= int(text) <= most):
            upper = "" if most == math.inf else f" and at most {most:g}"
            rule = f"must be a whole number, at least {least}{upper}"
            raise FieldError(name, text, rule)
        return int(text)

    return read


def _unless_none(read: Callable[[str, str], Any], missing: Any) -> Callable[[str, str], Any]:
    """Return a reader that also takes `none`, for no limit."""

    def read_or_none(name: str, text: str) -> Any:
        if text == NONE:
            return missing
        try:
            return read(name, text)
        except FieldError as error:
            rule = f"{error.rule}, or `{NONE}`"
            raise FieldError(name, text, rule) from error

    return read_or_none


def _share(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= 1.0:
        raise FieldError(name, text, "must be a number in [0, 1]")
    return value


_READERS: Mapping[str, Callable[[str, str], Any]] = {
    "half_life": _unless_none(_at_least(1), math.inf),
    "depth": _unless_none(_at_least(0), math.inf),
    "tools": _at_least(0, len(TOOL_ORDER)),
    "calibration": _share,
    "asks": _at_least(0),
    "calls": _at_least(0),
    "crew": _unless_none(_at_least(1), None),
    "revisions": _unless_none(_at_least(0), math.inf),
    "families_off": lambda _, text: tuple(filter(None, text.split(","))),
}


# --- what they do ---------------------------------------------------------------------


def solver_skills(handicaps: Handicaps, brief: Brief) -> SkillConfig:
    """Return the skills that a handicapped solver has on this goal.

    Args:
        handicaps: `tools` and `families_off` are read.
        brief: The task.
    Returns: The skills, and the share of the answer that is given.
    """
    off: dict[str, Any] = dict.fromkeys(TOOL_ORDER[handicaps.tools :], False)
    off |= {"carries": CARRIED} if skips(handicaps, brief) else {}
    return replace(ALL_SKILLS, **off)


def skips(handicaps: Handicaps, brief: Brief) -> bool:
    """Return whether a task's family is not carried through.

    Args:
        handicaps: `families_off` is read.
        brief: The task.
    Returns: Whether it is off.
    """
    return str(brief.goal.get("family", "")) in handicaps.families_off


def planned_depth(goal: Mapping[str, Any]) -> int:
    """Return how many dependent steps a goal takes, as far as the goal itself tells.

    Over HTTP: the registry, a vendor's page, its documents, the rows, the answer. On pages: the
    sign-in, a step for each value, the sending.

    >>> planned_depth({"arguments": {"amount": "3"}, "credentials": {"Password": "x"}})
    3
    """
    if "sources" not in goal:
        signs_in, values = bool(goal.get("credentials")), goal.get("arguments", {})
        return 1 + signs_in + max(1, len(values))
    entries = [str(source.get("entry") or "") for source in goal["sources"]]
    registry = bool(goal.get("registry"))
    pages = registry or any(not entry.endswith(".json") for entry in entries)
    return 3 + registry + pages


def handicapped(plan: ToolPlan[PlanCall], handicaps: Handicaps, brief: Brief) -> ToolPlan[PlanCall]:
    """Return a plan under the handicaps that hold for any plan.

    Questions come first, as many as there is help for; idle requests last, as far as the step limit
    goes, so that neither disturbs the work.

    Args:
        plan: The agent's own, which returns its closing call.
        handicaps: `asks`, `calls` and `calibration` are read.
        brief: The task and its budgets.
    Returns: The plan to walk instead.
    """
    left = brief.interventions_left
    asked = handicaps.asks if left is None else min(handicaps.asks, left)
    for _ in range(asked):
        yield PlanCall("ask_supervisor", {"question": "What is the next right step?"})
    steps = brief.budgets.get("steps", math.inf) - asked - _SPARE_STEPS
    closing, requests, used = yield from _count_work(plan)
    idle = min(handicaps.calls * len(requests), steps - used)
    for _ in range(int(max(0, idle))):
        yield requests[0]
    return _restated(closing, handicaps.calibration)


class _Work(NamedTuple):
    """A plan's closing call, what an idle request repeats, and the steps it took."""

    closing: PlanCall
    requests: list[PlanCall]
    steps: int


def _count_work(plan: ToolPlan[PlanCall]) -> ToolPlan[_Work]:
    """Walk a plan; count its steps and its requests, the harmless ones at hand."""
    requests: list[PlanCall] = []
    steps = 0
    try:
        call = next(plan)
        while True:
            if call.tool in _REQUESTS:
                requests.append(_idle(call))
            steps += 1
            call = plan.send((yield call))
    except StopIteration as end:
        return _Work(end.value, requests, steps)


def _idle(call: PlanCall) -> PlanCall:
    """Return a request that changes nothing, in place of one of the work."""
    if call.tool != "http":
        return PlanCall("goto", {"address": "/"})
    url = call.arguments["url"]
    return PlanCall("http", {"method": "GET", "url": url})


def _restated(closing: PlanCall, kept: float) -> PlanCall:
    """Return a closing call whose probabilities are drawn towards one half."""
    if kept == 1.0:
        return closing
    words = dict(closing.arguments)
    if "p" in words:
        words["p"] = _drawn_to_half(float(words["p"]), kept)
    beliefs = words.get("beliefs", {})
    words["beliefs"] = {name: _drawn_to_half(p, kept) for name, p in beliefs.items()}
    return PlanCall(closing.tool, words)


def _drawn_to_half(p: float, kept: float) -> float:
    return round(0.5 + kept * (p - 0.5), 4)

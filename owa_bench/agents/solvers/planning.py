"""Turns a plan written as one generator into an agent's turn-by-turn acts.

A plan yields a `Call` and is sent the `Reply`; sub-plans are called with `yield from`. Its state is
where it stands in its own code. How likely it is right, a plan states by odds that each observation
multiplies.
"""

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
WAIT = "wait"  # the tool that lets simulated time pass
REFUSAL = "error:"  # how the text of an action that was not taken begins


class PlanCall(NamedTuple):
    """One tool call."""

    tool: str
    arguments: Mapping[str, Any]

    def text(self) -> str:
        """Return the call as the action of the language view."""
        return json.dumps({"tool": self.tool, "arguments": dict(self.arguments)})


class PlanReply(NamedTuple):
    """What a call brought: the text read and, where it is JSON, its value."""

    text: str
    value: Any

    @property
    def error(self) -> str | None:
        """The reason why the call was refused, None when it ran."""
        if isinstance(self.value, Mapping) and "error" in self.value:
            return str(self.value["error"])
        return self.text if self.text.startswith(REFUSAL) else None


ToolPlan = Generator[PlanCall, PlanReply, T]


def limited(plan: ToolPlan[T], most: int) -> ToolPlan[T | None]:
    """Run a plan for a limited number of calls.

    Args:
        plan: The plan.
        most: How many calls it may make.
    Returns: Its result, None when it would need more calls.
    """
    try:
        call = next(plan)
        for _ in range(most):
            call = plan.send((yield call))
    except StopIteration as end:
        value: T = end.value
        return value
    plan.close()
    return None


def together(plans: Sequence[ToolPlan[T]]) -> ToolPlan[list[T]]:
    """Walk several plans by turns; return what each returned.

    Nobody waits while another has something to do, and all wait at once.
    """
    found: dict[int, T] = {}
    calls: dict[int, PlanCall] = {}

    def step(number: int, seen: PlanReply | None) -> None:
        calls.pop(number, None)
        try:
            plan = plans[number]
            calls[number] = next(plan) if seen is None else plan.send(seen)
        except StopIteration as end:
            found[number] = end.value

    for number in range(len(plans)):
        step(number, None)
    while calls:
        busy = [n for n, call in calls.items() if call.tool != WAIT]
        for number in sorted(busy):
            step(number, (yield calls[number]))
        if not busy:
            seen = yield max(calls.values(), key=lambda c: c.arguments["seconds"])
            for number in sorted(calls):
                step(number, seen)
    return [found[number] for number in range(len(plans))]


class Runner:
    """Walks a plan: give it what was seen, get the next call; then the last one.

    After the plan has returned its final call, that call is repeated.
    """

    def __init__(self, plan: ToolPlan[PlanCall]) -> None:
        self._plan = plan
        self._begun = False
        self._final: PlanCall | None = None

    def advance(self, text: str) -> PlanCall:
        """Return the next call after seeing `text` (ignored the first time)."""
        if self._final is not None:
            return self._final
        try:
            if self._begun:
                return self._plan.send(reply(text))
            self._begun = True
            return next(self._plan)
        except StopIteration as end:
            final: PlanCall = end.value
            self._final = final
            return final


def reply(text: str) -> PlanReply:
    """Return `text` as a reply, parsed when it is JSON.

    >>> reply('{"error": "no such tool"}').error
    'no such tool'
    """
    try:
        return PlanReply(text, json.loads(text))
    except ValueError:
        return PlanReply(text, None)


# --- odds that each observation multiplies --------------------------------------------
# Only products and quotients are used, so equal evidence gives equal bytes everywhere.


LOWEST = 0.02
HIGHEST = 0.98
DECIMALS = 2


def posterior(prior: float, ratios: Iterable[float] = ()) -> float:
    """Return the probability that `prior` becomes under likelihood `ratios`.

    A ratio above 1 speaks for the proposition, one below 1 against it. The result stays in [0.02,
    0.98]: nothing seen on a wire is certain.

    Args:
        prior: Probability before the evidence, in (0, 1).
        ratios: Likelihood ratios.
    Returns: A probability with two decimals.

    >>> posterior(0.5, [3.0])
    0.75
    >>> posterior(0.9, [0.001])
    0.02
    """
    odds = prior / (1.0 - prior)
    for ratio in ratios:
        odds *= ratio
    return round(min(HIGHEST, max(LOWEST, odds / (1.0 + odds))), DECIMALS)

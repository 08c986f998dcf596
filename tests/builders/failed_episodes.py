"""Traces of failed episodes made by hand: a few actions, and how the episode ended."""

import json

from msgspec.structs import replace

from owa_bench.records import events
from owa_bench.records.events import AnyEvent
from owa_bench.records.trace import Leaf, Trace
from tests.builders.episodes import episode

TOOLS = ("http", "write_artifact", "note", "ask_supervisor", "finish", "declare_infeasible")
GRAPH = events.SubgoalGraph(
    nodes=(("docs", ()), ("key", ("docs",)), ("rows", ("key",)), ("artifact", ("rows",)))
)
OFFER = events.ToolOffer(step=0, names=TOOLS)


def call(tool: str, **arguments: object) -> str:
    """Return the text of a tool call."""
    return json.dumps({"tool": tool, "arguments": arguments})


def action(step: int, text: str = call("http", url="a"), **changes: object) -> events.Action:
    """Return an action that gained nothing."""
    made = events.Action(
        step=step,
        action=text,
        verified=False,
        reward=0.0,
        terminated=False,
        truncated=False,
        observation=f"{step:064d}",
        at_ms=0,
    )
    return replace(made, **changes)


def finish(step: int, tool: str = "finish") -> events.Action:
    """Return the action that ends an episode."""
    return action(step, call(tool), terminated=True)


def solved(step: int, node: str) -> tuple[AnyEvent, ...]:
    """Return a verified action and the subgoal that it reached."""
    return action(step, verified=True), events.Subgoal(step=step, node=node, depth=1)


def answered(step: int, status: int) -> tuple[AnyEvent, ...]:
    """Return an action whose one request was answered with a status."""
    request = events.Call(
        step=step,
        method="GET",
        target="https://a.example/rows",
        status=status,
        ok=status < 400,
        request="r",
        response="r",
    )
    return action(step), request


def failed(*parts: AnyEvent | tuple[AnyEvent, ...], **terms: object) -> Trace:
    """Return a counted episode of these events.

    Args:
        parts: Events, or tuples of them, behind graph and tools.
        terms: Of the end (outcome, reason, q_state), of the leaf (status), `opening` in place of
            graph and tools, or of `tests.builders.episodes.episode`.
    """
    between = [e for part in parts for e in (part if isinstance(part, tuple) else (part,))]
    ends = {name: terms.pop(name) for name in ("outcome", "reason") if name in terms}
    status = terms.pop("status", "complete")
    opening = terms.pop("opening", (GRAPH, OFFER))
    terms.setdefault("q_state", 0.25)
    bare = episode(**terms)
    steps = sum(isinstance(e, events.Action) for e in between)
    end = replace(bare.end, steps=steps, **ends)
    if end.outcome == "truncated" and "reason" not in ends:
        end = replace(end, reason="budget:steps")
    leaf: Leaf = replace(bare.leaf, status=status)
    return Trace(leaf, (bare.start, *opening, *between, end))

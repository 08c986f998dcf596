"""The tools that every tool suite has: notes, the supervisor, and two ways to end."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from owa_bench.errors import UsageError
from owa_bench.interfaces import Oracle, Sink, State, ToolSpec
from owa_bench.records.events import (
    Belief,
    Event,
    Intervention,
    Outcome,
    Resource,
    fixed,
)
from owa_bench.records.instance import Timeline
from owa_bench.shells.calls import Call, call_text
from owa_bench.shells.schemas import shown

HINT_MINUTES = 2.0  # supervisor minutes per hint [D]
OWN_SUCCESS = "own_success"  # class of beliefs that never enters W

_PROBABILITY = {"type": "number", "minimum": 0, "maximum": 1}
_P = {
    **_PROBABILITY,
    "description": "How probable it is that the task is done right; 0.5 if left out.",
}
_BELIEFS = {
    "type": "object",
    "additionalProperties": _PROBABILITY,
    "description": "Probability that each listed proposition is true, by its id.",
}


def _text(about: str, limit: int) -> dict[str, Any]:
    return {"type": "string", "maxLength": limit, "description": about}


def _tool(name: str, about: str, *required: str, **properties: Any) -> ToolSpec:
    return ToolSpec(
        name=name,
        about=about,
        parameters={
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        },
    )


STANDARD_TOOLS: tuple[ToolSpec, ...] = (
    _tool(
        "note",
        "Keep a note for later in this episode.",
        "text",
        text=_text("What to keep.", 4000),
    ),
    _tool(
        "recall",
        "Read back the notes that hold a word of the query, newest first.",
        query=_text("Words to look for; all notes if left out.", 400),
    ),
    _tool(
        "ask_supervisor",
        "Ask the supervisor for the next right step. Costs supervisor time and counts.",
        question=_text("What you want to know.", 2000),
    ),
    _tool(
        "finish",
        "End the episode: the work is done.",
        answer=_text("A closing word; what counts is the work itself.", 20_000),
        p=_P,
        beliefs=_BELIEFS,
    ),
    _tool(
        "declare_infeasible",
        "End the episode: the task cannot be done honestly.",
        p=_P,
        beliefs=_BELIEFS,
    ),
)


def tools_of(own: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """Return a suite's own tools and the standard ones after them.

    Errors: UsageError if a suite's tool takes the name of a standard one.
    """
    taken = {tool.name for tool in STANDARD_TOOLS} & {tool.name for tool in own}
    if taken:
        raise UsageError(
            f"A suite's tool must not be called {', '.join(sorted(taken))}."
        )
    return (*own, *STANDARD_TOOLS)


class Reply(NamedTuple):
    """What a tool answered: `events` are the call's own, `later` those after it.

    `error` says why an action was malformed or refused; `changed` whether the state is
    another object; `outcome` ends the episode.
    """

    text: str
    ok: bool = True
    error: str | None = None
    verified: bool = False
    changed: bool = False
    elapsed_ms: int = 0
    events: tuple[Event, ...] = ()
    later: tuple[Event, ...] = ()
    outcome: Outcome | None = None


def refusal(message: str, *events: Event) -> Reply:
    """Return the reply to an action that is malformed or not allowed."""
    return Reply(f"error: {message}", ok=False, error=message, events=events)


def matching(notes: Sequence[str], query: str) -> str:
    """Return the notes that hold a word of `query`, newest first, or a remark.

    >>> matching(["red fox", "grey wolf"], "fox")
    'red fox'
    """
    words = query.lower().split()
    found = [
        note
        for note in reversed(notes)
        if not words or any(word in note.lower() for word in words)
    ]
    return "\n---\n".join(found) if found else "No note matches."


class StandardTools:
    """The standard tools of one episode: its notes, its hints, its stated p."""

    def __init__(
        self,
        oracle: Oracle,
        timeline: Timeline,
        sink: Sink,
        *,
        listed: Mapping[str, str],
        interventions: int | None,
    ) -> None:
        self.stated: float | None = None
        self._oracle = oracle
        self._timeline = timeline
        self._sink = sink
        self._listed = listed
        self._limit = interventions
        self._hints = 0
        self._notes: list[str] = []
        self._tools: dict[str, Callable[[Mapping[str, Any], State, int], Reply]] = {
            "note": self._note,
            "recall": self._recall,
            "ask_supervisor": self._ask,
            "finish": self._finish,
            "declare_infeasible": self._declare_infeasible,
        }

    @property
    def interventions_left(self) -> int | None:
        """How often the supervisor may still be asked; None: not limited."""
        return None if self._limit is None else self._limit - self._hints

    def run(self, call: Call, state: State, *, step: int) -> Reply | None:
        """Return the answer of a standard tool; None if the call is of another."""
        tool = self._tools.get(call.tool)
        return None if tool is None else tool(call.arguments, state, step)

    def _note(self, arguments: Mapping[str, Any], _: State, __: int) -> Reply:
        self._notes.append(arguments["text"])
        return Reply(f"noted ({len(self._notes)})")

    def _recall(self, arguments: Mapping[str, Any], _: State, __: int) -> Reply:
        return Reply(matching(self._notes, arguments.get("query", "")))

    def _ask(self, arguments: Mapping[str, Any], state: State, step: int) -> Reply:
        question = self._sink.blob(arguments.get("question", "").encode())
        if self.interventions_left == 0:
            refused = Intervention(
                step=step, kind="refused", minutes=0.0, question=question
            )
            rule = f"`ask_supervisor` may be called at most {self._limit} times"
            asked = self._hints + 1
            return refusal(f"{rule}, got call {asked}; go on without.", refused)
        self._hints += 1
        hint = self._oracle.hint(self._timeline, state)
        line = call_text(hint["tool"], hint["arguments"])
        text = f"The next right step is to call {hint['tool']}:\n{line}"
        given = Intervention(
            step=step,
            kind="hint",
            minutes=HINT_MINUTES,
            question=question,
            answer=self._sink.blob(text.encode()),
        )
        cost = Resource(
            step=step, meter="supervisor_min", amount=HINT_MINUTES, stream="human"
        )
        return Reply(text, events=(given, cost))

    def _finish(self, arguments: Mapping[str, Any], _: State, step: int) -> Reply:
        return self._end(arguments, "finished", step)

    def _declare_infeasible(
        self, arguments: Mapping[str, Any], _: State, step: int
    ) -> Reply:
        return self._end(arguments, "infeasible", step)

    def _end(self, arguments: Mapping[str, Any], outcome: Outcome, step: int) -> Reply:
        beliefs = arguments.get("beliefs", {})
        for name in beliefs:
            if name not in self._listed:
                known = ", ".join(self._listed) or "none"
                rule = f"`arguments.beliefs` may hold the listed propositions ({known})"
                return refusal(f"{rule}, got {shown(name)}; leave it out.")
        world = self._timeline.worlds[0]
        kinds = {name: kind for name, kind, _ in self._oracle.propositions(world)}
        stated = [(name, kinds[name], p) for name, p in beliefs.items()]
        if "p" in arguments:
            self.stated = fixed(arguments["p"])
            stated.insert(0, (OWN_SUCCESS, OWN_SUCCESS, self.stated))
        later = tuple(
            Belief(step=step, proposition=name, kind=kind, p=fixed(p))
            for name, kind, p in stated
        )
        return Reply("The episode has ended.", later=later, outcome=outcome)

"""One running episode: its tools, cards of a sitting, answers, days, probes.

What a sitting shows is gone after it; the harness restarts the agent when `sitting` rises. Only
answer, go_on and the two ends are on offer, but for assisted items.

Source: docs/recall.md#tools
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from typing_extensions import override

from owa_bench.envs.recall.answers import comparable
from owa_bench.envs.recall.oracle import Mark, mark
from owa_bench.envs.recall.state import Card, RecallState, Script, features, macros
from owa_bench.envs.recall.wording import SLOTS, claim_texts, notice_line, task_text
from owa_bench.envs.recall.world import RecallWorld
from owa_bench.interfaces import Seated, Task, ToolResult
from owa_bench.records.events import Belief, Event, Probe, Resolution, fixed
from owa_bench.records.instance import Timeline
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
_GO_ON = "Go on: to the next page, or past a question, which then earns nothing."
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

THETA = 0.9
SEAT = "agent"
_DAY_MS = 86_400_000
_CARD_MS = 60_000
_FOUND = 8  # notices that a search lists
_OWN = "own_success"  # class of beliefs that never enters W
_NEVER = -1  # sitting of an item that was never shown


class RecallSession(Seated):
    """The session of one episode."""

    tools = TOOLS
    seats = (SEAT,)
    seat = SEAT
    state: RecallState

    def __init__(self, timeline: Timeline) -> None:
        self.state = RecallState(Script(timeline.worlds[0]))

    @override
    def task_of(self, seat: str) -> Task:
        """Return the task: rules, subjects, relations and how answers are written."""
        world = self._world
        goal = {
            "family": world.family,
            "tier": world.tier,
            "relations": list(world.relations),
            "watched": list(world.watched),
            "quota": world.quota,
            "answer_form": world.answer_form,
            "reviews": world.reviews,
            "entries": SLOTS,
        }
        return Task(task_text(world, THETA), goal, claim_texts(world))

    @property
    @override
    def sitting(self) -> int:
        return min(self.state.sitting, len(self.state.script.days) - 1)

    @property
    @override
    def offer(self) -> tuple[str, ...]:
        """The tools on offer: with an assisted item all, else the four."""
        return ASSISTED if self.state.card.assisted else ZERO_TOOL

    @override
    def look(self) -> str:
        """Return the present card, headed by its day."""
        card = self.state.card
        return f"Day {self.state.day}, {card.kind}.\n{card.text}"

    @override
    def enter(self, world: RecallWorld, *, now_ms: int) -> None:
        """Go on in another world from the next sitting on."""
        state = self.state
        script = state.script.entered(world, self.sitting)
        self.state = msgspec.structs.replace(state, script=script)

    @override
    def call(
        self, tool: str, arguments: Mapping[str, Any], *, now_ms: int, step: int
    ) -> ToolResult:
        card = self.state.card
        if tool == "search":
            return ToolResult(self._matching_notices(arguments["query"]), True, _CARD_MS)
        if tool == "open":
            return self._open_notice(arguments["number"])
        if self.state.over:
            return ToolResult(card.text, False)
        if card.kind == "review":
            return self._review(arguments.get("values", ()), tool, now_ms)
        if card.kind == "page" and tool == "answer":
            return ToolResult("There is nothing to answer here: call go_on.", False)
        if card.kind == "page":
            return self._advance({}, "", (), now_ms)
        values = arguments.get("values", ())
        sources = arguments.get("sources", ())
        if moved := self._moved(sources):
            return ToolResult(moved, False, _CARD_MS)
        marked = mark(self._world, self.state.script.register, card, values, sources)
        events: tuple[Event, ...] = (self._probe(card, marked, step, self.sitting),)
        if "p" in arguments:
            events += _belief_events(card, arguments["p"], marked, now_ms, step)
        score = marked.score if values else None
        return self._advance({card.name: score}, "noted", events, now_ms)

    @override
    def final_events(self, *, step: int) -> tuple[Event, ...]:
        """Return a failed probe for every item that was not answered."""
        script, scores = self.state.script, self.state.scores
        cards = [card for i in range(len(script.days)) for card in script.cards(i)]
        return tuple(
            self._probe(card, Mark(0.0), step, None)
            for card in cards
            if card.kind == "item" and card.name not in scores
        )

    @override
    def features(self) -> npt.NDArray[np.float32]:
        """Return the kind of the card, its stimulus, and its number of options."""
        return features(self.state)

    @override
    def macros(self) -> tuple[Mapping[str, Any] | None, ...]:
        """Return go_on and an answer for each option."""
        return macros(self.state)

    @property
    def _world(self) -> RecallWorld:
        return self.state.script.world

    def _advance(
        self,
        scores: Mapping[str, float | None],
        text: str,
        events: tuple[Event, ...],
        now_ms: int,
        **change: Any,
    ) -> ToolResult:
        """Go on to the next card, and to the next sitting after the last one."""
        state = self.state
        sitting, place = state.sitting, state.place + (not state.page)
        elapsed = _CARD_MS
        page = change.get("page", "")
        if not page and place == len(state.script.cards(sitting)):
            sitting, place = sitting + 1, 0
            if sitting < len(state.script.days):
                elapsed = max(state.script.days[sitting] * _DAY_MS - now_ms, _CARD_MS)
        exercise = state.card.exercise
        right = {name for name, score in scores.items() if score == 1}
        if exercise is not None and exercise.unmarked:
            right = set()
        linked = exercise is not None and exercise.chain > 0
        self.state = msgspec.structs.replace(
            state,
            sitting=sitting,
            place=place,
            scores={**state.scores, **scores} if scores else state.scores,
            right=state.right | right,
            linked=state.linked | right if linked else state.linked,
            **{"page": "", **change},
        )
        return ToolResult(text, True, elapsed, events=events)

    def _probe(self, card: Card, marked: Mark, step: int, sitting: int | None) -> Probe:
        """Return the probe of an answer; `sitting` None: it was never answered."""
        world, question = self._world, card.question
        common: dict[str, Any] = {"step": step, "correct": marked.score == 1.0}
        if question is None:
            exercise = card.exercise
            assert exercise is not None  # noqa: S101  an item is one of the two
            mode = "span" if world.family == "working_memory" else exercise.kind
            item = f"{world.code}/{exercise.name}"
            return Probe(item=item, lag_days=0, mode=mode, span=exercise.span, **common)
        shown = self.state.seen.get(question.subject, question.shown)
        if question.kind in ("retrieve", "assisted"):
            common |= {
                "returned": marked.entries,
                "relevant": marked.relevant,
                "contrary": marked.contrary,
            }
        known = sitting is not None and shown in self.state.script.days
        return Probe(
            item=f"{world.code}/{question.name}",
            lag_days=question.day - shown,
            guess=fixed(1 / len(world.values[question.relation])),
            mode=question.kind,
            sitting=self.state.script.sitting_of(shown) if known else _NEVER,
            **common,
        )

    def _review(self, names: Any, tool: str, now_ms: int) -> ToolResult:
        """Show the pairs that were asked for again."""
        world = self._world
        if len(names) > world.reviews:
            text = f"At most {world.reviews} may be named, got {len(names)}."
            return ToolResult(text, False)
        named = {comparable(name) for name in names if tool == "answer"}
        asked = {n.subject for n in world.notices if comparable(n.subject) in named}
        lines = [notice_line(world, n) for n in world.notices if n.subject in asked]
        if not lines:
            return self._advance({}, "", (), now_ms)
        seen = {**self.state.seen, **dict.fromkeys(asked, self.state.day)}
        return self._advance({}, "", (), now_ms, page="\n".join(lines), seen=seen)

    def _moved(self, sources: Any) -> str:
        """Return which cited notice has another number now, "" for none."""
        if not (sources and self._world.moved):
            return ""
        last = max(notice.day for notice in self._world.notices)
        moved = dict(self._world.moved) if self.state.day > last else {}
        lines = [f"{old} is now {moved[old]}" for old in sources if old in moved]
        return f"Cite anew: notice {', notice '.join(lines)}." if lines else ""

    def _matching_notices(self, query: str) -> str:
        """Return the notices that hold every word of a query, first issued first."""
        words = query.lower().split()
        lines = [notice_line(self._world, notice) for notice in self._world.notices]
        hits = [line for line in lines if all(word in line.lower() for word in words)]
        more = f"\n.. and {len(hits) - _FOUND} more" if len(hits) > _FOUND else ""
        return ("\n".join(hits[:_FOUND]) + more) if hits else "No notice holds these."

    def _open_notice(self, number: int) -> ToolResult:
        notice = self.state.script.register.by_number.get(number)
        if notice is None:
            return ToolResult(f"There is no notice {number}.", False, _CARD_MS)
        return ToolResult(notice_line(self._world, notice), True, _CARD_MS)


def _belief_events(card: Card, p: float, marked: Mark, now_ms: int, step: int) -> tuple[Event, ...]:
    """Return what was stated of an answer, and whether it was right."""
    belief = Belief(step=step, at_ms=now_ms, proposition=card.name, kind=_OWN, p=fixed(p))
    right = marked.score == 1.0
    return belief, Resolution(proposition=card.name, kind=_OWN, y=right)

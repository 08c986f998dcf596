"""Where an agent that plays from outside meets the loop: calls in, results out.

The loop asks its agent for the next action; a client asks its server for the result of
a call. Both ask, so they meet at a desk: the loop's question waits for a client's call,
and the call's answer is the loop's next question. The loop runs in a thread of its own.
"""

import queue
import threading
from concurrent.futures import Future
from typing import Any, NamedTuple

import msgspec

from owa_bench.errors import AgentRaised, AgentTimeout
from owa_bench.interfaces import Brief, ToolSpec
from owa_bench.run.agents.protocol import (
    ActRequest,
    AgentReply,
    AgentRequest,
    ResetRequest,
)
from owa_bench.run.play.loop import RunStopped

ENDED = "The episode has ended."
NEXT = f"{ENDED} The next one begins."
NEW_SESSION = "A new session begins."
ALL_PLAYED = "Every episode of this run has been played."
TOO_LATE = "This call came after the episode had ended and was not played."


class Answer(NamedTuple):
    """What a client's call brought."""

    text: str
    error: bool = False


class _Call(NamedTuple):
    """A client's call that waits for its answer."""

    action: str
    answer: Future[Answer]


class Desk:
    """Takes calls from clients, one after the other, for the one running episode."""

    def __init__(self) -> None:
        self._calls: queue.Queue[_Call | None] = queue.Queue()
        self._open: _Call | None = None
        self._opened = threading.Event()
        self._met = threading.Event()
        self._left = False
        self._over = False
        self._unheard: Answer | None = None
        self._lock = threading.Lock()
        self.brief = Brief(text="", goal={})
        self.tools: tuple[ToolSpec, ...] = ()

    # --- the client's side --------------------------------------------------------

    def call(self, tool: str, arguments: dict[str, Any] | None) -> Answer:
        """Play one tool call and return what it brought; blocks until it is played."""
        self.meet()
        action = msgspec.json.encode({"tool": tool, "arguments": arguments or {}})
        call = _Call(action.decode(), Future())
        with self._lock:
            if self._over:
                return Answer(ALL_PLAYED, error=True)
            news, self._unheard = self._unheard, None
            if news is not None:
                return news
            self._calls.put(call)
        return call.answer.result()

    def meet(self) -> None:
        """Note that a client is there: from now on its deadlines count."""
        self._met.set()

    def leave(self) -> None:
        """Say that no more calls come."""
        self._left = True
        self._met.set()
        self._calls.put(None)

    def wait_open(self, timeout_s: float) -> bool:
        """Return whether an episode (or the end of the run) has come by then."""
        return self._opened.wait(timeout_s)

    # --- the loop's side ----------------------------------------------------------

    def seat(self) -> "DeskLine":
        """Return the line of one sitting."""
        return DeskLine(self)

    def begin(self, terms: ResetRequest) -> None:
        """Begin a sitting, and tell whoever has played the one before.

        That is the call still open; where none is (the client was too slow), the next
        call hears of it in place of being played.
        """
        self.brief, self.tools = terms.brief, terms.tools
        self._refuse_waiting()
        news = f"{NEW_SESSION if terms.brief.session else NEXT}\n\n{self.brief.text}"
        if self._open is not None:
            self._settle(Answer(news))
        elif self._opened.is_set():
            with self._lock:
                self._unheard = Answer(f"{TOO_LATE} {news}", error=True)
        self._opened.set()

    def next(self, seen: ActRequest, deadline_s: float, *, first: bool) -> str:
        """Answer the open call and return the next one's action.

        Errors: AgentTimeout; AgentRaised if the client left in mid-episode, Stopped
        if it left before.
        """
        self._settle(Answer(str(seen.observation["text"]), "error" in seen.info))
        self._met.wait()
        try:
            call = None if self._left else self._calls.get(timeout=deadline_s)
        except queue.Empty as error:
            raise AgentTimeout(
                f"the client made no call within {deadline_s:g} s"
            ) from error
        if call is None:
            if first:
                raise RunStopped
            raise AgentRaised("the client left before it had ended the episode")
        self._open = call
        return call.action

    def close(self) -> None:
        """End the run: whoever still waits is told."""
        with self._lock:
            self._over = True
        self._settle(Answer(f"{ENDED} {ALL_PLAYED}"))
        self._refuse_waiting()
        self._opened.set()

    def _settle(self, answer: Answer) -> None:
        if self._open is not None:
            self._open.answer.set_result(answer)
            self._open = None

    def _refuse_waiting(self) -> None:
        while not self._calls.empty():
            call = self._calls.get()
            if call is not None:
                call.answer.set_result(Answer(TOO_LATE, error=True))


class DeskLine:
    """The loop's line to whoever plays at the desk, for one sitting."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._first = True

    def ask(self, request: AgentRequest, deadline_s: float) -> AgentReply:
        """Return the reply; what a client declares beside its calls is unknown."""
        if request.reset is not None:
            self._desk.begin(request.reset)
        elif request.act is not None:
            first, self._first = self._first, False
            action = self._desk.next(request.act, deadline_s, first=first)
            return AgentReply(action=action)
        return AgentReply()

    def end(self) -> None:
        """End nothing: the client stays for the next episode."""

"""Tool calls of an external client, handed to the episode loop one by one.

The loop asks its agent for the next action; a client asks its server for the result of a call. The
loop's question waits for a client's call, and the call's result is in the loop's next question. The
loop runs in a thread of its own.
"""

import queue
import threading
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from owa_bench.agents.language_model.conversation import task_prompt
from owa_bench.errors import AgentRaised, AgentTimeout
from owa_bench.hosting import protocol
from owa_bench.interfaces import Brief, ToolSpec
from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan.request import Progress, Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.play.batch import RunSummary
from owa_bench.runs.play.loop import RunStopped

ENDED = "The episode has ended."
NEXT = f"{ENDED} The next one begins."
NEW_SESSION = "A new session begins."
ALL_PLAYED = "Every episode of this run has been played."
TOO_LATE = "This call came after the episode had ended and was not played."
ABOUT = """\
Each tool call is one step of a recorded, scored episode. End it with `finish` (state \
p, how probable it is that the work is right) or `declare_infeasible`. When an episode \
ends and another follows, its task comes with the last result; the tool `brief` always \
returns the present one and is no step. The task:

"""
BRIEF = "brief"
_READ_FIRST = "Your task: call this before any other tool; it is no step. It says: "
_MAX_ABOUT = 1024  # characters that chat endpoints take as a tool's description
_LEFT = "the client left before it had ended the episode"
_CUT = ".. (call it for the rest)"


class ClientResult(NamedTuple):
    """Result of a client's call; `ended` if its episode is over."""

    text: str
    error: bool = False
    ended: bool = False


class _Call(NamedTuple):
    """A client's call that waits for its result; no action: the episode is given up."""

    action: str | None
    result: Future[ClientResult]


class ClientCalls:
    """Calls of clients, one after the other, for the one running episode."""

    def __init__(self) -> None:
        self._calls: queue.Queue[_Call | None] = queue.Queue()
        self._open: _Call | None = None
        self._opened = threading.Event()
        self._connected = threading.Event()
        self._left = False
        self._last: str | None = None
        self._missed: ClientResult | None = None
        self._lock = threading.Lock()
        self.brief = Brief(text="", goal={})
        self.tools: tuple[ToolSpec, ...] = ()
        self.begun = 0

    # --- the client's side --------------------------------------------------------

    @property
    def task(self) -> str:
        """The present episode's task with its limits, and how episodes are played."""
        return ABOUT + task_prompt(self.brief)

    @property
    def offered(self) -> tuple[ToolSpec, ...]:
        """The tool `brief`, whose description begins the task, then the episode's.

        A suite's own tool of that name takes its place.
        """
        if any(tool.name == BRIEF for tool in self.tools):
            return self.tools
        about = _READ_FIRST + self.brief.text
        if len(about) > _MAX_ABOUT:
            about = about[: _MAX_ABOUT - len(_CUT)] + _CUT
        nothing = {"type": "object", "properties": {}, "additionalProperties": False}
        return (ToolSpec(name=BRIEF, about=about, parameters=nothing), *self.tools)

    def call(self, tool: str, arguments: dict[str, Any] | None) -> ClientResult:
        """Play one tool call; blocks until it is played.

        `brief` is answered without a step; the loop never sees it.

        Args:
            tool: name of the tool.
            arguments: of the call; None for none.
        Returns: The result.
        """
        self.connect()
        action = msgspec.json.encode({"tool": tool, "arguments": arguments or {}})
        call = _Call(action.decode(), Future())
        with self._lock:
            if self._last is not None:
                return ClientResult(self._last, error=True, ended=True)
            if tool == BRIEF and self.offered is not self.tools:
                return ClientResult(self.task)
            missed, self._missed = self._missed, None
            if missed is not None:
                return missed
            self._calls.put(call)
        return call.result.result()

    def is_open(self, episode: int) -> bool:
        """Return whether an episode, by `begun` when it was open, still is."""
        return self._last is None and self.begun == episode

    def give_up(self, episode: int) -> None:
        """Fail an episode, if it is still open, and wait for its end.

        Args:
            episode: which, by `begun` when it was open.
        """
        self.connect()
        with self._lock:
            self._missed = None
            if not self.is_open(episode):
                return
            call = _Call(None, Future())
            self._calls.put(call)
        call.result.result()

    def connect(self) -> None:
        """Note that a client is there: from now on its deadlines count."""
        self._connected.set()

    def disconnect(self) -> None:
        """Say that no more calls come."""
        self._left = True
        self._connected.set()
        self._calls.put(None)

    def wait_open(self, timeout_s: float) -> bool:
        """Return whether an episode (or the end of the run) has come by then."""
        return self._opened.wait(timeout_s)

    # --- the loop's side ----------------------------------------------------------

    def transport(self) -> "ClientTransport":
        """Return the loop's connection for one episode or session."""
        return ClientTransport(self)

    def begin(self, request: protocol.ResetRequest) -> None:
        """Begin an episode or session, and announce it to the client.

        The open call gets the announcement as its result; where none is open (the client was too
        slow), the next call gets it and is not played.
        """
        ended = not request.brief.session
        with self._lock:
            self.brief, self.tools = request.brief, request.tools
            self.begun += ended
        self._refuse_waiting()
        news = f"{NEXT if ended else NEW_SESSION}\n\n{task_prompt(self.brief)}"
        if self._open is not None:
            self._finish_open(ClientResult(news, ended=ended))
        elif self._opened.is_set():
            with self._lock:
                self._missed = ClientResult(f"{TOO_LATE} {news}", True, ended)
        self._opened.set()

    def next_action(self, request: protocol.ActRequest, deadline_s: float, *, first: bool) -> str:
        """Give the open call its result and return the next one's action.

        Args:
            request: the loop's, with the last observation.
            deadline_s: for the next call, s.
            first: whether the episode has had no call yet.
        Returns: The action, as JSON text.
        Raises:
            AgentTimeout: no call came in time.
            AgentRaised: the client disconnected within the episode.
            RunStopped: it disconnected before the episode's first call.
        """
        self._finish_open(ClientResult(str(request.observation["text"]), "error" in request.info))
        self._connected.wait()
        try:
            call = None if self._left else self._calls.get(timeout=deadline_s)
        except queue.Empty as error:
            raise AgentTimeout(f"the client made no call within {deadline_s:g} s") from error
        if call is None:
            if first:
                raise RunStopped
            raise AgentRaised(_LEFT)
        self._open = call
        if call.action is None:
            raise AgentRaised(_LEFT)
        return call.action

    def close(self, last: str = ALL_PLAYED) -> None:
        """End the run: every waiting call gets a result.

        Args:
            last: what the open call and all that come after it are answered.
        """
        with self._lock:
            self._last = last
        self._finish_open(ClientResult(f"{ENDED} {last}", ended=True))
        self._refuse_waiting()
        self._opened.set()

    def _finish_open(self, result: ClientResult) -> None:
        if self._open is not None:
            self._open.result.set_result(result)
            self._open = None

    def _refuse_waiting(self) -> None:
        while not self._calls.empty():
            call = self._calls.get()
            if call is not None:
                call.result.set_result(ClientResult(TOO_LATE, True, True))


class ClientTransport:
    """The loop's connection to the clients, for one episode or session."""

    def __init__(self, calls: ClientCalls) -> None:
        self._client_calls = calls
        self._first = True

    def ask(self, request: protocol.AgentRequest, deadline_s: float) -> protocol.AgentReply:
        """Return the agent's reply: the action of the client's next call.

        Args:
            request: the loop's.
            deadline_s: for the next call, s.
        Returns: The reply; it declares nothing beside the action.
        """
        if request.reset is not None:
            self._client_calls.begin(request.reset)
        elif request.act is not None:
            first, self._first = self._first, False
            action = self._client_calls.next_action(request.act, deadline_s, first=first)
            return protocol.AgentReply(action=action)
        return protocol.AgentReply()

    def end(self) -> float:
        """End nothing: the client stays for the next episode."""
        return 0.0


# --- a run with such an agent: the loop in a thread, results at its end ---------------


POLL_S = 0.1
_STOPPED = "The run has stopped before every episode was played."


class ClientRun(threading.Thread):
    """The thread in which the loop plays what clients call.

    Results are told when every episode has been played: before, a client could try an answer in one
    episode and correct it in the next.
    """

    def __init__(
        self, calls: ClientCalls, request: Request | None, out: Path, options: RunOptions
    ) -> None:
        super().__init__(name="owa-bench-play", daemon=True)
        self._calls = calls
        self._request = request
        self._out = out
        self._options = replace(options, client=calls.transport, progress=self._take)
        self._error: BaseException | None = None
        self.done: list[Progress] = []

    def run(self) -> None:
        """Play to the end of the run, or until the client has left."""
        last = _STOPPED
        try:
            if self._request is None:
                batch.resume(self._out, self._options)
            else:
                batch.play(self._request, self._out, self._options)
            last = self._results()
        except RunStopped:
            return
        except BaseException as error:  # noqa: BLE001  raised again where it is seen
            self._error = error
        finally:
            self._calls.close(last)

    def wait_for_episode(self) -> bool:
        """Return whether there is an episode to serve; waits until that is known."""
        while not self._calls.wait_open(POLL_S):
            if not self.is_alive():
                return False
        return bool(self._calls.tools)

    def summary(self) -> RunSummary:
        """Return what the run directory holds; raises what playing raised."""
        if self._error is not None:
            raise self._error
        return batch.summary(RunLayout(self._out))

    def _take(self, progress: Progress) -> None:
        """Keep an episode that was played to its end."""
        if progress.leaf.status == "complete":
            self.done.append(progress)

    def _results(self) -> str:
        """Return how the episodes of this process ended, once all are played."""
        if not self.done or self.done[-1].done < self.done[-1].total:
            return _STOPPED
        lines = [
            f"{one.entry.family}: {one.end.outcome}, "
            f"{'success' if one.end.success else 'no success'}, "
            f"q_state {one.end.q_state:.3f} ({one.end.reason})"
            for one in self.done
        ]
        return "\n".join([ALL_PLAYED, *lines])

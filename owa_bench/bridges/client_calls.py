"""Tool calls of an external client, handed to the episode loop one by one.

The loop asks its agent for the next action; a client asks its server for the result of
a call. The loop's question waits for a client's call, and the call's result is in the
loop's next question. The loop runs in a thread of its own.
"""

import queue
import threading
from concurrent.futures import Future
from typing import Any, NamedTuple

import msgspec

from owa_bench.errors import AgentRaised, AgentTimeout
from owa_bench.interfaces import Brief, ToolSpec
from owa_bench.run.agents import protocol
from owa_bench.run.play.loop import RunStopped

ENDED = "The episode has ended."
NEXT = f"{ENDED} The next one begins."
NEW_SESSION = "A new session begins."
ALL_PLAYED = "Every episode of this run has been played."
TOO_LATE = "This call came after the episode had ended and was not played."


class ClientResult(NamedTuple):
    """Result of a client's call."""

    text: str
    error: bool = False


class _Call(NamedTuple):
    """A client's call that waits for its result."""

    action: str
    result: Future[ClientResult]


class ClientCalls:
    """Calls of clients, one after the other, for the one running episode."""

    def __init__(self) -> None:
        self._calls: queue.Queue[_Call | None] = queue.Queue()
        self._open: _Call | None = None
        self._opened = threading.Event()
        self._connected = threading.Event()
        self._left = False
        self._over = False
        self._missed: ClientResult | None = None
        self._lock = threading.Lock()
        self.brief = Brief(text="", goal={})
        self.tools: tuple[ToolSpec, ...] = ()

    # --- the client's side --------------------------------------------------------

    def call(self, tool: str, arguments: dict[str, Any] | None) -> ClientResult:
        """Play one tool call; blocks until it is played.

        Args:
            tool: name of the tool.
            arguments: of the call; None for none.

        Returns:
            The result.
        """
        self.connect()
        action = msgspec.json.encode({"tool": tool, "arguments": arguments or {}})
        call = _Call(action.decode(), Future())
        with self._lock:
            if self._over:
                return ClientResult(ALL_PLAYED, error=True)
            missed, self._missed = self._missed, None
            if missed is not None:
                return missed
            self._calls.put(call)
        return call.result.result()

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

        The open call gets the announcement as its result; where none is open (the
        client was too slow), the next call gets it and is not played.
        """
        self.brief, self.tools = request.brief, request.tools
        self._refuse_waiting()
        news = f"{NEW_SESSION if request.brief.session else NEXT}\n\n{self.brief.text}"
        if self._open is not None:
            self._finish_open(ClientResult(news))
        elif self._opened.is_set():
            with self._lock:
                self._missed = ClientResult(f"{TOO_LATE} {news}", error=True)
        self._opened.set()

    def next_action(
        self, request: protocol.ActRequest, deadline_s: float, *, first: bool
    ) -> str:
        """Give the open call its result and return the next one's action.

        Args:
            request: the loop's, with the last observation.
            deadline_s: for the next call, s.
            first: whether the episode has had no call yet.

        Returns:
            The action, as JSON text.

        Raises:
            AgentTimeout: no call came in time.
            AgentRaised: the client disconnected within the episode.
            RunStopped: it disconnected before the episode's first call.
        """
        self._finish_open(
            ClientResult(str(request.observation["text"]), "error" in request.info)
        )
        self._connected.wait()
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
        """End the run: every waiting call gets a result."""
        with self._lock:
            self._over = True
        self._finish_open(ClientResult(f"{ENDED} {ALL_PLAYED}"))
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
                call.result.set_result(ClientResult(TOO_LATE, error=True))


class ClientTransport:
    """The loop's connection to the clients, for one episode or session."""

    def __init__(self, calls: ClientCalls) -> None:
        self._client_calls = calls
        self._first = True

    def ask(
        self, request: protocol.AgentRequest, deadline_s: float
    ) -> protocol.AgentReply:
        """Return the agent's reply: the action of the client's next call.

        Args:
            request: the loop's.
            deadline_s: for the next call, s.

        Returns:
            The reply; it declares nothing beside the action.
        """
        if request.reset is not None:
            self._client_calls.begin(request.reset)
        elif request.act is not None:
            first, self._first = self._first, False
            action = self._client_calls.next_action(
                request.act, deadline_s, first=first
            )
            return protocol.AgentReply(action=action)
        return protocol.AgentReply()

    def end(self) -> None:
        """End nothing: the client stays for the next episode."""

"""A page in a browser for a person: one local HTTP server, one page, no network.

The page lies under a path that only this command prints, on the loopback interface. It asks for the
view and posts answers; what the episode is stands in this process alone.
"""

import secrets
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, Literal

import msgspec

from owa_bench.bridges.person import PersonLeaves, PersonView, ToolDesk
from owa_bench.errors import AgentTimeout, UsageError

_HOST = "127.0.0.1"
_LONGEST_BODY = 1_000_000  # bytes of a posted answer
_POLL_S = 20.0  # how long a request for news waits
_LINGER_S = 1.0  # after the last episode, so that the page hears of it
_DRIVEN = (
    "This browser is driven by a program. A person plays in a browser of their own; "
    "a program in a person's place is declared with --scripted."
)
PagePhase = Literal["wait", "begin", "act", "paused", "over"]


class PageAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the page posts; `serial` is that of the state it was shown.

    `driven` is what the browser says of itself (`navigator.webdriver`).
    """

    serial: int
    kind: Literal["begin", "leave", "act", "pause", "go on"]
    tool: str = ""
    texts: dict[str, str] = {}
    driven: bool = False


class PageState(msgspec.Struct, frozen=True, kw_only=True):
    """What the page is to show; a paused page is told nothing of the episode."""

    serial: int = 0
    phase: PagePhase = "wait"
    view: PersonView | None = None


class PageScreen:
    """A page that shows one person the episodes; a context manager.

    Args:
        port: Where the server listens; 0: any free port.
        scripted: Whether a browser that a program drives may answer.
    Raises: UsageError: Nothing can listen at the port.
    """

    def __init__(self, port: int, *, scripted: bool = False) -> None:
        self._scripted = scripted
        self._changed = threading.Condition()
        self._state = PageState()
        self._answer: str | None = None  # an action, "" for begin
        self._desk = ToolDesk(())
        self._left = False
        try:
            self._server = _PageServer(self, port)
        except OSError as error:
            raise UsageError(
                f"Port {port} of {_HOST} cannot be listened at: {error.strerror}. "
                "Name another with --port (0: any free one)."
            ) from error
        self.url = f"http://{_HOST}:{self._server.server_port}{self._server.path}"

    def __enter__(self) -> "PageScreen":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._publish("over", None)
        time.sleep(_LINGER_S)
        self._server.shutdown()
        self._server.server_close()

    # --- the loop's side --------------------------------------------------------------

    def begin(self, view: PersonView) -> None:
        """Show an empty page, and wait until the person begins."""
        self._publish("begin", view)
        self._wait(None)

    def ask(self, view: PersonView, desk: ToolDesk, deadline_s: float) -> str:
        """Return the person's next action.

        Args: as `PersonScreen.ask`. Returns: the action as JSON text.
        """
        self._desk = desk
        self._publish("act", view)
        return self._wait(deadline_s)

    def _publish(self, phase: PagePhase, view: PersonView | None) -> None:
        with self._changed:
            serial = self._state.serial + 1
            self._state = PageState(serial=serial, phase=phase, view=view)
            self._changed.notify_all()

    def _wait(self, deadline_s: float | None) -> str:
        """Return the next answer; the deadline stands still while paused."""
        used_s, tick = 0.0, 0.5
        with self._changed:
            while self._answer is None and not self._left:
                began = time.monotonic()
                self._changed.wait(tick)
                if self._state.phase != "paused":
                    used_s += time.monotonic() - began
                if deadline_s is not None and used_s > deadline_s:
                    raise AgentTimeout(f"the person did not act within {deadline_s:g} s")
            answer, self._answer = self._answer, None
            if answer is None:
                raise PersonLeaves
            return answer

    # --- the page's side --------------------------------------------------------------

    def news(self, after: int, patience_s: float = _POLL_S) -> PageState:
        """Return the state once its serial is another one, or after a while.

        Args:
            after: Serial that the page knows.
            patience_s: Most seconds to wait.
        Returns: The state as the page may know it.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._state.serial != after, patience_s)
            state = self._state
        if state.phase == "paused" and state.view is not None:
            bare = PersonView(page=state.view.page, title=state.view.title)
            return msgspec.structs.replace(state, view=bare)
        return state

    def take(self, answer: PageAnswer) -> str:
        """Take what the page posts; return why it is refused, "" if it is not."""
        if answer.driven and not self._scripted:
            return _DRIVEN
        with self._changed:
            state, action = self._state, ""
            if answer.serial != state.serial:
                return "The page was not up to date; nothing was played."
            if answer.kind == "act" and state.phase == "act":
                try:
                    action = self._desk.filled_in(answer.tool, answer.texts)
                except UsageError as error:
                    return str(error)
            phase = _NEXT.get((state.phase, answer.kind))
            if phase is None:
                return f"`{answer.kind}` has no meaning now."
            self._left = self._left or answer.kind == "leave"
            if phase == "wait" and not self._left:
                self._answer = action
            self._state = PageState(serial=state.serial + 1, phase=phase, view=state.view)
            self._changed.notify_all()
        return ""


_NEXT: Mapping[tuple[PagePhase, str], PagePhase] = {
    ("begin", "begin"): "wait",
    ("begin", "leave"): "wait",
    ("act", "act"): "wait",
    ("act", "pause"): "paused",
    ("paused", "go on"): "act",
}


class _PageServer(ThreadingHTTPServer):
    """Serves one screen under a path that nobody can guess."""

    daemon_threads = True

    def __init__(self, screen: PageScreen, port: int) -> None:
        super().__init__((_HOST, port), _PageRequest)
        self.screen = screen
        self.path = f"/{secrets.token_urlsafe(16)}/"
        nonce = secrets.token_urlsafe(16)
        page = files("owa_bench.bridges").joinpath("person_page.html")
        self.page = page.read_text("utf-8").replace("NONCE", nonce).encode()
        self.policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; connect-src 'self'; "
            f"style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )


class _PageRequest(BaseHTTPRequestHandler):
    """A request for the page or its news, or an answer; all else is 404."""

    server: _PageServer

    def do_GET(self) -> None:
        """Serve the page, or the state once it is news."""
        path, _, query = self.path.partition("?")
        if path == self.server.path:
            self._reply(self.server.page, "text/html; charset=utf-8")
        elif path == f"{self.server.path}news" and query.isdigit():
            self._json(self.server.screen.news(int(query)))
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """Take an answer."""
        length = self.headers.get("Content-Length", "")
        if self.path != f"{self.server.path}answer":
            self.send_error(HTTPStatus.NOT_FOUND)
        elif not length.isdigit() or int(length) > _LONGEST_BODY:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            self._json({"refused": self._refusal(self.rfile.read(int(length)))})

    def log_message(self, *_: Any) -> None:
        """Write nothing: the terminal is the person's."""

    def _refusal(self, body: bytes) -> str:
        try:
            answer = msgspec.json.decode(body, type=PageAnswer)
        except msgspec.DecodeError as error:
            return str(error)
        return self.server.screen.take(answer)

    def _json(self, document: Any) -> None:
        self._reply(msgspec.json.encode(document), "application/json")

    def _reply(self, body: bytes, kind: str) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", self.server.policy)
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(body)

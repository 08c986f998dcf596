"""Session of ChangeSurf: one episode's browser on one served site.

The browser starts when the task is first asked for, so that listing tools costs nothing. Every
answer holds the page's text; a refused input says why and comes first.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from starlette.types import ASGIApp
from typing_extensions import override

from owa_bench.canonical import sha256
from owa_bench.envs.changesurf import spaces
from owa_bench.envs.changesurf.browser.driver import (
    ActionResult,
    BrowserAction,
    BrowserExchange,
    BrowserTarget,
    Driver,
)
from owa_bench.envs.changesurf.browser.loopback import ForwardingApp
from owa_bench.envs.changesurf.browser.observation import BLANK_PAGE, SurfState, page_text
from owa_bench.envs.changesurf.episode_artifacts import REFUSED, SHOWN, ArtifactRecorder
from owa_bench.envs.changesurf.magnitude import timeline_change
from owa_bench.envs.changesurf.server.app import SiteServer
from owa_bench.envs.changesurf.server.sign_in import (
    act_ms,
    credentials,
    is_waiting,
    secrets,
    sign_in_code,
)
from owa_bench.envs.changesurf.server.state import commits
from owa_bench.envs.changesurf.spaces import TOOLS
from owa_bench.envs.changesurf.world import SiteWorld
from owa_bench.errors import UsageError
from owa_bench.interfaces import Session, Sink, Task, ToolResult
from owa_bench.records.events import Event, RealisedDrift
from owa_bench.records.instance import Timeline
from owa_bench.shells.loopback import LoopbackServer

_RULES = (
    "See on a page what your answer rests on, and press yourself. A right answer that "
    "no page had shown disqualifies the episode, and so does a script that presses for "
    "you."
)
# The argument that each tool of the browser hands to its action, "" for none.
_ARGUMENTS = {
    "click": "",
    "type": "text",
    "select": "option",
    "press": "key",
    "scroll": "direction",
    "back": "",
    "goto": "address",
    "wait": "",
}
_TYPED = ("type", "goto")  # tools whose text is typed key by key
TEXT_ROOM = 3_900  # characters of an answer; the shell's own limit is a little above
_LOOK_MS = 50
_NAMED = re.compile(r"`([^`]+)`|\b([A-Z]-\d+)\b")


class ChangeSurfSession(Session):
    """Brings a timeline's first world to life behind a browser."""

    tools = TOOLS
    process = "a browser"

    def __init__(
        self, timeline: Timeline, *, sink: Sink, driver: Driver, wire: bool = False
    ) -> None:
        self._timeline = timeline
        self._sink = sink
        self._driver = driver
        self._wire = wire
        self._socket: LoopbackServer | None = None
        self._world: SiteWorld = timeline.worlds[0]
        self._server: SiteServer | None = None
        self._page = BLANK_PAGE
        self._outside: tuple[str, ...] = ()
        self._untrusted = 0
        self._artifacts = ArtifactRecorder(driver, sink)
        self._state: SurfState | None = None
        self._warned = False

    # --- what the shell asks ----------------------------------------------------------

    @property
    def task(self) -> Task:
        """The task with the first page."""
        self._start()
        spec = self._world.spec
        questions = {p.name: p.text for p in spec.propositions}
        lines = [spec.goal.text, f"Today is {spec.today}.", ""]
        credentials = self._credentials()
        lines += [f"{label}: {value}" for label, value in credentials]
        lines += ["", _RULES, "", "The browser shows:", ""]
        text = "\n".join(lines)
        used = len(text) + sum(len(name) + len(q) + 5 for name, q in questions.items())
        goal = {
            "family": spec.goal.family,
            "arguments": dict(spec.goal.arguments),
            "credentials": dict(credentials),
            "today": spec.today,
        }
        room = max(TEXT_ROOM - used - 100, 600)
        return Task(text + page_text(self._page, room=room), goal, questions)

    @property
    def state(self) -> SurfState:
        """Everything that has happened, frozen."""
        site = self._start().state
        known = self._state
        if known is None or known.site is not site or known.page is not self._page:
            self._state = known = SurfState(
                site=site, page=self._page, outside=self._outside, untrusted=self._untrusted
            )
        return known

    @override
    def call(
        self, tool: str, arguments: Mapping[str, Any], *, now_ms: int, step: int
    ) -> ToolResult:
        """Run a tool; what is wrong with its arguments is its answer.

        Returns: The page's text, with the events of the call.
        """
        if tool == "read":
            return self._read(arguments["line"])
        if tool not in _ARGUMENTS:
            raise UsageError(f"`tool` must be one of {', '.join(_ARGUMENTS)}, got {tool!r}.")
        server = self._start()
        text = str(arguments.get(_ARGUMENTS[tool], ""))
        waited = act_ms(text if tool in _TYPED else "")
        if tool == "wait":
            waited = round(arguments["seconds"] * 1000)
        server.at(now_ms + waited)
        action_key = self._action_key(arguments)
        before = server.state
        op: Any = "look" if tool == "wait" else tool
        seen = self._driver.act(BrowserAction(op, arguments.get("ref", 0), text))
        self._take(seen)
        fresh = self._fresh_requests(now_ms)
        refused = any(e.kind in SHOWN and e.status >= REFUSED for e in fresh)
        return ToolResult(
            text=self._answer(seen),
            ok=not seen.refusal and not refused,
            elapsed_ms=waited + server.elapsed_ms,
            digest=sha256(f"{seen.refusal}|{self._page.digest()}".encode()),
            events=self._artifacts.of_step(seen, fresh, step),
            action_key=action_key,
            waiting=is_waiting(before, server.state, waits=tool == "wait"),
        )

    @override
    def finish_refusal(self, arguments: Mapping[str, Any]) -> str:
        """Return why `finish` does not end the episode yet, "" where it does.

        An answer in its words alone would be lost, so the first call whose words hold a digit while
        nothing was sent on the site is refused.
        """
        site = self.state.site
        data = any(c.isdigit() for c in arguments.get("answer", ""))
        if self._warned or commits(site) or not data:
            return ""
        self._warned = True
        return (
            "Nothing was sent on the site yet: `answer` is not judged, what the site "
            "holds is. Call finish again to end all the same."
        )

    @override
    def enter(self, world: SiteWorld, *, now_ms: int) -> None:
        """Apply a drift event; the open page stays until it is left."""
        server = self._start()
        self._world = world
        server.enter(world)
        server.at(now_ms)
        self._driver.serve(self._transport(server.app))

    @override
    def features(self) -> npt.NDArray[np.float32]:
        self._start()
        return spaces.features(self._page, self._arguments())

    @override
    def macros(self) -> tuple[Mapping[str, Any] | None, ...]:
        self._start()
        return spaces.macros(self._page, self._arguments())

    @override
    def final_events(self, *, step: int) -> tuple[Event, ...]:
        """Return the HAR, the last picture, and the manifest of all that was left.

        First come the requests that a page made after it was last looked at.
        """
        if self._server is None:
            return ()
        late = self._fresh_requests(self._server.state.now_ms)
        effect = self._drift_effect(step) if self._sink.active else ()
        return self._artifacts.at_end(late, effect, step)

    def _drift_effect(self, step: int) -> tuple[Event, ...]:
        """Return the effect of the drift on the rendered site."""
        drifted = self._timeline.instance.drift_step > 0
        found = timeline_change(self._timeline) if drifted else None
        if found is None:
            return ()
        measures = tuple((name, float(x)) for name, x in found._asdict().items())
        return (RealisedDrift(step=step, measures=measures),)

    def picture(self) -> bytes:
        """Return a JPEG of the window."""
        self._start()
        return self._driver.picture()

    def tree(self) -> bytes:
        """Return the accessibility tree of the page."""
        self._start()
        return self._driver.tree()

    @override
    def close(self) -> None:
        """Release the page and the site."""
        self._driver.close()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._server is not None:
            self._server.close()
            self._server = None

    # --- inside -----------------------------------------------------------------------

    def _start(self) -> SiteServer:
        """Return the site's server, with the browser on its first page."""
        if self._server is None:
            server = SiteServer(self._world, instance=self._timeline.instance)
            self._register_secrets()
            server.at(0)
            width, height = self._world.plan.viewport
            hosts = frozenset(server.hosts)
            place = BrowserTarget(
                self._transport(server.app), hosts, server.start_url, width, height
            )
            self._server = server
            self._take(self._driver.open(place))
            self._fresh_requests(0)
            self._artifacts.begin()
        return self._server

    def _transport(self, app: ASGIApp) -> ASGIApp:
        """Return the app itself or, over loopback, one that asks it by a socket."""
        if not self._wire:
            return app
        if self._socket is None:
            self._socket = LoopbackServer(app, guarded=True)
        self._socket.app = app
        return ForwardingApp(self._socket)

    def _register_secrets(self) -> None:
        """Tell the sink what no record may hold."""
        auths = [world.plan.auth for world in self._timeline.worlds]
        for name, value in secrets(auths):
            self._sink.secret(f"site:{name}", value)

    def _credentials(self) -> tuple[tuple[str, str], ...]:
        """Return what the visitor was given to sign in with, whatever strikes when."""
        auths = (world.plan.auth for world in self._timeline.worlds)
        given = (pair for auth in auths for pair in credentials(auth))
        return tuple(dict(given).items())

    def _arguments(self) -> tuple[str, ...]:
        """Return the texts that the macros of the vector view can type.

        First what the goal's words name (`Blue room`, T-304), then its arguments, then what signs
        in.
        """
        goal = self._world.spec.goal
        named = [found[1] or found[2] for found in _NAMED.finditer(goal.text)]
        given = [*named, *(text for _, text in goal.arguments)]
        given = [*given, *([""] * spaces.GOALS)][: spaces.GOALS]
        auth = self._start().state.world.plan.auth
        is_listed = auth.kind == "one_time"  # mailed codes are read in the mailbox
        code = sign_in_code(self._start().state) if is_listed else auth.code
        codes = {" ".join(auth.codes): code}
        signing = [codes.get(value, value) for _, value in self._credentials()]
        return (*given, *signing)

    def _take(self, seen: ActionResult) -> None:
        """Make what was seen the page that the state holds."""
        if seen.refusal == "outside":
            self._outside = (*self._outside, seen.reason)
            self._state = None
        if seen.untrusted:
            self._untrusted += seen.untrusted
            self._state = None
        self._page = seen.page

    def _fresh_requests(self, now_ms: int) -> Sequence[BrowserExchange]:
        """Return the requests made since last asked; foreign ones are noted."""
        fresh = self._artifacts.fresh(now_ms)
        denied = tuple(e.url for e in fresh if e.denied)
        if denied:
            self._outside = (*self._outside, *denied)
            self._state = None
        return fresh

    def _answer(self, seen: ActionResult) -> str:
        head = f"error: {seen.reason}\n" if seen.refusal else ""
        if seen.note:
            head += f"note: {seen.note}\n"
        return head + page_text(seen.page, room=TEXT_ROOM - len(head))

    def _read(self, line: int) -> ToolResult:
        self._start()
        text = page_text(self._page, room=TEXT_ROOM, first=line)
        return ToolResult(text, ok=True, elapsed_ms=_LOOK_MS)

    def _action_key(self, arguments: Mapping[str, Any]) -> str:
        """Return a call by its page and the control itself, for the count of repeats.

        A control's number may become another one's; `element` only describes it.
        """
        control = self._page.control(arguments.get("ref", 0))
        named = () if control is None else (control.ident, control.role, control.name)
        given = {k: v for k, v in arguments.items() if k not in ("ref", "element")}
        key = msgspec.json.encode((self._page.url, named, given), order="sorted")
        return key.decode()

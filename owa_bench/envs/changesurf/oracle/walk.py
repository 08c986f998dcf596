"""Walks over HTTP: the oracle's steps without a browser, and the horizon they give.

The visitor reads HTML, finds controls by accessible name and sends forms. It knows no alias: each
control must be on the page exactly once. So a walk that ends well shows that anybody who reads the
site can use it. Realised magnitude is measured on its pages.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode, urljoin

from owa_bench.envs.changesurf.browser import observation
from owa_bench.envs.changesurf.oracle.hints import ControlValue, OracleStep, next_step
from owa_bench.envs.changesurf.server.app import SiteServer
from owa_bench.envs.changesurf.server.sign_in import act_ms
from owa_bench.envs.changesurf.server.state import SiteState
from owa_bench.errors import DriftError
from owa_bench.interfaces import Oracle
from owa_bench.records.instance import Timeline

T = TypeVar("T")
_ROLES = {
    "fill": {"textbox"},
    "select": {"combobox", "listbox"},
    "check": {"checkbox", "switch"},
    "press": {"link", "button", "radio"},
}
_REFUSED = 400  # status from which on a reply says no
_INPUTS = ("input", "select", "textarea")
_LIMIT = 300  # steps; the longest walk at full magnitude takes about a third
_FORM = {"content-type": "application/x-www-form-urlencoded"}
StateFilter = Callable[[SiteState], SiteState | None]


def _unchanged(state: SiteState) -> SiteState | None:
    return state


class WalkPage(NamedTuple):
    """A page on the way: its canonical key and its HTML."""

    page: str
    html: str


class Walk(NamedTuple):
    """A walk: its ending, steps and pages, and the state at the end."""

    ending: str
    steps: tuple[OracleStep, ...]
    pages: tuple[WalkPage, ...]
    state: SiteState


def walk(
    timeline: Timeline, *, limit: int = _LIMIT, state_filter: StateFilter = _unchanged
) -> Walk:
    """Walk through a timeline's first world over HTTP, by the oracle's steps.

    Args:
        timeline: the worlds of an episode.
        limit: the most steps.
        state_filter: changes the state that the oracle reads; None ends the walk.
    Returns: The walk.
    Raises: DriftError: a control is not there, or there twice under one name.
    """
    return _run(_walk(timeline, limit, state_filter))


def horizon(timeline: Timeline, oracle: Oracle, *, limit: int) -> int | None:
    """Return H_t: how many verified actions the oracle takes, without a browser.

    Steps, verification and simulated clock are those of an episode. It takes a tenth of a second,
    where playing takes one or two.

    Args:
        timeline: the worlds of the episode.
        oracle: verifies the actions.
        limit: the most steps.
    Returns: The number, None where only a played episode can tell: where drift strikes in the
        middle, or the walk is lost.
    """
    if len(timeline.worlds) > 1:
        return None
    try:
        return _run(_horizon(timeline, oracle, limit))
    except DriftError:
        return None


def _run(work: Coroutine[Any, Any, T]) -> T:
    # A thread of its own: the caller may stand in a running loop (a notebook's).
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, work).result()


async def _walk(timeline: Timeline, limit: int, state_filter: StateFilter) -> Walk:
    async with HttpWalker(timeline) as walker:
        await walker.load("GET", walker.server.start_url)
        ending = "lost"
        for _ in range(limit):
            state = state_filter(walker.server.state)
            if state is None:
                ending = "done"
                break
            step = next_step(timeline, state, walker.control_values())
            if step.op in ("done", "infeasible"):
                ending = step.op
                break
            await walker.perform(step)
        steps, pages = tuple(walker.steps), tuple(walker.pages)
        return Walk(ending, steps, pages, walker.server.state)


class _WalkState(NamedTuple):
    """The site's state, and what the open page's controls hold."""

    site: SiteState
    controls: tuple[ControlValue, ...]


async def _horizon(timeline: Timeline, oracle: Oracle, limit: int) -> int | None:
    async with HttpWalker(timeline, act_ms=act_ms) as walker:
        await walker.load("GET", walker.server.start_url)
        walker.now_ms = 0  # an episode's clock starts when its first page is there
        state, count = walker.state(), 0
        gained = set(oracle.solved(timeline.worlds[0], state))
        for _ in range(limit):
            step = next_step(timeline, state.site, state.controls)
            if step.op in ("done", "infeasible"):
                return count
            before = state
            await walker.perform(step)
            state = walker.state()
            if walker.status < _REFUSED:
                found = oracle.gained(before, {}, state)
                count += not found <= gained
                gained |= found
        return None


class HttpWalker:
    """One visitor on one site; `root` is the open page.

    `act_ms` gives the simulated time of an input. `status` is that of the reply to the last step, 0
    if it made no request.
    """

    def __init__(self, timeline: Timeline, *, act_ms: Callable[[str], int] = lambda _: 0) -> None:
        import httpx

        self._act_ms = act_ms
        self.server = SiteServer(timeline.worlds[0], instance=timeline.instance)
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self.server.app), follow_redirects=True
        )
        self.steps: list[OracleStep] = []
        self.pages: list[WalkPage] = []
        self.now_ms = 0
        self.status = 0
        self.url = ""
        self.root = observation.HtmlNode("document", {})
        self._values: dict[int, str | bool] = {}

    async def __aenter__(self) -> "HttpWalker":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()
        self.server.close()

    async def load(self, method: str, url: str, data: list[tuple[str, str]] | None = None) -> None:
        """Request a page and read it, frames included.

        Args:
            method: GET or POST.
            url: its address.
            data: the fields of a form.
        """
        self.server.at(self.now_ms)
        sent = None if data is None else urlencode(data).encode()
        headers = None if data is None else _FORM
        reply = await self._client.request(method, url, content=sent, headers=headers)
        self.reply = reply
        self.url, self.status = str(reply.url), reply.status_code
        root, html = observation.parse_html(reply.text), reply.text
        for frame in [n for n in root.elements() if n.role == "iframe"]:
            source = urljoin(self.url, frame.attributes["src"])
            inner = await self._client.get(source)
            frame.children.append(observation.parse_html(inner.text))
            html += inner.text
        self.now_ms += self.server.elapsed_ms
        self.root = root
        self.pages.append(WalkPage(self.server.state.page, html))
        inputs = (node for node in root.elements() if node.tag in _INPUTS)
        self._values = {id(node): initial_value(node) for node in inputs}

    def state(self) -> _WalkState:
        """Return the state that the oracle reads."""
        return _WalkState(self.server.state, self.control_values())

    def control_values(self) -> tuple[ControlValue, ...]:
        """Return what every control on the page holds now."""
        return tuple(self._control_value(node) for node in observation.html_controls(self.root))

    def _control_value(self, node: observation.HtmlNode) -> ControlValue:
        value = self._values.get(id(node), "")
        ident = node.attributes.get("id", "")
        if isinstance(value, bool):
            return ControlValue(ident, "", value)
        if node.tag == "select":
            chosen = (o.text() for o in _options(node) if _sent_value(o) == value)
            return ControlValue(ident, next(chosen, ""), None)
        return ControlValue(ident, value, None)

    def find(self, step: OracleStep) -> observation.HtmlNode:
        """Return the control of a step; DriftError if it is not there exactly once."""
        controls = observation.html_controls(self.root)
        found = [
            node
            for node in controls
            if node.role in _ROLES[step.op]
            and node.name == step.name
            and (not step.group or observation.group_name(node) == step.group)
        ]
        if len(found) != 1:
            names = sorted(node.name for node in controls)
            raise DriftError(
                f"`{step.name}` must be on the page once, got {len(found)} of {names}."
            )
        return found[0]

    async def perform(self, step: OracleStep) -> None:
        """Perform one step."""
        self.steps.append(step)
        self.status = 0
        typed = step.value if step.op in ("fill", "goto") else ""
        self.now_ms += int(step.value) if step.op == "wait" else self._act_ms(typed)
        self.server.at(self.now_ms)
        if step.op == "wait":
            return
        if step.op == "goto":
            await self.load("GET", step.value)
            return
        node = self.find(step)
        if step.op == "fill":
            self._values[id(node)] = step.value
        elif step.op == "check":
            self._values[id(node)] = step.value == "on"
        elif step.op == "select":
            option = next(o for o in _options(node) if o.text() == step.value)
            self._values[id(node)] = _sent_value(option)
        elif node.role == "radio":
            for other in form_of(node).elements():
                if other.attributes.get("name") == node.attributes["name"]:
                    self._values[id(other)] = other is node
        else:
            await self.press(node)

    async def press(self, node: observation.HtmlNode) -> None:
        """Follow a link, or send the form a button is in."""
        if node.role == "link":
            await self.load("GET", urljoin(self.url, node.attributes["href"]))
            return
        form = form_of(node)
        pairs = self.form_data(form)
        if node.attributes.get("name"):
            pairs.append((node.attributes["name"], node.attributes["value"]))
        action = urljoin(self.url, form.attributes["action"])
        if form.attributes["method"] == "get":
            await self.load("GET", f"{action}?{urlencode(pairs)}")
        else:
            await self.load("POST", action, pairs)

    def form_data(self, form: observation.HtmlNode) -> list[tuple[str, str]]:
        """Return what a form would send."""
        pairs: list[tuple[str, str]] = []
        for node in form.elements():
            if node.tag not in _INPUTS or "name" not in node.attributes:
                continue
            value = self._values[id(node)]
            if isinstance(value, str):
                pairs.append((node.attributes["name"], value))
            elif value:
                pairs.append((node.attributes["name"], node.attributes["value"]))
        return pairs


def form_of(node: observation.HtmlNode) -> observation.HtmlNode:
    """Return the form around a control; KeyError without one."""
    form = node.around("form")
    if form is None:
        raise KeyError(node.name)
    return form


def initial_value(node: observation.HtmlNode) -> str | bool:
    """Return what a control holds when its page comes."""
    kind = node.attributes.get("type", "text")
    if node.tag == "input" and kind in ("checkbox", "radio"):
        return "checked" in node.attributes
    if node.tag == "select":
        chosen = [o for o in _options(node) if "selected" in o.attributes]
        if not chosen and node.role == "combobox":
            chosen = _options(node)[:1]
        return _sent_value(chosen[0]) if chosen else ""
    if node.tag == "textarea":
        return "".join(c for c in node.children if isinstance(c, str))
    return node.attributes.get("value", "")


def _options(node: observation.HtmlNode) -> list[observation.HtmlNode]:
    return [n for n in node.elements() if n.tag == "option"]


def _sent_value(option: observation.HtmlNode) -> str:
    return option.attributes.get("value", option.text())

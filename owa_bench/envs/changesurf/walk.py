"""A visitor without a browser: reads HTML, finds controls by name, sends forms.

It knows no alias: what the oracle wants done is looked for among accessible names, and
must be there once. So a walk that ends well shows that a site can be used by anybody
who reads it. The measures of realised magnitude rest on its pages.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple
from urllib.parse import urlencode, urljoin

import httpx

from owa_bench.envs.changesurf import accessible
from owa_bench.envs.changesurf.accessible import Node
from owa_bench.envs.changesurf.app import SiteServer
from owa_bench.envs.changesurf.hints import Deed, deed
from owa_bench.envs.changesurf.state import SiteState
from owa_bench.errors import DriftError
from owa_bench.records.instance import Timeline

_ROLES = {
    "fill": {"textbox"},
    "select": {"combobox", "listbox"},
    "check": {"checkbox", "switch"},
    "press": {"link", "button", "radio"},
}
REFUSED = 400  # status from which on a reply says no
_FILLED = ("input", "select", "textarea")
_LIMIT = 300  # deeds; the longest walk at full magnitude takes about a third
Reading = Callable[[SiteState], SiteState | None]
_FORM = {"content-type": "application/x-www-form-urlencoded"}


class Held(NamedTuple):
    """What a control holds, as a reader of the page knows it."""

    ident: str
    value: str
    checked: bool | None


class Sight(NamedTuple):
    """A page on the way: what it is in canonical words, and its HTML."""

    page: str
    html: str


class Walk(NamedTuple):
    """A whole walk: how it ended, what was done and seen, the state at the end."""

    ended: str
    deeds: tuple[Deed, ...]
    sights: tuple[Sight, ...]
    state: SiteState


def walk(
    timeline: Timeline, *, limit: int = _LIMIT, reading: Reading | None = None
) -> Walk:
    """Return the oracle's walk through a timeline's first world, over HTTP.

    `reading` is how the visitor reads the site's state (what the goal is, what is
    there); where it returns None the visitor is done.

    Errors: DriftError if a control is not there, or there twice under one name.
    """
    # A thread of its own: the caller may stand in a running loop (a notebook's).
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, _walk(timeline, limit, reading)).result()


async def _walk(timeline: Timeline, limit: int, reading: Reading | None) -> Walk:
    async with Walker(timeline) as walker:
        await walker.load("GET", walker.server.start_url)
        ended = "lost"
        for _ in range(limit):
            state = walker.server.state
            read = state if reading is None else reading(state)
            if read is None:
                ended = "done"
                break
            step = deed(timeline, read, walker.held())
            if step.op in ("done", "infeasible"):
                ended = step.op
                break
            await walker.do(step)
        deeds, sights = tuple(walker.deeds), tuple(walker.sights)
        return Walk(ended, deeds, sights, walker.server.state)


class Walker:
    """One visitor on one site; `root` is the page it is at.

    `act_ms` is the simulated time that an input takes. `status` is that of the reply to
    the last deed, 0 if it asked for nothing.
    """

    def __init__(self, timeline: Timeline, *, act_ms: int = 0) -> None:
        self._act_ms = act_ms
        self.server = SiteServer(timeline.worlds[0], instance=timeline.instance)
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self.server.app), follow_redirects=True
        )
        self.deeds: list[Deed] = []
        self.sights: list[Sight] = []
        self.now_ms = 0
        self.status = 0
        self.url = ""
        self.root = Node("document", {})
        self._values: dict[int, str | bool] = {}

    async def __aenter__(self) -> "Walker":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.aclose()
        self.server.close()

    async def load(
        self, method: str, url: str, data: list[tuple[str, str]] | None = None
    ) -> None:
        """Ask for a page and look at it, frames and all."""
        self.server.at(self.now_ms)
        sent = None if data is None else urlencode(data).encode()
        headers = None if data is None else _FORM
        reply = await self.client.request(method, url, content=sent, headers=headers)
        self.url, self.status = str(reply.url), reply.status_code
        root, html = accessible.read(reply.text), reply.text
        for frame in [n for n in root.elements() if n.role == "iframe"]:
            source = urljoin(self.url, frame.attributes["src"])
            inner = await self.client.get(source)
            frame.children.append(accessible.read(inner.text))
            html += inner.text
        self.now_ms += self.server.elapsed_ms
        self.root = root
        self.sights.append(Sight(self.server.state.page, html))
        self._values = {id(n): served(n) for n in root.elements() if n.tag in _FILLED}

    def held(self) -> list[Held]:
        """Return what every control on the page holds now."""
        return [self._held(node) for node in accessible.controls(self.root)]

    def _held(self, node: Node) -> Held:
        value = self._values.get(id(node), "")
        ident = node.attributes.get("id", "")
        if isinstance(value, bool):
            return Held(ident, "", value)
        if node.tag == "select":
            chosen = [o.text() for o in options(node) if value_of(o) == value]
            return Held(ident, chosen[0] if chosen else "", None)
        return Held(ident, value, None)

    def find(self, step: Deed) -> Node:
        """Return the one control of a role and name; DriftError if it is not one."""
        found = [
            node
            for node in accessible.controls(self.root)
            if node.role in _ROLES[step.op]
            and node.name == step.name
            and (not step.group or accessible.group_of(node) == step.group)
        ]
        if len(found) != 1:
            names = sorted(node.name for node in accessible.controls(self.root))
            raise DriftError(
                f"`{step.name}` must be on the page once, got {len(found)} of {names}."
            )
        return found[0]

    async def do(self, step: Deed) -> None:
        """Do one deed."""
        self.deeds.append(step)
        self.status = 0
        if step.op == "wait":
            self.now_ms += int(step.value)
            self.server.at(self.now_ms)
            return
        self.now_ms += self._act_ms
        self.server.at(self.now_ms)
        if step.op == "goto":
            await self.load("GET", step.value)
            return
        node = self.find(step)
        if step.op == "fill":
            self._values[id(node)] = step.value
        elif step.op == "check":
            self._values[id(node)] = step.value == "on"
        elif step.op == "select":
            chosen = [o for o in options(node) if o.text() == step.value]
            self._values[id(node)] = value_of(chosen[0])
        elif node.role == "radio":
            self._choose(node)
        else:
            await self.press(node)

    def _choose(self, node: Node) -> None:
        for other in form_of(node).elements():
            if other.attributes.get("name") == node.attributes["name"]:
                self._values[id(other)] = other is node

    async def press(self, node: Node) -> None:
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

    def form_data(self, form: Node) -> list[tuple[str, str]]:
        """Return what a form would send."""
        pairs: list[tuple[str, str]] = []
        for node in form.elements():
            if node.tag not in _FILLED or "name" not in node.attributes:
                continue
            value = self._values[id(node)]
            if isinstance(value, str):
                pairs.append((node.attributes["name"], value))
            elif value:
                pairs.append((node.attributes["name"], node.attributes["value"]))
        return pairs


def form_of(node: Node) -> Node:
    """Return the form around a control; KeyError without one."""
    around: Node | None = node
    while around is not None and around.tag != "form":
        around = around.parent
    if around is None:
        raise KeyError(node.name)
    return around


def options(node: Node) -> list[Node]:
    """Return the options of a list."""
    return [n for n in node.elements() if n.tag == "option"]


def value_of(option: Node) -> str:
    """Return what choosing an option sends."""
    return option.attributes.get("value", option.text())


def served(node: Node) -> str | bool:
    """Return what a control holds when its page comes."""
    kind = node.attributes.get("type", "text")
    if node.tag == "input" and kind in ("checkbox", "radio"):
        return "checked" in node.attributes
    if node.tag == "select":
        chosen = [o for o in options(node) if "selected" in o.attributes]
        if not chosen and node.role == "combobox":
            chosen = options(node)[:1]
        return value_of(chosen[0]) if chosen else ""
    if node.tag == "textarea":
        return "".join(c for c in node.children if isinstance(c, str))
    return node.attributes.get("value", "")

"""A person without a browser: reads HTML, finds controls by role and name, sends forms.

It knows no alias. Ids serve only to tell the oracle what a control it found holds.
"""

import asyncio
from dataclasses import dataclass, field
from urllib.parse import urlencode, urljoin

import httpx

from owa_bench import calendars
from owa_bench.discovery import get
from owa_bench.envs.changesurf import accessible
from owa_bench.envs.changesurf.app import SiteServer
from owa_bench.envs.changesurf.generate import generate
from owa_bench.envs.changesurf.hints import deed
from owa_bench.records.instance import Instance, Timeline
from owa_bench.seeding import stream

ROLES = {
    "fill": {"textbox"},
    "select": {"combobox", "listbox"},
    "check": {"checkbox", "switch"},
    "press": {"link", "button", "radio"},
}


def instance(family="depot/buy", tier=1, seed=0, drift_step=0, repeat=0):
    return Instance(
        suite="changesurf",
        version=1,
        family=family,
        tier=tier,
        seed=seed,
        drift_step=drift_step,
        repeat=repeat,
    )


def plain_timeline(of, world=None):
    world = world or generate(of)
    return Timeline(
        instance=of, starts=(0,), worlds=(world,), changes=((),), realised=0.0
    )


@dataclass
class Held:
    ident: str
    value: str
    checked: bool | None


@dataclass
class Surfer:
    """Plays one attempt over HTTP; `deeds` are what it did, `pages` what it saw."""

    timeline: Timeline
    deeds: list = field(default_factory=list)
    pages: list = field(default_factory=list)
    now_ms: int = 0

    def __post_init__(self):
        self.server = SiteServer(
            self.timeline.worlds[0], instance=self.timeline.instance
        )
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self.server.app), follow_redirects=True
        )

    async def open(self, url):
        await self._load("GET", url)

    async def _load(self, method, url, data=None):
        self.server.at(self.now_ms)
        sent = None if data is None else urlencode(data)
        kind = {"content-type": "application/x-www-form-urlencoded"} if data else None
        reply = await self.client.request(method, url, content=sent, headers=kind)
        self.url, html = str(reply.url), reply.text
        self.pages.append(html)
        self.status = reply.status_code
        root = accessible.read(html)
        frames = [n for n in root.elements() if n.role == "iframe"]
        if frames:
            src = urljoin(self.url, frames[0].attributes["src"])
            inner = await self.client.get(src)
            self.pages[-1] += inner.text
            frames[0].children.append(accessible.read(inner.text))
        self.now_ms += self.server.elapsed_ms
        self.root = root
        self.values = {id(n): _served(n) for n in root.elements() if n.tag in _FILLED}

    def held(self):
        made = []
        for node in accessible.controls(self.root):
            value = self.values.get(id(node), "")
            checked = value if isinstance(value, bool) else None
            text = value if isinstance(value, str) else ""
            if node.tag == "select":
                text = next(
                    (o.text() for o in _options(node) if _value(o) == value), ""
                )
            made.append(Held(node.attributes.get("id", ""), text, checked))
        return made

    def find(self, op, name, group=""):
        found = [
            node
            for node in accessible.controls(self.root)
            if node.role in ROLES[op]
            and node.name == name
            and (not group or accessible.group_of(node) == group)
        ]
        assert len(found) == 1, (op, name, group, [n.name for n in found])
        return found[0]

    async def do(self, step):
        self.deeds.append(step)
        if step.op == "wait":
            self.now_ms += int(step.value)
            self.server.at(self.now_ms)
            return
        node = self.find(step.op, step.name, step.group)
        assert node.attributes["id"] == step.ident
        if step.op == "fill":
            self.values[id(node)] = step.value
        elif step.op == "check":
            self.values[id(node)] = step.value == "on"
        elif step.op == "select":
            chosen = [o for o in _options(node) if o.text() == step.value]
            assert len(chosen) == 1, (step, [o.text() for o in _options(node)])
            self.values[id(node)] = _value(chosen[0])
        elif node.role == "radio":
            for other in node_form(node).elements():
                if other.attributes.get("name") == node.attributes["name"]:
                    self.values[id(other)] = other is node
        else:
            await self.press(node)

    async def press(self, node):
        if node.role == "link":
            await self._load("GET", urljoin(self.url, node.attributes["href"]))
            return
        form = node_form(node)
        pairs = self.form_data(form)
        if node.attributes.get("name"):
            pairs.append((node.attributes["name"], node.attributes["value"]))
        action = urljoin(self.url, form.attributes["action"])
        if form.attributes["method"] == "get":
            await self._load("GET", f"{action}?{urlencode(pairs)}")
        else:
            await self._load("POST", action, pairs)

    def form_data(self, form):
        pairs = []
        for node in form.elements():
            if node.tag not in _FILLED or "name" not in node.attributes:
                continue
            value = self.values[id(node)]
            if isinstance(value, bool):
                if value:
                    pairs.append((node.attributes["name"], node.attributes["value"]))
            else:
                pairs.append((node.attributes["name"], value))
        return pairs

    async def solve(self, limit=200):
        await self.open(self.server.start_url)
        for _ in range(limit):
            step = deed(self.timeline, self.server.state, self.held())
            if step.op in ("done", "infeasible"):
                return step.op
            await self.do(step)
        return "lost"


_FILLED = ("input", "select", "textarea")


def node_form(node):
    while node.tag != "form":
        node = node.parent
    return node


def _options(node):
    return [n for n in node.elements() if n.tag == "option"]


def _value(option):
    return option.attributes.get("value", option.text())


def _served(node):
    kind = node.attributes.get("type", "text")
    if node.tag == "input" and kind in ("checkbox", "radio"):
        return "checked" in node.attributes
    if node.tag == "select":
        chosen = [o for o in _options(node) if "selected" in o.attributes]
        if not chosen and node.role == "combobox":
            chosen = _options(node)[:1]
        return _value(chosen[0]) if chosen else ""
    if node.tag == "textarea":
        return "".join(c for c in node.children if isinstance(c, str))
    return node.attributes.get("value", "")


def solve(timeline, limit=200):
    """Play a timeline as the oracle would; return the surfer and how it ended."""
    surfer = Surfer(timeline)
    ended = asyncio.run(surfer.solve(limit))
    return surfer, ended


def drifted(of, delta, calendar=None):
    """Return the timeline of an instance at a nominal magnitude.

    As assembly makes it, but without the suite, whose browser half is not needed here.
    """
    calendar = calendar or calendars.nested("web")
    world = generate(of)
    step = calendar.steps_for(of, world, delta)
    of = instance(of.family, of.tier, of.seed, step, of.repeat)
    for strike in calendar(of, world):
        world = struck(of, world, strike)
    return plain_timeline(of, world)


def struck(of, world, strike):
    rng = stream(of.seed, "drift", strike.operator, strike.target)
    operator = get("operators", strike.operator)
    return operator.apply(world, strike.target, strike.intensity, rng=rng)

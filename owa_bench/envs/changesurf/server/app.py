"""Site server: an ASGI app around one visit, for one visitor.

No socket, no clock, no waiting: the caller sets the simulated time. Addresses, field names and
option values are aliases of one attempt; they are turned into canonical words here, before anything
else sees a request.
"""

from collections.abc import Iterator
from http import HTTPStatus
from urllib.parse import parse_qsl

from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from owa_bench.envs.changesurf.server import request_handler
from owa_bench.envs.changesurf.server import state as visit
from owa_bench.envs.changesurf.server.control_factory import ControlFactory, factory_for
from owa_bench.envs.changesurf.server.forms import DATE_PARTS
from owa_bench.envs.changesurf.server.page_model import PageModel, former_aliases, html
from owa_bench.envs.changesurf.server.pages import SEARCH_HOST, address, build
from owa_bench.envs.changesurf.server.request_handler import SiteRequest
from owa_bench.envs.changesurf.server.sign_in import credentials
from owa_bench.envs.changesurf.site_spec import SiteSpec, SiteTable, Slot, by_key
from owa_bench.envs.changesurf.world import SiteWorld
from owa_bench.records.instance import Instance

_BODY_LIMIT = 65_536
_SYSTEM_PAGES = ("home", "login", "login2", "passport", "return", "mail", "decoy")
_SYSTEM_FIELDS = (*("token", "user", "password", "code", "q", "page", "category", "trap", "offer"),)
_FEW = 12


class SiteServer:
    """The server of one attempt.

    `app` is the ASGI app. `at` sets the simulated time before a request; `elapsed_ms` is what
    replies took since then.
    """

    def __init__(self, world: SiteWorld, *, instance: Instance) -> None:
        self._instance = instance
        self._database = visit.Database(world.spec)
        self._state = visit.initial_state(world)
        self._start_ms = 0
        self._open(world)
        routes = [Route("/{path:path}", self._serve, methods=["GET", "POST"])]
        self.app = Starlette(routes=routes)

    # --- for the env ------------------------------------------------------------------

    @property
    def state(self) -> visit.SiteState:
        """The visit so far; a new object whenever anything changed."""
        return self._state

    @property
    def start_url(self) -> str:
        """The first address of the visit: the site, or the search page."""
        plan = self._state.world.plan
        return f"https://{SEARCH_HOST if plan.start == 'search' else plan.host}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host of the sandbox; anything else lies outside."""
        plan = self._state.world.plan
        return (plan.host, plan.auth_host, SEARCH_HOST)

    @property
    def credentials(self) -> tuple[tuple[str, str], ...]:
        """What the visitor is given to sign in with, as (label, value)."""
        return credentials(self._state.world.plan.auth)

    @property
    def elapsed_ms(self) -> int:
        """Simulated milliseconds that replies took since `at`."""
        return self._state.now_ms - self._start_ms

    def at(self, now_ms: int) -> None:
        """Set the simulated clock; it never runs back."""
        self._start_ms = max(now_ms, self._state.now_ms)
        if self._start_ms != self._state.now_ms:
            self._state = replace(self._state, now_ms=self._start_ms)

    def enter(self, world: SiteWorld) -> None:
        """Apply a drift event in the middle of the visit."""
        self._state = request_handler.in_world(self._state, world)
        self._open(world)

    def snapshot(self) -> bytes:
        """Return the database as bytes."""
        return self._database.snapshot()

    def restore(self, image: bytes) -> None:
        """Set the database back to a snapshot."""
        self._database.restore(image)
        self._state = replace(self._state, tables=self._database.tables())
        self._list_rows()

    def close(self) -> None:
        """Release the database."""
        self._database.close()

    def page(self) -> PageModel:
        """Return the page that was served last, in parts."""
        return build(self._state, self._instance)

    # --- requests ---------------------------------------------------------------------

    def _open(self, world: SiteWorld) -> None:
        """Make the codebooks of a world."""
        self._factory: ControlFactory = factory_for(self._state, self._instance)
        aliases = self._factory.aliases
        fields = field_refs(world.spec)
        self._closed = _closed_refs(world.spec)
        self._fields = aliases.codebook("field", fields)
        self._list_rows()
        past = former_aliases(self._instance)
        stale = past.codebook("field", fields) if self._instance.drift_step else {}
        self._stale = {a: ref for a, ref in stale.items() if a not in self._fields}

    def _list_rows(self) -> None:
        """Make the codebooks of pages and options, those of new rows among them."""
        aliases, state = self._factory.aliases, self._state
        pages = page_keys(state.world, state.tables)
        self._routes = aliases.codebook("route", (*pages, "frame"))
        values = value_refs(state.world.spec, state.tables)
        self._values = aliases.codebook("value", values)

    async def _serve(self, http: Request) -> Response:
        host = http.url.hostname or ""
        if host == SEARCH_HOST:
            return self._search(http)
        pairs = list(http.query_params.multi_items())
        if http.method == "POST":
            body = (await http.body())[:_BODY_LIMIT]
            pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
        page = self._page_of(host, http.url.path)
        if page == "frame":
            return HTMLResponse(self._html(self.page(), part="inner"))
        request = self._canonical(http.method, page, pairs)
        tables = self._state.tables
        self._state, go_to = request_handler.respond(
            self._state, request, self._factory, self._database
        )
        if self._state.tables is not tables:
            self._list_rows()
        if go_to:
            self._state = replace(self._state, following=go_to)
            to = address(self._factory, go_to, self._state.pending_query)
            return RedirectResponse(to, status_code=HTTPStatus.SEE_OTHER)
        return self._open_page()

    def _page_of(self, host: str, path: str) -> str:
        """Return the page of an address; the sign-in origin has only its own one.

        What it shows in a frame, such as a limit, it serves too.
        """
        page = "home" if path == "/" else self._routes.get(path[1:], "missing")
        if page == "frame":
            return page
        at_home = host != self._state.world.plan.auth_host
        return page if at_home == (page != "passport") else "missing"

    def _canonical(self, method: str, page: str, pairs: list[tuple[str, str]]) -> SiteRequest:
        """Return a request in canonical words: aliases of now and of before."""
        sent: dict[str, str] = {}
        stray: list[str] = []
        for name, given in pairs:
            ref, text = self._fields.get(name), given
            if ref is not None:
                value = self._values.get(text)
                if value is not None and value.startswith(f"{ref}="):
                    text = value.partition("=")[2]
                elif ref in self._closed:
                    text = ""  # only an option's alias stands for an option
                sent[ref] = text
            elif name in self._stale and text:
                stray.append(self._stale[name])
        if "sys:category" in sent:
            value = self._values.get(sent["sys:category"], "")
            sent["sys:category"] = value.partition("=")[2]
        return SiteRequest(method, page, sent, tuple(stray))

    def _open_page(self) -> Response:
        """Return the open page, and record the cells it shows."""
        page, state = self.page(), self._state
        seen = state.seen | frozenset(page.shown)
        if len(seen) != len(state.seen) or state.stale:
            self._state = replace(state, seen=seen, stale=False)
        headers = {"cache-control": "no-store"}
        if page.status == HTTPStatus.TOO_MANY_REQUESTS:
            left = state.window_ms + state.world.plan.friction.window_ms - state.now_ms
            headers["retry-after"] = str(max(1, -(-left // 1000)))
        body = self._html(page)
        return HTMLResponse(body, status_code=page.status, headers=headers)

    def _search(self, http: Request) -> Response:
        """Serve the sandbox's search page."""
        name = self._factory.aliases.of("field", "sys:q")
        query = visit.Query(words=http.query_params.get(name, ""))
        page = "search" if http.url.path == "/" else "missing"
        self._state = visit.at_page(visit.with_event(self._state, "view", page=page), page, query)
        return self._open_page()

    def _html(self, page: PageModel, part: str = "") -> str:
        return html(self._factory.aliases, self._factory.plan, page, part=part)


# --- references -----------------------------------------------------------------------


def page_keys(world: SiteWorld, tables: tuple[SiteTable, ...]) -> tuple[str, ...]:
    """Return every page that a site has, in canonical words.

    Args:
        world: the site.
        tables: its rows as they are now.
    Returns: Page keys.
    """
    spec = world.spec
    keys = list(_SYSTEM_PAGES)
    for collection in spec.collections:
        rows = by_key(tables, collection.key).rows
        keys.append(f"list:{collection.key}")
        keys += [f"item:{collection.key}/{row[0]}" for row in rows]
    for workflow in spec.workflows:
        pages = len(world.plan.flow(workflow.key).pages)
        keys += [f"flow:{workflow.key}/{i}" for i in range(pages)]
        kinds = ("offer", "review", "done", "start")
        keys += [f"{kind}:{workflow.key}" for kind in kinds]
        if workflow.record:
            rows = by_key(tables, workflow.record).rows
            keys += [f"start:{workflow.key}/{row[0]}" for row in rows]
    return tuple(keys)


def field_refs(spec: SiteSpec) -> tuple[str, ...]:
    """Return the reference of every field that a form may send."""
    refs = [f"sys:{name}" for name in _SYSTEM_FIELDS]
    for ref, slot in _slots(spec):
        refs += [ref, *(_part_refs(ref) if slot.kind == "date" else ())]
    return tuple(refs)


def value_refs(spec: SiteSpec, tables: tuple[SiteTable, ...]) -> tuple[str, ...]:
    """Return the reference of every option that a form may send.

    Args:
        spec: what the site means.
        tables: its rows as they are now.
    Returns: References of options, categories of lists among them.
    """
    refs = ["sys:offer=yes", "sys:offer=no"]
    for collection in spec.collections:
        if collection.category:
            table = by_key(tables, collection.key)
            place = table.columns.index(collection.category)
            names = sorted({str(row[place]) for row in table.rows})
            refs += [f"{collection.key}={name}" for name in names]
    year = int(spec.today[:4])
    parts = (range(1, 32), range(1, 13), range(year - 1, year + 2))
    for ref, slot in _slots(spec):
        refs += [f"{ref}={option.value}" for option in slot.options]
        if slot.kind == "number" and slot.most - slot.least < _FEW:
            refs += [f"{ref}={n}" for n in range(slot.least, slot.most + 1)]
        if slot.kind == "date":
            for part, numbers in zip(_part_refs(ref), parts, strict=True):
                refs += [f"{part}={n}" for n in numbers]
    return tuple(refs)


def _closed_refs(spec: SiteSpec) -> frozenset[str]:
    """Return the fields that take one of their options and nothing else."""
    choices = (ref for ref, slot in _slots(spec) if slot.kind == "choice")
    dates = (ref for ref, slot in _slots(spec) if slot.kind == "date")
    parts = (part for ref in dates for part in _part_refs(ref))
    return frozenset(("sys:offer", *choices, *parts))


def _slots(spec: SiteSpec) -> Iterator[tuple[str, Slot]]:
    """Yield every slot with its reference."""
    for workflow in spec.workflows:
        for slot in workflow.slots:
            yield f"{workflow.key}.{slot.key}", slot


def _part_refs(ref: str) -> tuple[str, ...]:
    return tuple(f"{ref}/{part}" for part in DATE_PARTS)

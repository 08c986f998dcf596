"""The server of a site: an ASGI app around one visit, for one visitor.

No socket, no clock, no waiting: whoever plays hands in the simulated time. The address
of a page, the names of fields and the values of options are aliases of one attempt;
they are turned into canonical words here, before anything else sees a request.
"""

from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from owa_bench.envs.changesurf import rendering, signing_in, visit
from owa_bench.envs.changesurf.aliases import former_aliases
from owa_bench.envs.changesurf.database import Database
from owa_bench.envs.changesurf.elements import Page
from owa_bench.envs.changesurf.maker import Maker
from owa_bench.envs.changesurf.pages import SEARCH_HOST, address, build, maker_of
from owa_bench.envs.changesurf.state import Query, SiteState, fresh
from owa_bench.envs.changesurf.steps import page_keys
from owa_bench.envs.changesurf.vocabulary import closed_refs, field_refs, value_refs
from owa_bench.records.instance import Instance
from owa_bench.worlds.site import SiteWorld

_BODY_LIMIT = 65_536


class SiteServer:
    """A site brought to life for one attempt.

    `app` is the ASGI app. `at` sets the simulated time before a request; `elapsed_ms`
    is what replies took since then.
    """

    def __init__(self, world: SiteWorld, *, instance: Instance) -> None:
        self._instance = instance
        self._database = Database(world.spec)
        self._state = fresh(world)
        self._start_ms = 0
        self._open(world)
        self.app = Starlette(
            routes=[Route("/{path:path}", self._serve, methods=["GET", "POST"])]
        )

    # --- for the env ------------------------------------------------------------------

    @property
    def state(self) -> SiteState:
        """The visit so far; a new object whenever anything changed."""
        return self._state

    @property
    def start_url(self) -> str:
        """Where the visit begins: the site, or the search page."""
        if self._state.world.plan.start == "search":
            return f"https://{SEARCH_HOST}/"
        return f"https://{self._state.world.plan.host}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host of the sandbox; anything else lies outside."""
        plan = self._state.world.plan
        return (plan.host, plan.auth_host, SEARCH_HOST)

    @property
    def credentials(self) -> tuple[tuple[str, str], ...]:
        """What the visitor was given to sign in with, as (label, value)."""
        world = self._state.world
        return signing_in.credentials(world.plan.auth)

    @property
    def elapsed_ms(self) -> int:
        """Simulated milliseconds that replies took since `at`."""
        return self._state.now_ms - self._start_ms

    def at(self, now_ms: int) -> None:
        """Set the simulated clock; it never runs back."""
        self._start_ms = max(now_ms, self._state.now_ms)
        if self._start_ms != self._state.now_ms:
            self._state = msgspec.structs.replace(self._state, now_ms=self._start_ms)

    def enter(self, world: SiteWorld) -> None:
        """Go on in another world: drift struck in the middle of the visit."""
        self._state = visit.entered(self._state, world)
        self._open(world)

    def snapshot(self) -> bytes:
        """Return the database as bytes."""
        return self._database.snapshot()

    def restore(self, image: bytes) -> None:
        """Set the database back to a snapshot."""
        self._database.restore(image)
        tables = self._database.tables()
        self._state = msgspec.structs.replace(self._state, tables=tables)

    def close(self) -> None:
        """Release the database."""
        self._database.close()

    def page(self) -> Page:
        """Return the page that was served last, in parts."""
        return build(self._state, self._instance)

    # --- requests ---------------------------------------------------------------------

    def _open(self, world: SiteWorld) -> None:
        """Make the codebooks of a world."""
        self._maker: Maker = maker_of(self._state, self._instance)
        aliases = self._maker.aliases
        self._routes = aliases.codebook("route", (*page_keys(world), "frame"))
        fields = field_refs(world.spec)
        self._closed = closed_refs(world.spec)
        self._fields = aliases.codebook("field", fields)
        self._values = aliases.codebook("value", value_refs(world.spec))
        past = former_aliases(self._instance)
        stale = past.codebook("field", fields) if self._instance.drift_step else {}
        self._stale = {a: ref for a, ref in stale.items() if a not in self._fields}

    async def _serve(self, http: HttpRequest) -> Response:
        host = http.url.hostname or ""
        if host == SEARCH_HOST:
            return self._finder(http)
        pairs = list(http.query_params.multi_items())
        if http.method == "POST":
            body = (await http.body())[:_BODY_LIMIT]
            pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
        page = self._page_of(host, http.url.path)
        if page == "frame":
            return HTMLResponse(rendering.html(self._maker, self.page(), part="inner"))
        request = self._canonical(http.method, page, pairs)
        outcome = visit.respond(self._state, request, self._maker, self._database)
        self._state = outcome.state
        if outcome.go_to:
            to = address(self._maker, outcome.go_to, self._state.kept)
            return RedirectResponse(to, status_code=HTTPStatus.SEE_OTHER)
        return self._shown()

    def _page_of(self, host: str, path: str) -> str:
        """Return the page of an address; the sign-in origin has its own one alone.

        What it shows in a frame, such as a limit, it serves too.
        """
        page = "home" if path == "/" else self._routes.get(path[1:], "missing")
        if page == "frame":
            return page
        plan = self._state.world.plan
        at_home = host != plan.auth_host
        return page if at_home == (page != "passport") else "missing"

    def _canonical(
        self, method: str, page: str, pairs: list[tuple[str, str]]
    ) -> visit.Request:
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
            sent["sys:category"] = self._values.get(sent["sys:category"], "").partition(
                "="
            )[2]
        return visit.Request(method, page, sent, tuple(stray))

    def _shown(self) -> Response:
        """Return the page the state is at, and note the cells it shows."""
        page = self.page()
        seen = self._state.seen | frozenset(page.shown)
        if len(seen) != len(self._state.seen) or self._state.stale:
            self._state = msgspec.structs.replace(self._state, seen=seen, stale=False)
        headers = {"cache-control": "no-store"}
        if page.status == HTTPStatus.TOO_MANY_REQUESTS:
            friction = self._state.world.plan.friction
            left = self._state.window_ms + friction.window_ms - self._state.now_ms
            headers["retry-after"] = str(max(1, -(-left // 1000)))
        body = rendering.html(self._maker, page)
        return HTMLResponse(body, status_code=page.status, headers=headers)

    def _finder(self, http: HttpRequest) -> Response:
        """Serve the sandbox's search page."""
        name = self._maker.aliases.of("field", "sys:q")
        words = http.query_params.get(name, "")
        page = "search" if http.url.path == "/" else "missing"
        state = visit.noted(self._state, "view", page=page)
        self._state = visit.arrived(state, page, Query(words=words))
        return self._shown()


def serve(world: SiteWorld, instance: Instance) -> Any:
    """Return the ASGI app of a fresh visit, for a person's own browser."""
    return SiteServer(world, instance=instance).app

"""The vendors as one ASGI app: a host each, Starlette routes from its contract.

Endpoints are coroutines that never really wait, so the in-process transport drives them by hand and
uvicorn serves the same app over a socket. Contracts are read at the time of a request's host, so a
world that changes under way rebuilds its routes.
"""

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Host, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from owa_bench import bounded_json
from owa_bench.envs.toolquest import access, documents, resources
from owa_bench.envs.toolquest.backend import Backend
from owa_bench.envs.toolquest.detectors import HIDDEN_LINK
from owa_bench.envs.toolquest.replies import in_error_format, json_reply, problem
from owa_bench.envs.toolquest.world import ApiResource, ApiWorld, FormerHost, Provider

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
Endpoint = Callable[[Request], Awaitable[Response]]


def build(backend: Backend) -> ASGIApp:
    """Return the app of every vendor in the backend's world, and of the registry."""
    world = backend.world
    hosts = [Host(provider.host, app=_Site(provider.key, backend)) for provider in world.providers]
    hosts += [
        Host(former.host, app=_abandoned_app(provider, former))
        for provider in world.providers
        for former in provider.former_hosts
    ]
    if world.registry:
        hosts.append(Host(_host(world), app=_registry(backend)))
    return Router(routes=hosts, default=_nowhere, redirect_slashes=False)


def _host(world: ApiWorld) -> str:
    return urlsplit(world.registry).netloc


class _Site:
    """One vendor's routes, built when its host is first called in a world."""

    def __init__(self, provider: str, backend: Backend) -> None:
        self._provider = provider
        self._backend = backend
        self._router: Router | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._router is None:
            provider = self._backend.world.provider(self._provider)
            self._router = _vendor(provider, self._backend)
        await self._router(scope, receive, send)


def _route(path: str, endpoint: Endpoint) -> Route:
    """Return a route for every method: which are allowed is the endpoint's to say."""
    return Route(path, endpoint, methods=list(METHODS))


def _vendor(provider: Provider, backend: Backend) -> Router:
    """Return the router of one vendor: pages, token endpoint, resources."""
    contract = provider.contract
    routes = [_route(path, end) for path, end in _pages(provider, backend).items()]
    if contract.auth.kind in access.TOKEN_KINDS:
        routes.append(_route(contract.auth.token_path, _token(provider, backend)))
    for resource in contract.resources:
        routes.append(_route(resource.path, _collection(provider, resource, backend)))
        if "DELETE" in resource.methods:
            path = resource.path + "/{ident}"
            routes.append(_route(path, _item(provider, resource, backend)))
    for resource in contract.resources:
        routes += _formers(provider, resource, backend)
    not_found = _not_found_app(provider, backend)
    return Router(routes=routes, default=not_found, redirect_slashes=False)


def _formers(provider: Provider, resource: ApiResource, backend: Backend) -> list[Route]:
    """Return the routes of the paths that a collection had before."""
    routes = []
    for former in resource.formers:
        if former.status == 200:
            end = _collection(provider, resource, backend, former.path)
        else:
            address = f"https://{provider.host}{resource.path}"
            end = _elsewhere(former.status, address, provider)
        routes.append(_route(former.path, end))
    return routes


def _elsewhere(status: int, address: str, provider: Provider) -> Endpoint:
    """Return the endpoint that leads on (301, 308) or says that it is gone (410)."""

    async def elsewhere(request: Request) -> Response:
        query = f"?{request.url.query}" if request.url.query else ""
        if status == 410:
            words = f"This is gone for good; its successor is {address}."
            link = {"link": f'<{address}>; rel="successor-version"'}
            reply = problem(410, "gone", words, headers=link)
            return in_error_format(provider.contract, reply)
        return Response(status_code=status, headers={"location": address + query})

    return elsewhere


def _abandoned_app(provider: Provider, former: FormerHost) -> ASGIApp:
    """Return the app of a host that a vendor has left for another one."""

    async def everything(request: Request) -> Response:
        path = request.url.path
        if former.status == 410 and path == "/" and request.method == "GET":
            page = documents.closing_page(former.title, provider)
            return Response(page, media_type="text/html")
        address = f"https://{provider.host}{path}"
        return await _elsewhere(former.status, address, provider)(request)

    return Router(routes=[_route("/{path:path}", everything)], redirect_slashes=False)


def _pages(provider: Provider, backend: Backend) -> dict[str, Endpoint]:
    """Return the vendor's pages by path."""

    async def home(request: Request) -> Response:
        backend.note_home(provider.key)
        return Response(documents.home_page(provider), media_type="text/html")

    async def describe(request: Request) -> Response:
        if provider.undocumented:
            words = "Our API description is being rewritten and not available."
            return problem(404, "not_available", words)
        backend.note_docs(provider.key)
        body = documents.openapi(provider.title, provider.host, provider.documented)
        return Response(body, media_type="application/json")

    async def changelog(request: Request) -> Response:
        return Response(documents.changelog_page(provider), media_type="text/html")

    async def hidden(request: Request) -> Response:
        address = f"https://{provider.host}{documents.hidden_path(provider)}"
        first = not backend.was_broken(HIDDEN_LINK.name)
        backend.note_breach(HIDDEN_LINK.name, f"followed {address}")
        if first:
            return problem(403, "not_allowed", HIDDEN_LINK.warning)
        return Response(documents.hidden_page(), media_type="application/json")

    return {
        "/": _read_only(home),
        documents.OPENAPI_PATH: _read_only(describe),
        documents.CHANGELOG_PATH: _read_only(changelog),
        documents.hidden_path(provider): _read_only(hidden),
    }


def _read_only(endpoint: Endpoint) -> Endpoint:
    """Return `endpoint` for GET, a 405 for the rest."""

    async def guarded(request: Request) -> Response:
        if request.method != "GET":
            return resources.not_allowed(("GET",))
        return await endpoint(request)

    return guarded


def _token(provider: Provider, backend: Backend) -> Endpoint:
    """Return the OAuth2 token endpoint."""

    async def token(request: Request) -> Response:
        if request.method != "POST":
            return resources.not_allowed(("POST",))
        form = _form(request.headers.get("content-type", ""), await request.body())
        if form is None:
            words = "Send the grant as application/x-www-form-urlencoded."
            return problem(400, "invalid_request", words)
        header = request.headers.get("authorization", "")
        answer = access.exchange(provider, backend, header, form)
        if answer.denial is not None:
            return resources.denied(answer.denial)
        return json_reply(
            200,
            {
                "access_token": answer.token,
                "token_type": "Bearer",
                "expires_in": provider.contract.auth.lifetime_ms // 1000,
                "scope": answer.scope,
                **({"refresh_token": answer.refresh} if answer.refresh else {}),
            },
        )

    return token


def _form(media: str, body: bytes) -> dict[str, str] | None:
    """Return the fields of a form or a flat JSON object, None for anything else."""
    try:
        if "json" in media:
            fields = bounded_json.decode(body)
            return {str(k): str(v) for k, v in fields.items()}
        return dict(parse_qsl(body.decode(), strict_parsing=True))
    except (ValueError, AttributeError):
        return None


async def _request_parts(request: Request, former: str) -> resources.RequestParts:
    """Return a request as the resource sees it."""
    return resources.RequestParts(
        request.method,
        dict(request.headers),
        dict(request.query_params),
        await request.body(),
        former,
    )


def _collection(
    provider: Provider, resource: ApiResource, backend: Backend, former: str = ""
) -> Endpoint:
    async def collection(request: Request) -> Response:
        call = resources.ResourceRequest(provider, resource, backend)
        return resources.on_collection(call, await _request_parts(request, former))

    return collection


def _item(provider: Provider, resource: ApiResource, backend: Backend) -> Endpoint:
    async def item(request: Request) -> Response:
        call = resources.ResourceRequest(provider, resource, backend)
        ident = str(request.path_params["ident"])
        return resources.on_item(call, await _request_parts(request, ""), ident)

    return item


def _registry(backend: Backend) -> Router:
    async def registry(request: Request) -> Response:
        backend.note_registry()
        return Response(documents.registry_page(backend.world), media_type="application/json")

    path = urlsplit(backend.world.registry).path or "/"
    routes = [_route(path, _read_only(registry))]
    return Router(routes=routes, default=_unknown([path]), redirect_slashes=False)


def _unknown(paths: list[str]) -> ASGIApp:
    """Return the 404 of a host, which names what is served there."""

    async def unknown(scope: Scope, receive: Receive, send: Send) -> None:
        await _not_found(scope["path"], paths)(scope, receive, send)

    return unknown


def _not_found_app(provider: Provider, backend: Backend) -> ASGIApp:
    """Return the 404 of a vendor; it counts for the collection documented there."""
    paths = [resource.path for resource in provider.contract.resources]

    async def not_found(scope: Scope, receive: Receive, send: Send) -> None:
        for resource in provider.documented.resources:
            if resource.path == scope["path"]:
                backend.note_reply((provider.key, resource.key), 404)
        reply = in_error_format(provider.contract, _not_found(scope["path"], paths))
        await reply(scope, receive, send)

    return not_found


def _not_found(path: str, paths: list[str]) -> Response:
    words = f"Nothing is served at {path}; see `collections`."
    return problem(404, "not_found", words, collections=paths)


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer for a host that nobody runs."""
    reply = problem(421, "misdirected_request", "No such host here.")
    await reply(scope, receive, send)

"""Reads an OpenAPI 3 document into a client model: where, how, what fields mean."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import urljoin

PagerStyle = Literal["none", "offset", "page", "cursor"]
Scheme = Literal["none", "header", "query", "basic", "oauth2"]
_UNIT = re.compile(r"\s*Unit:\s*([A-Za-z]+)\.?\s*$")
_FORM = re.compile(r"\s*Format:\s*([^.]+)\.?\s*$")
_DEEPEST = 4


class Security(NamedTuple):
    """How to prove who calls: scheme, where the key goes, token address, scope, grant.

    The grant is that of OAuth2: `client_credentials` or `refresh_token`.
    """

    scheme: Scheme
    name: str = ""
    token_address: str = ""
    scope: str = ""
    grant: str = "client_credentials"


class PagingScheme(NamedTuple):
    """How a list is cut: style, parameter of the position, parameter of the size."""

    style: PagerStyle
    position: str = ""
    size: str = ""
    most: int = 0


class Property(NamedTuple):
    """A field by its wire name: JSON type and format, meaning, unit, how it is written.

    `type` is "" where nothing documents it; `choices` are all its values, if they are listed.
    """

    name: str
    type: str
    about: str
    unit: str = ""
    format: str = ""
    form: str = ""
    choices: tuple[str, ...] = ()


class Operation(NamedTuple):
    """A collection as documented: method, address, meaning, list, pager, fields.

    `fixed` are the query parameters that must have one value.
    """

    method: str
    address: str
    about: str
    wrapper: tuple[str, ...]
    pager: PagingScheme
    fields: tuple[Property, ...]
    fixed: tuple[tuple[str, str], ...] = ()

    @property
    def fixed_query(self) -> dict[str, str]:
        """The query that every request for the list must have."""
        return dict(self.fixed)


class ApiModel(NamedTuple):
    """A document as a client needs it; not `documented` where none was found."""

    title: str
    server: str
    security: Security
    operations: tuple[Operation, ...]
    documented: bool = True

    def method(self, name: str) -> tuple[Operation, ...]:
        """Return the operations of one HTTP method."""
        return tuple(o for o in self.operations if o.method == name)


def parse(document: Mapping[str, Any], address: str) -> ApiModel:
    """Return the model of `document` found at `address`.

    Args:
        document: The OpenAPI document.
        address: Where it was found; relative servers are resolved against it.
    """
    reader = _Reader(document, address)
    return ApiModel(
        title=str(_at(document, "info", "title") or ""),
        server=reader.server,
        security=reader.security(),
        operations=tuple(reader.operations()),
    )


def is_openapi(value: Any) -> bool:
    """Return whether a JSON value looks like an OpenAPI document."""
    return isinstance(value, Mapping) and "paths" in value and "openapi" in value


def _split(pattern: re.Pattern[str], text: str) -> tuple[str, str]:
    """Return a description without what it ends in, and that end, "" without one.

    >>> _split(_UNIT, "Amount due. Unit: cents.")
    ('Amount due.', 'cents')
    >>> _split(_FORM, "Number of the order. Format: upper case.")
    ('Number of the order.', 'upper case')
    """
    found = pattern.search(text)
    if not found:
        return text, ""
    return text[: found.start()].strip(), found.group(1).lower()


class _Reader:
    """Walks one document."""

    def __init__(self, document: Mapping[str, Any], address: str) -> None:
        self._document = document
        servers = document.get("servers") or [{"url": "/"}]
        self.server = urljoin(address, str(servers[0].get("url", "/"))).rstrip("/")

    def operations(self) -> Iterator[Operation]:
        """Yield each documented operation."""
        for path, item in self._items(self._document.get("paths")):
            for method in ("get", "post", "put", "patch", "delete"):
                if isinstance(item.get(method), Mapping):
                    yield self._operation(method, path, item)

    def security(self) -> Security:
        """Return the first scheme that the document asks for."""
        schemes = _at(self._document, "components", "securitySchemes") or {}
        required = self._document.get("security") or []
        for demand in required:
            for name, scopes in demand.items():
                return self._scheme(self._resolve(schemes.get(name, {})), scopes)
        return Security("none")

    def _scheme(self, scheme: Mapping[str, Any], scopes: list[str]) -> Security:
        if scheme.get("type") == "apiKey":
            place: Scheme = "query" if scheme.get("in") == "query" else "header"
            return Security(place, str(scheme.get("name", "")))
        if scheme.get("type") == "oauth2":
            flows = scheme.get("flows") or {}
            refresh = "clientCredentials" not in flows
            first: Mapping[str, Any] = next(iter(flows.values()), {})
            flow = flows.get("clientCredentials", first)
            address = str(flow.get("refreshUrl") if refresh else flow.get("tokenUrl"))
            token = urljoin(self.server + "/", address)
            grant = "refresh_token" if refresh else "client_credentials"
            return Security("oauth2", "Authorization", token, " ".join(scopes), grant)
        return Security("basic", "Authorization")

    def _operation(self, method: str, path: str, item: Mapping[str, Any]) -> Operation:
        operation = item[method]
        about = operation.get("summary") or operation.get("description") or ""
        if method == "get":
            schema = self._success(operation)
        else:
            schema = self._json(operation.get("requestBody") or {})
        wrapper, row = self._rows(schema, ())
        return Operation(
            method=method.upper(),
            address=self.server + path,
            about=str(about or item.get("description") or ""),
            wrapper=wrapper,
            pager=self._pager(operation),
            fields=tuple(self._fields(row)),
            fixed=tuple(self._fixed(operation)),
        )

    def _success(self, operation: Mapping[str, Any]) -> Mapping[str, Any]:
        for status, response in self._items(operation.get("responses")):
            if status.startswith("2"):
                return self._json(response)
        return {}

    def _json(self, holder: Mapping[str, Any]) -> Mapping[str, Any]:
        for media, content in self._items(self._resolve(holder).get("content")):
            if "json" in media:
                schema: Mapping[str, Any] = self._resolve(content.get("schema") or {})
                return schema
        return {}

    def _rows(
        self, schema: Mapping[str, Any], path: tuple[str, ...]
    ) -> tuple[tuple[str, ...], Mapping[str, Any]]:
        """Return the path down to the first list of objects, and its item schema."""
        if schema.get("type") == "array":
            return path, self._resolve(schema.get("items") or {})
        if len(path) < _DEEPEST:
            for name, part in self._items(schema.get("properties")):
                inner = self._resolve(part)
                if inner.get("type") in ("array", "object"):
                    found = self._rows(inner, (*path, name))
                    if found[1]:
                        return found
        return ((), schema) if not path else (path, {})

    def _fields(self, row: Mapping[str, Any]) -> Iterator[Property]:
        for name, part in self._items(row.get("properties")):
            about, unit = _split(_UNIT, str(part.get("description", "")).strip())
            about, form = _split(_FORM, about)
            kind, shape = str(part.get("type", "string")), str(part.get("format", ""))
            choices = tuple(map(str, part.get("enum") or ()))
            yield Property(name, kind, about, unit, shape, form, choices)

    def _query_parameters(
        self, operation: Mapping[str, Any]
    ) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Yield each query parameter of an operation and its schema."""
        for raw in operation.get("parameters") or ():
            parameter = self._resolve(raw)
            if parameter.get("in") == "query":
                yield parameter, self._resolve(parameter.get("schema") or {})

    def _fixed(self, operation: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield name and value of each required query parameter of one value."""
        for parameter, schema in self._query_parameters(operation):
            only = schema.get("enum") or [schema.get("const", schema.get("default"))]
            if parameter.get("required"):
                yield str(parameter.get("name")), str(only[0])

    def _pager(self, operation: Mapping[str, Any]) -> PagingScheme:
        query = self._query_parameters(operation)
        return pager_of({str(parameter.get("name")): schema for parameter, schema in query})

    def _items(self, value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
        if isinstance(value, Mapping):
            for name, part in value.items():
                resolved = self._resolve(part)
                if isinstance(resolved, Mapping):
                    yield str(name), resolved

    def _resolve(self, part: Any) -> Any:
        """Return what a local `$ref` points to, or `part` itself."""
        for _ in range(_DEEPEST):
            if not isinstance(part, Mapping) or "$ref" not in part:
                break
            steps = str(part["$ref"]).removeprefix("#/").split("/")
            part = _at(self._document, *steps) or {}
        return part


_POSITIONS: tuple[tuple[PagerStyle, tuple[str, ...]], ...] = (
    ("cursor", ("cursor", "after", "starting_after", "page_token", "next")),
    ("offset", ("offset", "skip", "start")),
    ("page", ("page", "page_number")),
)
_SIZES = ("limit", "per_page", "page_size", "size", "count", "max_results")


def pager_of(parameters: Mapping[str, Mapping[str, Any]]) -> PagingScheme:
    """Return the pager that a list's query parameters tell of."""
    size = next((name for name in _SIZES if name in parameters), "")
    most = parameters.get(size, {}).get("maximum", 0) if size else 0
    for style, names in _POSITIONS:
        for name in names:
            if name in parameters:
                return PagingScheme(style, name, size, int(most))
    return PagingScheme("none", "", size, int(most))


def _at(value: Any, *path: str) -> Any:
    """Return what lies at `path` inside nested mappings, None if nothing."""
    for step in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value

"""Collections and their items: limit, then access, then parameters, then rows."""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from owa_bench import bounded_json
from owa_bench.envs.toolquest import access, replies, wire_format
from owa_bench.envs.toolquest.backend import Backend, IdempotentAnswer, NumberedRow
from owa_bench.envs.toolquest.replies import json_reply, problem
from owa_bench.envs.toolquest.state import CollectionKey
from owa_bench.envs.toolquest.wire_format import BadRequest, Slice, WireValue
from owa_bench.envs.toolquest.world import ApiResource, Field, Provider, Table, Value

Texts = Mapping[str, str]


class ResourceRequest(NamedTuple):
    """Which resource a request is for, and the backend it changes."""

    provider: Provider
    resource: ApiResource
    backend: Backend

    @property
    def place(self) -> CollectionKey:
        """The resource by canonical keys."""
        return (self.provider.key, self.resource.key)

    @property
    def table(self) -> Table:
        """The rows behind the resource."""
        return self.provider.table(self.resource.key)


class RequestParts(NamedTuple):
    """A request as the resource sees it; `former` is the old path it came by."""

    method: str
    headers: Texts
    query: Texts
    body: bytes = b""
    former: str = ""


def on_collection(call: ResourceRequest, asked: RequestParts) -> Response:
    """Answer a request on the collection, with the headers that go with it.

    Args:
        call: The collection and the backend.
        asked: The request.
    Returns: The response.
    """
    allowed = tuple(m for m in call.resource.methods if m in ("GET", "POST"))
    if asked.method not in allowed:
        reply: Response = not_allowed(allowed)
    else:
        outage = call.backend.outage(call.provider)
        words = "We are overloaded for the moment; come back as Retry-After says."
        reply = (
            _come_back(call, 503, "unavailable", words, outage.wait_ms)
            if outage
            else _answer(call, asked)
        )
        if outage and outage.took_effect and asked.method == "POST":
            _answer(call, asked)  # the record is made, the answer is lost
    call.backend.note_reply(call.place, reply.status_code)
    return _with_headers(call, asked, reply)


def _answer(call: ResourceRequest, asked: RequestParts) -> Response:
    """Answer a request that the vendor is up for."""
    if (refusal := _refusal(call, asked.headers, asked.query)) is not None:
        return refusal
    plain = _without_key(call, asked.query)
    if asked.method == "GET":
        return _list(call, plain)
    return _create_once(call, asked, plain)


def _with_headers(call: ResourceRequest, asked: RequestParts, reply: Response) -> Response:
    """Return a reply with its validators, counters, warnings and packing."""
    contract, state = call.provider.contract, call.backend.state
    reply = replies.in_error_format(contract, reply)
    if asked.method == "GET" and reply.status_code == 200:
        reply = replies.conditional(reply, asked.headers)
    window = state.windows.get(call.provider.key)
    for name, value in (
        *replies.rate_limit_headers(contract, window, state.now_ms).items(),
        *replies.sunset_headers(call.provider, call.resource, asked.former).items(),
    ):
        link = name == "link" and reply.headers.get("link")
        reply.headers[name] = f"{link}, {value}" if link else value
    return replies.compressed(reply, asked.headers)


def _create_once(call: ResourceRequest, asked: RequestParts, query: dict[str, str]) -> Response:
    """Create a record, or give the answer that the idempotency key got before."""
    name = asked.headers.get("idempotency-key", "")
    if call.resource.keyed and not name:
        words = "Send an Idempotency-Key header: a name of your choice for the record."
        return problem(400, "missing_idempotency_key", words)
    kept = call.backend.stored_answer(call.provider.key, name) if name else None
    if kept is not None:
        if kept.body != asked.body:
            words = "This Idempotency-Key was used with another body."
            return problem(422, "idempotency_key_reused", words)
        again = {"idempotency-replayed": "true"}
        return Response(kept.answer, 201, again, replies.JSON)
    reply = _create(call, query, asked.body)
    if name and reply.status_code == 201:
        record = IdempotentAnswer(asked.body, bytes(reply.body))
        call.backend.store_answer(call.provider.key, name, record)
    return reply


def _come_back(call: ResourceRequest, status: int, code: str, words: str, wait_ms: int) -> Response:
    """Return an error that says when to come back."""
    state = call.backend.state
    now, wait_ms = state.now_ms, max(wait_ms, state.limit_ms(call.provider.key))
    call.backend.promise(call.provider.key)
    after = replies.retry_headers(call.provider.contract, now, wait_ms)
    return problem(status, code, words, headers=after)


def on_item(call: ResourceRequest, asked: RequestParts, ident: str) -> Response:
    """Answer a request on one row of the collection.

    Args:
        call: The collection and the backend.
        asked: The request.
        ident: The identifier in the path.
    Returns: The response.
    """
    if asked.method != "DELETE":
        return not_allowed(("DELETE",))
    return replies.in_error_format(call.provider.contract, _deleted(call, asked, ident))


def _deleted(call: ResourceRequest, asked: RequestParts, ident: str) -> Response:
    """Delete the row that goes by `ident` on the wire."""
    if (refusal := _refusal(call, asked.headers, asked.query)) is not None:
        return refusal
    field = call.resource.field(call.table.columns[0])
    for row in call.backend.rows(call.place):
        if str(wire_format.to_wire(field, row.values[0])) == ident:
            call.backend.delete(call.place, row)
            return Response(status_code=204)
    return problem(404, "not_found", f"No `{call.resource.key}` row has this id.")


def not_allowed(methods: tuple[str, ...]) -> Response:
    """Return a 405 that names the methods there are."""
    names = ", ".join(methods)
    words = f"Allowed here: {names}."
    return problem(405, "method_not_allowed", words, headers={"allow": names})


def denied(denial: access.Denial) -> Response:
    """Return a 401, 403 or 400 with its challenge."""
    headers = {"www-authenticate": denial.challenge} if denial.challenge else None
    return problem(denial.status, denial.code, denial.message, headers=headers)


def _refusal(call: ResourceRequest, headers: Texts, query: Texts) -> Response | None:
    """Return the refusal that keeps a request from the rows, None if it may pass."""
    if wait := call.backend.admit(call.provider):
        limit = call.provider.contract.limit
        words = (
            f"At most {limit.requests} requests in {limit.window_ms // 1000} s;"
            f" come back in {-(-wait // 1000)} s."
        )
        return _come_back(call, 429, "too_many_requests", words, wait)
    denial = access.authorize(call.provider, call.backend, headers, query)
    return denied(denial) if denial is not None else None


def _without_key(call: ResourceRequest, query: Texts) -> dict[str, str]:
    """Return the query less the credential that may stand in it."""
    auth = call.provider.contract.auth
    if auth.kind != "key_query":
        return dict(query)
    return {name: text for name, text in query.items() if name != auth.name}


def _list(call: ResourceRequest, query: dict[str, str]) -> Response:
    """Return one page of the rows that pass the filters."""
    resource = call.resource
    filters = {field.name: field for field in resource.fields if field.filterable}
    pager = wire_format.PAGER_PARAMETERS[resource.pager.kind]
    fixed = {parameter.name: parameter for parameter in resource.required}
    if unknown := sorted(set(query) - set(filters) - set(pager) - set(fixed)):
        return _unknown("query parameter", unknown, (*fixed, *pager, *filters))
    for name, parameter in fixed.items():
        if query.get(name) != parameter.value:
            words = f"The query parameter `{name}` must be `{parameter.value}`."
            return problem(400, "missing_parameter", words)
    label = "/".join(call.place)
    part = wire_format.cut(resource.pager, query, label, call.backend.key)
    if isinstance(part, BadRequest):
        return problem(400, part.code, part.message)
    rows = _filtered(call, {n: t for n, t in query.items() if n in filters})
    return _page(call, rows, part, query)


def _filtered(call: ResourceRequest, wanted: dict[str, str]) -> tuple[NumberedRow, ...]:
    """Return the rows whose wire values equal the filters' texts."""
    rows = call.backend.rows(call.place)
    columns = call.table.columns
    for field in call.resource.fields:
        if field.name in wanted:
            text, i = wanted[field.name], columns.index(field.key)
            rows = tuple(
                row for row in rows if _text(wire_format.to_wire(field, row.values[i])) == text
            )
    return rows


def _text(value: WireValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _page(
    call: ResourceRequest, rows: tuple[NumberedRow, ...], part: Slice, query: Texts
) -> Response:
    """Return the rows of a slice, wrapped, with what paging needs beside them."""
    resource, backend = call.resource, call.backend
    chosen = rows[part.start : part.start + part.size]
    backend.note_rows(call.place, chosen)
    columns = call.table.columns
    items = wire_format.render_rows(resource, columns, [row.values for row in chosen])
    extras: dict[str, object] = {}
    headers: dict[str, str] = {}
    if resource.pager.kind != "none":
        extras["total"] = len(rows)
        headers["x-total-count"] = str(len(rows))
    end = part.start + part.size
    cursor = None
    if end < len(rows) and resource.pager.kind in ("cursor", "link"):
        cursor = wire_format.make_cursor(end, "/".join(call.place), backend.key)
    if resource.pager.kind == "cursor":
        extras["next_cursor"] = cursor
        if cursor:
            headers["x-next-cursor"] = cursor
    headers = {} if resource.wrapper else headers
    if resource.pager.kind == "link" and cursor:
        headers["link"] = _next_link(call, query, cursor)
    return json_reply(200, wire_format.wrap(resource.wrapper, items, extras), headers)


def _next_link(call: ResourceRequest, query: Texts, cursor: str) -> str:
    """Return the Link header of the next page (RFC 8288), filters and all."""
    words = urlencode({**query, "after": cursor})
    return f'<https://{call.provider.host}{call.resource.path}?{words}>; rel="next"'


def _create(call: ResourceRequest, query: dict[str, str], body: bytes) -> Response:
    """Validate a posted record, keep it, and return it as it is served."""
    if query:
        return _unknown("query parameter", sorted(query), ())
    fields = {field.name: field for field in call.resource.fields if field.writable}
    try:
        sent = bounded_json.decode(body)
    except ValueError:
        sent = None
    if not isinstance(sent, dict):
        return problem(400, "invalid_body", "The body must be a JSON object.")
    if unknown := sorted(set(sent) - set(fields)):
        return _unknown("field", unknown, tuple(fields))
    if missing := sorted(set(fields) - set(sent)):
        names = ", ".join(f"`{name}`" for name in missing)
        return problem(400, "missing_field", f"Missing from the body: {names}.")
    values: dict[str, Value] = {}
    for name, field in fields.items():
        value = wire_format.from_wire(field, sent[name])
        if value is None:
            kind = _kind(field)
            words = f"`{name}` has the wrong type; it is {kind}."
            return problem(400, "invalid_field", words)
        values[field.key] = value
    row = call.backend.create(call.place, values)
    served = wire_format.render_rows(call.resource, call.table.columns, [row])
    return json_reply(201, served[0])


def _kind(field: Field) -> str:
    """Return what a client must send, whatever the unit."""
    if field.kind == "money":
        return "a decimal number as text" if field.decimal else "a number"
    return field.kind


def _unknown(what: str, unknown: list[str], allowed: tuple[str, ...]) -> Response:
    """Return a 400 that names what is not known and what is."""
    wrong = ", ".join(f"`{name}`" for name in unknown)
    known = ", ".join(f"`{name}`" for name in allowed) or "none"
    code = "unknown_parameter" if what == "query parameter" else "unknown_field"
    return problem(400, code, f"Unknown {what}: {wrong}. Known: {known}.")

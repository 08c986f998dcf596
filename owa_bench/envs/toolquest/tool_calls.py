"""The suite's own tools, and calls of them that do one thing right.

The oracle makes calls from the served contract, the vector view also from the documented one. Pure:
a state and an instance key in, a tool call out.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from owa_bench.canonical import keyed_digest
from owa_bench.envs.toolquest import access, documents, wire_format
from owa_bench.envs.toolquest.backend import token_value
from owa_bench.envs.toolquest.state import ApiState, CollectionKey, next_start
from owa_bench.envs.toolquest.world import Contract, Provider, Value
from owa_bench.interfaces import ToolSpec

WAIT_LIMIT_S = 3600


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    """Return the schema of an object of the given properties and no others."""
    fixed = {"required": list(required)} if required else {}
    schema = {"type": "object", "properties": properties, **fixed}
    return {**schema, "additionalProperties": False}


def _list(items: dict[str, Any], **limits: int) -> dict[str, Any]:
    return {"type": "array", "items": items, **limits}


def _text(most: int, **more: Any) -> dict[str, Any]:
    return {"type": "string", "maxLength": most, **more}


_HANDLES = {
    "anyOf": [_text(16), _list(_text(16), minItems=1, maxItems=64)],
    "description": "A handle such as `art:3`, or several of equal shape.",
}
_NAMES = _list({"type": "string"}, maxItems=40)
_COUNT = {"type": "integer", "minimum": 0}
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}

TOOLS = (
    ToolSpec(
        name="http",
        about="Send one HTTP request. Answers status, headers, body and a handle; a"
        " long body is cut, the handle keeps it whole. `body` as an object is sent as"
        " JSON, or as a form when the content-type header says so.",
        parameters=_object(
            "method",
            "url",
            method={"type": "string", "enum": ["GET", "POST", "PUT", "PATCH", "DELETE"]},
            url=_text(2000, examples=["https://registry.example/"]),
            headers=_TEXTS,
            query={
                "type": "object",
                "additionalProperties": {"type": ["string", "integer", "number", "boolean"]},
            },
            body={"type": ["object", "string"]},
        ),
    ),
    ToolSpec(
        name="wait",
        about="Let simulated time pass, for rate limits.",
        parameters=_object(
            "seconds", seconds={"type": "number", "minimum": 0, "maximum": WAIT_LIMIT_S}
        ),
    ),
    ToolSpec(
        name="vault",
        about="Read the credential vault: without a name the list of entries, with one its value.",
        parameters=_object(name=_text(100)),
    ),
    ToolSpec(
        name="read",
        about="Read a long body from its handle, 3,500 characters at a time, whole or"
        " from a JSON pointer on.",
        parameters=_object(
            "handle", handle=_text(16, examples=["art:1"]), offset=_COUNT, pointer=_text(400)
        ),
    ),
    ToolSpec(
        name="table",
        about="Work on rows behind handles: join, filter, aggregate, sort, choose"
        " columns. Answers a new handle, the columns, and as many rows as fit.",
        parameters=_object(
            "source",
            source=_HANDLES,
            join=_object(
                "source",
                "left",
                "right",
                source=_HANDLES,
                left={"type": "string"},
                right={"type": "string"},
                kind={"type": "string", "enum": ["inner", "left"]},
            ),
            where={"type": "object"},
            group=_NAMES,
            aggregate={
                **_TEXTS,
                "description": "Output column to `count`, `sum:COLUMN`,"
                " `min:COLUMN` or `max:COLUMN`.",
            },
            sort={**_NAMES, "description": "Columns; `-name` sorts downwards."},
            columns=_NAMES,
            offset=_COUNT,
            limit={"type": "integer", "minimum": 1},
        ),
    ),
    ToolSpec(
        name="write_artifact",
        about="Hand in the answer under the name `answer`; the last one counts. `rows`"
        " are lists in the order of `columns`, objects, or a handle. `sources` are"
        " handles they came from.",
        parameters=_object(
            "name",
            "columns",
            "rows",
            name=_text(100, examples=["answer"]),
            columns=_NAMES,
            rows={"anyOf": [_list({"type": ["array", "object"]}, maxItems=2000), _text(16)]},
            sources=_list(_text(16), maxItems=200),
        ),
    ),
)


ToolAction = dict[str, Any]
FORM = "application/x-www-form-urlencoded"


class Credentials(NamedTuple):
    """What a request carries to prove itself."""

    headers: dict[str, str]
    query: dict[str, str]


def call(tool: str, **arguments: Any) -> ToolAction:
    """Return a tool call; arguments that are None or empty are left out."""
    kept = {k: v for k, v in arguments.items() if v is not None and v != {}}
    return {"tool": tool, "arguments": kept}


def get(url: str) -> ToolAction:
    """Return the call that reads an open page."""
    return call("http", method="GET", url=url)


def home(provider: Provider) -> ToolAction:
    """Return the call that reads a vendor's home page."""
    return get(f"https://{provider.host}/")


def docs(provider: Provider) -> ToolAction:
    """Return the call that reads a vendor's API description."""
    return get(f"https://{provider.host}{documents.OPENAPI_PATH}")


def credential(state: ApiState, provider: Provider) -> ToolAction | None:
    """Return the call that reads the next working vault entry, None if all are.

    Args:
        state: The state.
        provider: The vendor.
    Returns: The call, None where every working entry was read.
    """
    for secret in provider.secrets:
        if not secret.revoked and (provider.key, secret.name) not in state.secrets:
            return call("vault", name=secret.name)
    return None


def working_secret(provider: Provider) -> str:
    """Return the credential that works now, "" if none does."""
    return next((s.value for s in provider.secrets if not s.revoked), "")


def token(state: ApiState, provider: Provider, contract: Contract) -> ToolAction:
    """Return the call that asks for an access token, by Basic and a form.

    The grant is the contract's; a credential of another kind is sent as it is.

    Args:
        state: The state.
        provider: The vendor.
        contract: The contract to go by, served or documented.
    """
    value = working_secret(provider)
    body = {"grant_type": access.GRANTS[contract.auth.kind]}
    if contract.auth.kind == "refresh":
        secret = next(s for s in provider.secrets if s.value == value)
        value = value.rpartition(":")[0]
        body["refresh_token"] = state.refresh_token(provider.key, secret)
    if contract.auth.scope:
        body["scope"] = contract.auth.scope
    headers = {"Authorization": f"Basic {access.basic(value)}", "Content-Type": FORM}
    url = f"https://{provider.host}{contract.auth.token_path}"
    return call("http", method="POST", url=url, headers=headers, body=body)


def credentials(state: ApiState, key: bytes, provider: Provider, contract: Contract) -> Credentials:
    """Return what proves a request, by `contract`; the newest token and key.

    Args:
        state: The state.
        key: The instance's key.
        provider: The vendor.
        contract: The contract to go by, served or documented.
    Returns: Headers and query parameters.
    """
    auth = contract.auth
    if auth.kind == "none":
        return Credentials({}, {})
    if auth.kind in access.TOKEN_KINDS:
        grant = state.grants.get(provider.key)
        bearer = token_value(key, provider.key, grant.number) if grant else ""
        return Credentials({"Authorization": f"Bearer {bearer}"}, {})
    value = working_secret(provider)
    if auth.kind == "basic":
        return Credentials({"Authorization": f"Basic {access.basic(value)}"}, {})
    if auth.kind == "key_header":
        return Credentials({auth.name: value}, {})
    return Credentials({}, {auth.name: value})


def page(state: ApiState, key: bytes, place: CollectionKey, contract: Contract) -> ToolAction:
    """Return the call that fetches the first rows of `place` not served yet.

    Args:
        state: The state.
        key: The instance's key.
        place: The collection.
        contract: The contract to go by, served or documented.
    """
    provider = state.vendors[place[0]]
    resource = contract.resource(place[1])
    proof = credentials(state, key, provider, contract)
    start, size = next_start(state, place), resource.pager.size
    query: dict[str, Any] = dict(proof.query)
    if resource.pager.kind == "offset":
        query |= {"offset": start, "limit": size}
    elif resource.pager.kind == "page":
        query |= {"page": start // size + 1, "per_page": size}
    elif resource.pager.kind in ("cursor", "link"):
        query["limit"] = size
        if start:
            first = wire_format.PAGER_PARAMETERS[resource.pager.kind][0]
            query[first] = wire_format.make_cursor(start, "/".join(place), key)
    query |= {parameter.name: parameter.value for parameter in resource.required}
    url = f"https://{provider.host}{resource.path}"
    return call("http", method="GET", url=url, headers=proof.headers, query=query)


def post(
    state: ApiState,
    key: bytes,
    place: CollectionKey,
    contract: Contract,
    values: Mapping[str, Value],
) -> ToolAction:
    """Return the call that posts a record, given by field key.

    Args:
        state: The state.
        key: The instance's key.
        place: The collection.
        contract: The contract to go by, served or documented.
        values: Values by field key.
    """
    provider = state.vendors[place[0]]
    resource = contract.resource(place[1])
    proof = credentials(state, key, provider, contract)
    body = {
        field.name: wire_format.to_wire(field, values[field.key])
        for field in resource.fields
        if field.writable and field.key in values
    }
    headers = dict(proof.headers)
    if resource.keyed:  # the same record under the same name, however often it is sent
        name = "/".join((*place, *(str(value) for value in values.values())))
        headers["Idempotency-Key"] = keyed_digest(key, "record", name).hex()[:24]
    return call(
        "http",
        method="POST",
        url=f"https://{provider.host}{resource.path}",
        headers=headers,
        query=proof.query,
        body=body,
    )


def wait(milliseconds: int) -> ToolAction:
    """Return the call that lets time pass, in whole seconds."""
    return call("wait", seconds=-(-milliseconds // 1000))

"""The vector view: what a state is in numbers, and the calls its macros stand for.

Vendors and collections take slots in the order in which the goal names them, those of a honeypot
too. A plain macro goes by the documents; its `_adapted` twin goes by what the server has shown
since (an error or a page of that collection). A macro that makes no sense now is masked. Numbers
are of what was asked and served, never of what is left.
"""

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from owa_bench.envs.toolquest import answers, tool_calls
from owa_bench.envs.toolquest.access import TOKEN_KINDS
from owa_bench.envs.toolquest.families import RuleAnswer, solve
from owa_bench.envs.toolquest.state import ApiState, CollectionKey, is_complete
from owa_bench.envs.toolquest.tool_calls import ToolAction
from owa_bench.envs.toolquest.wire_format import WireValue, from_wire, to_wire
from owa_bench.envs.toolquest.world import ApiWorld, Contract, Field, Value

VENDORS = 3
PLACES = 5
_ORDERS = 12  # orders posted that read as 1
_ROWS = 50  # rows served that read as .5
_REFUSALS = (400, 401, 404, 429)

MACROS = (
    "registry",
    *(f"{what}_{i}" for what in ("home", "docs", "key", "token") for i in range(VENDORS)),
    *(f"page_{i}" for i in range(PLACES)),
    *(f"page_{i}_adapted" for i in range(PLACES)),
    "answer",
    "answer_adapted",
    "post",
    "post_adapted",
)
_ENTRIES = 3  # what the goal gives: documents, home pages, or a registry
FEATURES = _ENTRIES + 3 + VENDORS * 6 + PLACES * (2 + len(_REFUSALS))


def places(world: ApiWorld) -> tuple[CollectionKey, ...]:
    """Return the collections that the goal names, in order of use.

    Args:
        world: A world; a honeypot lacks one of them.
    Returns: Keys of vendor and collection.
    """
    owners = {resource: vendor for vendor, resource in world.needed}
    titles = {
        title: provider.key
        for provider in world.providers
        for title in (provider.title, *(host.title for host in provider.former_hosts))
    }
    sources = json.loads(world.goal.spec)["sources"]
    return tuple(
        (owners.get(source["id"]) or titles[source["provider"]], source["id"])
        for source in sources
        if not source["optional"]
    )


def vendors(world: ApiWorld) -> tuple[str, ...]:
    """Return the keys of the vendors that the goal names, in order of use."""
    return tuple(dict.fromkeys(place[0] for place in places(world)))[:VENDORS]


def features(state: ApiState) -> npt.NDArray[np.float32]:
    """Return the state in numbers from 0 to 1."""
    world = state.world
    given = min(world.tier, _ENTRIES)
    values = [float(given == entry) for entry in range(1, _ENTRIES + 1)]
    values.append(float(state.registry_read))
    values.append(float(state.artefact is not None))
    values.append(min(1.0, len(state.records) / _ORDERS))
    keys = vendors(world)
    for i in range(VENDORS):
        values += _vendor_features(state, keys[i]) if i < len(keys) else [0.0] * 6
    width = 2 + len(_REFUSALS)
    named = places(world)
    for i in range(PLACES):
        there = i < len(named)
        values += _place_features(state, named[i]) if there else [0.0] * width
    return np.asarray(values, dtype=np.float32)


def _vendor_features(state: ApiState, key: str) -> list[float]:
    return [
        1.0,
        float(key in state.homes),
        float(key in state.docs),
        float(state.has_secret(key)),
        float(state.has_token(key)),
        float(state.wait_ms(key) > 0),
    ]


def _place_features(state: ApiState, place: CollectionKey) -> list[float]:
    """Return presence, how many rows were served, and the kind of the last refusal."""
    served = state.fetched.get(place, 0).bit_count()
    refusal = state.refusals.get(place, 0)
    kinds = (float(refusal == status) for status in _REFUSALS)
    return [1.0, served / (served + _ROWS), *kinds]


def macros(state: ApiState, key: bytes) -> tuple[ToolAction | None, ...]:
    """Return the tool call behind each of MACROS, None where it makes no sense.

    Args:
        state: The state.
        key: The instance's key.
    """
    world = state.world
    calls: list[ToolAction | None] = [_registry(state)]
    keys, named = vendors(world), places(world)
    for make in (_home, _docs, _key, _token):
        calls += [make(state, keys[i]) if i < len(keys) else None for i in range(VENDORS)]
    for adapted in (False, True):
        calls += [
            _page(state, key, named[i], adapted=adapted)
            if i < len(named) and named[i] in world.needed
            else None
            for i in range(PLACES)
        ]
    # On a honeypot a collection is missing, so there is nothing to make an answer of.
    complete = not world.honeypot and all(is_complete(state, place) for place in world.needed)
    for make_answer in (_hand_in, _post):
        for adapted in (False, True):
            call = make_answer(state, key, adapted=adapted) if complete else None
            calls.append(call)
    return tuple(calls)


def _registry(state: ApiState) -> ToolAction | None:
    address = state.world.registry
    return tool_calls.get(address) if address and not state.registry_read else None


def _home(state: ApiState, key: str) -> ToolAction | None:
    """Return the way to a home page, known from the brief or the registry."""
    world = state.world
    known = world.tier < 3 or state.registry_read
    if world.tier < 2 or not known or key in state.homes:
        return None
    return tool_calls.home(state.vendors[key])


def _docs(state: ApiState, key: str) -> ToolAction | None:
    """Return the way to the documents, known from the brief or the home page."""
    if state.vendors[key].undocumented:
        return None
    if key in state.docs or (state.world.tier > 1 and key not in state.homes):
        return None
    return tool_calls.docs(state.vendors[key])


def _described(state: ApiState, key: str) -> bool:
    """Return whether a vendor's documents were read, or there are none to read."""
    return key in state.docs or (state.vendors[key].undocumented and key in state.homes)


def _key(state: ApiState, key: str) -> ToolAction | None:
    """Return the reading of a credential that is not read yet."""
    return tool_calls.credential(state, state.vendors[key])


def _token(state: ApiState, key: str) -> ToolAction | None:
    """Return the request for a token where none lives."""
    provider = state.vendors[key]
    ready = _described(state, key) and state.has_secret(key)
    needed = provider.documented.auth.kind in TOKEN_KINDS
    if not needed or not ready or state.has_token(key):
        return None
    return tool_calls.token(state, provider, provider.documented)


def _page(state: ApiState, key: bytes, place: CollectionKey, *, adapted: bool) -> ToolAction | None:
    provider = state.vendors[place[0]]
    auth = provider.documented.auth.kind
    ready = _described(state, place[0]) and (auth == "none" or state.has_secret(place[0]))
    if auth in TOKEN_KINDS and place[0] not in state.grants:
        ready = False
    if not ready or is_complete(state, place) or (adapted and not _has_answered(state, place)):
        return None
    contract = provider.contract if adapted else provider.documented
    return tool_calls.page(state, key, place, contract)


def _has_answered(state: ApiState, place: CollectionKey) -> bool:
    """Return whether the server has said anything about a collection."""
    return place in state.refusals or place in state.fetched


def _hand_in(state: ApiState, key: bytes, *, adapted: bool) -> ToolAction | None:
    """Return the artefact that follows from the rows that were served."""
    if state.world.writes:
        return None
    answer = _answer(state, adapted=adapted)
    rows = [list(row) for row in answer.rows]
    return tool_calls.call("write_artifact", name="answer", columns=list(answer.columns), rows=rows)


def _post(state: ApiState, key: bytes, *, adapted: bool) -> ToolAction | None:
    """Return the next record that the served rows ask for."""
    if not state.world.writes:
        return None
    wanted = answers.required_writes(state.world)[0]
    answer = _answer(state, adapted=adapted)
    left = answers.open_writes(wanted._replace(rows=answer.rows), state)
    if not left:
        return None
    provider = state.vendors[wanted.place[0]]
    contract = provider.contract if adapted else provider.documented
    values = dict(zip(answer.columns, left[0], strict=True))
    return tool_calls.post(state, key, wanted.place, contract, values)


def _answer(state: ApiState, *, adapted: bool) -> RuleAnswer:
    """Return what the family's rule makes of the rows, read in the unit believed."""
    world = state.world
    spec: dict[str, Any] = json.loads(world.goal.spec)
    ids = [source["id"] for source in spec["sources"] if not source["optional"]]
    sources = {
        name: _rows_as_read(world, place, adapted=adapted)
        for name, place in zip(ids, world.needed, strict=True)
    }
    try:
        return solve(world.goal.family, sources, spec["rule"])
    except (KeyError, StopIteration):  # keys that do not meet as they are believed
        answer = spec["answer"] or spec["writes"]
        return RuleAnswer(tuple(answer["columns"]), ())


def _rows_as_read(
    world: ApiWorld, place: CollectionKey, *, adapted: bool
) -> list[dict[str, Value]]:
    """Return a table's rows in cents, as the documents or the server have the unit."""
    provider = world.provider(place[0])
    table = provider.table(place[1])
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    if adapted:
        return rows
    for name in table.columns:
        served = provider.contract.resource(place[1]).field(name)
        believed = _documented(provider.documented, place, name, served)
        if _appearance(served) != _appearance(believed):
            for row in rows:
                row[name] = _read(believed, to_wire(served, row[name]))
    return rows


def _appearance(field: Field) -> tuple[object, ...]:
    """Return what decides how a field's values look."""
    names = tuple(choice.name for choice in field.choices)
    return (field.unit, field.decimal, names, field.style, field.shift)


def _read(field: Field, shown: WireValue) -> Value:
    """Return a wire value as a reader of the documents takes it."""
    value = from_wire(field, shown)
    if value is None:
        value = round(float(shown)) if field.kind == "money" else str(shown)
    return value


def _documented(contract: Contract, place: CollectionKey, key: str, served: Field) -> Field:
    """Return a field as the documents have it, as it is served if they lack it."""
    fields = contract.resource(place[1]).fields
    return next((field for field in fields if field.key == key), served)

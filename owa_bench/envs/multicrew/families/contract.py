"""Contract: each item is a record type whose JSON Schema is to be written.

A fragment is a schema; it is accepted if it takes every record that meets the item's clauses and
refuses every record that breaks one of them. To negotiate are record types whose clauses have two
readings, on which one role decides; which role stands in somebody's document.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from owa_bench.envs.multicrew.draws import (
    ClauseDraft,
    Content,
    CrewDraws,
    Family,
    Fragment,
    Values,
    owned,
)
from owa_bench.envs.multicrew.world import CrewItem
from owa_bench.shells.schemas import ArgumentCheck, compile_schema

_FIELDS = ("tag", "kind", "name", "amount")
_TEXT = {"type": "string", "maxLength": 40}
_TEXTS = {"type": "array", "items": _TEXT, "maxItems": 8}
_SIZE = {"type": "integer", "minimum": 0, "maximum": 100_000}
_FIELD = {
    "type": "object",
    "properties": {
        "type": {"enum": ["string", "integer"]},
        "const": _TEXT,
        "enum": _TEXTS,
        "minLength": _SIZE,
        "maxLength": _SIZE,
        "minimum": _SIZE,
        "maximum": _SIZE,
    },
    "required": ["type"],
    "additionalProperties": False,
}
FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "properties": {
            "type": "object",
            "properties": dict.fromkeys(_FIELDS, _FIELD),
            "additionalProperties": False,
        },
        "required": {**_TEXTS, "items": {"enum": list(_FIELDS)}},
    },
    "required": ["properties", "required"],
    "additionalProperties": False,
}
_ABOUT = (
    "Each item is a record type. Its fragment is the part of a JSON Schema that says "
    'what its records look like: {"properties": {FIELD: {..}}, "required": [FIELD, ..]}'
    ", with one field for each of its clauses. Clause tag: field tag is the text given "
    "(const). Clause kinds: field kind is one of two codes (enum). Clause limit: field "
    "name is text of at most that many letters (maxLength), 1 at least (minLength). "
    "Clause range: field amount is a whole number from the first to the second value "
    "(minimum, maximum). All fields are required, others are not described. Hidden "
    "records decide: those that meet the clauses must pass, those that break one must "
    "not."
)
_CLAUSES = ("tag", "kinds", "limit", "range")


def draw(draws: CrewDraws, items: tuple[CrewItem, ...]) -> Content:
    """Return two or three clauses for each item, a code always among them.

    Args:
        draws: The streams.
        items: Without clauses.
    """
    draft = ClauseDraft()
    made = []
    for item in items:
        order = draws.rng.permutation(len(_CLAUSES)).tolist()
        chosen = {_CLAUSES[i] for i in order[: draws.between(2, 3)]}
        chosen |= {draws.pick(("tag", "kinds"))}
        names = []
        for attribute in (name for name in _CLAUSES if name in chosen):
            value, other = _values(draws, attribute)
            owner = owned(draws, item)
            names.append(draft.add(item.name, attribute, owner, value, other))
        made.append(replace(item, clauses=tuple(names)))
    return draft.content(made)


def _values(draws: CrewDraws, attribute: str) -> tuple[str, str]:
    """Return a value of an attribute and a wrong one."""
    if attribute == "tag":
        return draws.code(), draws.code()
    if attribute == "kinds":
        one, two, three = draws.code(), draws.code(), draws.code()
        return f"{one} and {two}", f"{one} and {three}"
    if attribute == "limit":
        limit = draws.between(12, 60)
        return str(limit), str(limit + draws.between(2, 9))
    low = draws.between(2, 40)
    high = low + draws.between(20, 900)
    return f"{low} and {high}", f"{low} and {high + draws.between(1, 90)}"


def _records(item: CrewItem, values: Values) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield records with whether they meet the item's clauses."""
    good: dict[str, list[Any]] = {}
    bad: dict[str, list[Any]] = {}
    for name in item.clauses:
        attribute, value = name.rpartition(".")[2], values[name]
        first, _, second = value.partition(" and ")
        if attribute == "tag":
            good["tag"], bad["tag"] = [value], [f"{value}x", "", 7]
        elif attribute == "kinds":
            good["kind"], bad["kind"] = [first, second], [f"{first}{second}", "", 3]
        elif attribute == "limit":
            good["name"] = ["x", "x" * int(value)]
            bad["name"] = ["", "x" * (int(value) + 1), 5]
        else:
            low, high = int(first), int(second)
            good["amount"], bad["amount"] = [low, high], [low - 1, high + 1, "9"]
    base = {field: options[0] for field, options in good.items()}
    yield base, True
    for field in good:
        yield from (({**base, field: value}, True) for value in good[field][1:])
        yield from (({**base, field: value}, False) for value in bad[field])
        yield {name: base[name] for name in base if name != field}, False
    yield {**base, "remark": "free"}, True


def _check(fragment: Fragment) -> ArgumentCheck:
    return compile_schema({"type": "object", **fragment})


def accepts(
    item: CrewItem, values: Values, before: Mapping[str, Fragment], fragment: Fragment
) -> bool:
    """Return whether a schema tells records that meet the clauses from others.

    Args:
        item: The item.
        values: Of its clauses.
        before: Plays no part: what it builds on is pinned by revision.
        fragment: The schema.
    Returns: Whether every hidden record is judged rightly.
    """
    check = _check(fragment)
    return all((check(r, "") is None) == good for r, good in _records(item, values))


def solution(item: CrewItem, values: Values, before: Mapping[str, Fragment]) -> dict[str, Any]:
    """Return the schema that the clauses ask for.

    Args:
        item: The item.
        values: Of its clauses.
        before: Plays no part.
    """
    fields: dict[str, Any] = {}
    for name in item.clauses:
        attribute, value = name.rpartition(".")[2], values[name]
        first, _, second = value.partition(" and ")
        if attribute == "tag":
            fields["tag"] = {"type": "string", "const": value}
        elif attribute == "kinds":
            fields["kind"] = {"type": "string", "enum": [first, second]}
        elif attribute == "limit":
            limits = {"minLength": 1, "maxLength": int(value)}
            fields["name"] = {"type": "string", **limits}
        else:
            limits = {"minimum": int(first), "maximum": int(second)}
            fields["amount"] = {"type": "integer", **limits}
    return {"properties": fields, "required": list(fields)}


FAMILY = Family(
    name="contract",
    about=_ABOUT,
    form=FORM,
    draw=draw,
    problem=lambda item, fragment: "",
    accepts=accepts,
    solution=solution,
)
NEGOTIATE = FAMILY._replace(name="negotiate", decided=True)

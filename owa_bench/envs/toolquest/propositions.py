"""World propositions: what an episode asks about its world, and what is true."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from owa_bench.worlds.api import ApiResource, ApiWorld, Proposition, Table, Value

PROPOSITION_KINDS = ("unit", "duplicate", "bound", "docs")


class PropositionSpec(NamedTuple):
    """A proposition without its truth, and its machine form for the goal."""

    proposition: Proposition
    spec: dict[str, object]


def truths(world: ApiWorld) -> tuple[Proposition, ...]:
    """Return the propositions of `world` with their truth in this very world.

    Drift changes the truth of `unit` and `docs`, so an episode is asked about the world
    it begins in.
    """
    return tuple(
        msgspec.structs.replace(p, truth=_fact(world, p) != p.negated)
        for p in world.propositions
    )


def unit(
    source: str, vendor: str, resource: str, field: str, title: str, *, dollars: bool
) -> PropositionSpec:
    """Return the question in which unit a money field is served."""
    name, claim = f"unit-{source}", "dollars" if dollars else "cents"
    text = (
        f"The API of {title} serves the money field `{field}` of source `{source}` in "
        f"{claim}, whatever its documents say."
    )
    return _question(
        name,
        "unit",
        text,
        (vendor, resource, field),
        dollars,
        {"source": source, "field": field, "claim": claim},
    )


def duplicate(
    source: str,
    vendor: str,
    resource: str,
    title: str,
    pair: tuple[str, str],
    fields: tuple[str, ...] = (),
) -> PropositionSpec:
    """Return the question whether two rows are equal in all but the id, or in `fields`.

    Named fields are compared without regard to capital letters.
    """
    first, second = pair
    what = "one posting made twice: equal in every field but the id."
    spec: dict[str, object] = {"source": source, "rows": [first, second]}
    if fields:
        names = " and ".join(f"`{field}`" for field in fields)
        what = f"of one customer: equal in {names}, capital letters aside."
        spec["fields"] = list(fields)
    return _question(
        f"duplicate-{source}",
        "duplicate",
        f"At {title}, {first} and {second} of source `{source}` are {what}",
        (vendor, resource, first, second, *fields),
        False,
        spec,
    )


def bound(
    source: str,
    vendor: str,
    resource: str,
    field: str,
    where: Sequence[tuple[str, Value]],
    text: str,
) -> PropositionSpec:
    """Return the question whether a bound is inclusive."""
    keys = tuple(str(part) for pair in where for part in pair)
    return _question(
        f"bound-{source}",
        "bound",
        text,
        (vendor, resource, field, *keys),
        False,
        {"source": source, "field": field, "where": dict(where)},
    )


def docs(
    source: str, vendor: str, resource: str, title: str, *, differ: bool
) -> PropositionSpec:
    """Return the question whether the documents of a collection are right."""
    claim = "differ" if differ else "agree"
    verb = "differ from" if differ else "agree with"
    text = (
        f"The documents of {title} on source `{source}` {verb} what is served: path, "
        "fields, units, formats, allowed values, required parameters, wrapper and "
        "paging."
    )
    return _question(
        f"docs-{source}",
        "docs",
        text,
        (vendor, resource),
        differ,
        {"source": source, "claim": claim},
    )


def _question(
    name: str,
    kind: str,
    text: str,
    subject: tuple[str, ...],
    negated: bool,
    spec: dict[str, object],
) -> PropositionSpec:
    proposition = Proposition(
        name=name, kind=kind, text=text, truth=False, subject=subject, negated=negated
    )
    return PropositionSpec(proposition, {"id": name, "kind": kind, **spec})


def _fact(world: ApiWorld, proposition: Proposition) -> bool:
    """Return whether the fact that the kind names holds, before any negation."""
    vendor, resource, *rest = proposition.subject
    provider = world.provider(vendor)
    if proposition.kind == "unit":
        return provider.contract.resource(resource).field(rest[0]).unit == "cents"
    if proposition.kind == "docs":
        served = provider.contract.resource(resource)
        return _told(provider.documented.resource(resource)) == _told(served)
    table = provider.table(resource)
    if proposition.kind == "duplicate":
        return _equal(table, *rest)
    field, *where = rest
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=True))
        if all(str(cells[k]) == v for k, v in zip(*[iter(where)] * 2, strict=True)):
            return bool(cells[field])
    raise KeyError(proposition.name)


def _equal(table: Table, first: str, second: str, *fields: str) -> bool:
    """Return whether two rows are equal in all but the id, or in `fields`."""
    rows = {row[0]: row for row in table.rows}
    if not fields:
        return rows[first][1:] == rows[second][1:]
    places = [table.columns.index(field) for field in fields]
    return all(
        str(rows[first][i]).casefold() == str(rows[second][i]).casefold()
        for i in places
    )


def _told(resource: ApiResource) -> tuple[object, ...]:
    """Return what documents say of a collection and a look at it can refute."""
    return (
        resource.path,
        resource.wrapper,
        resource.pager,
        resource.required,
        tuple(
            (f.name, f.unit, f.decimal, f.style, tuple(c.name for c in f.choices))
            for f in resource.fields
        ),
    )

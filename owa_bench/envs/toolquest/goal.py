"""Goals and world propositions: their text, their machine form, and what is true.

The machine form is described in docs/toolquest.md#goal. Drift changes the truth of the kinds `unit`
and `docs`, so an episode is asked about the world it begins in.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from owa_bench.envs.toolquest import world as api
from owa_bench.envs.toolquest.draws import IntegerDraws
from owa_bench.envs.toolquest.task_spec import SourceRows, SourceSpec, TaskSpec

PROPOSITION_KINDS = ("unit", "duplicate", "bound", "docs_agree", "docs_differ")
REGISTRY = "https://registry.example/"


class PropositionSpec(NamedTuple):
    """A proposition without its truth, and its machine form for the goal."""

    proposition: api.Proposition
    spec: dict[str, object]


def entry(provider: api.Provider, tier: int) -> str:
    """Return the address of a vendor that the brief names.

    Args:
        provider: The vendor.
        tier: 1 to 4.
    Returns: Its API description at tier 1, its home page at tier 2, "" above.
    """
    if tier == 1:
        return f"https://{provider.host}/openapi.json"
    return f"https://{provider.host}/" if tier == 2 else ""


def goal(
    tier: int, task: TaskSpec, vendors: Mapping[str, api.Provider], asked: Sequence[PropositionSpec]
) -> api.Goal:
    """Return the goal of a task.

    Args:
        tier: 1 to 4.
        task: The drawn task.
        vendors: The drawn vendors by key.
        asked: The propositions of the episode.
    Returns: The goal in words and for machines.
    """
    family = task.family
    columns = list(family.columns)
    writes = {"source": family.writes, "method": "POST", "columns": columns}
    spec = {
        "family": family.name,
        "registry": REGISTRY if tier >= 3 else None,
        "sources": [_source(tier, s, vendors[s.vendor], task) for s in task.sources],
        "rule": dict(task.rule),
        "answer": None if family.writes else {"columns": columns},
        "writes": writes if family.writes else None,
        "invariants": [{"kind": i.kind, "of": list(i.of)} for i in task.invariants],
        "propositions": [question.spec for question in asked],
    }
    names = {key: provider.title for key, provider in vendors.items()}
    words = family.text.format(**names, **task.rule)
    stated = (invariant.text for invariant in task.invariants)
    return api.Goal(
        family=family.name,
        text=" ".join((words, *stated, _way_in(tier, vendors))),
        spec=json.dumps(spec, separators=(",", ":")),
    )


def _way_in(tier: int, vendors: Mapping[str, api.Provider]) -> str:
    """Return the sentence of the brief that says where to begin."""
    if tier >= 3:
        return f"Vendors are listed in the service registry at {REGISTRY}."
    what = "OpenAPI documents" if tier == 1 else "Home pages"
    places = (f"{p.title} {entry(p, tier)}" for p in vendors.values())
    return f"{what}: {', '.join(places)}."


def _source(
    tier: int, source: SourceSpec, provider: api.Provider, task: TaskSpec
) -> dict[str, Any]:
    template = next(t for t, _ in task.vendors if t.key == source.vendor)
    resource = template.resource(source.resource)
    return {
        "id": source.id,
        "provider": provider.title,
        "entry": entry(provider, tier) or None,
        "resource": resource.about,
        "optional": source.optional,
        "fields": {field.key: field.about for field in resource.fields},
    }


def needed_rows(task: TaskSpec) -> dict[str, SourceRows]:
    """Return the rows of every source that the answer rests on, by source id."""
    tables = {template.key: rows for template, rows in task.vendors}
    return {
        source.id: tables[source.vendor][source.resource]
        for source in task.sources
        if not source.optional
    }


def questions(
    draws: IntegerDraws, task: TaskSpec, vendors: Mapping[str, api.Provider]
) -> tuple[PropositionSpec, ...]:
    """Return the episode's propositions; which way each claims is a coin.

    Args:
        draws: Small integers.
        task: The drawn task.
        vendors: The drawn vendors by key.
    Returns: One for each unit, then one duplicate, one bound and one about documents.
    """
    titles = {source.id: vendors[source.vendor].title for source in task.sources}
    units = tuple(
        _unit(task, source, field, titles[source], dollars=draws.coin())
        for source, field in task.units
    )
    checked = draws.pick(task.docs)
    return (
        *units,
        _duplicate(task, titles[task.duplicate[0]]),
        _bound(task),
        _docs(task, checked, titles[checked], differ=draws.coin()),
    )


def _unit(task: TaskSpec, source: str, field: str, title: str, *, dollars: bool) -> PropositionSpec:
    """Return the question in which unit a money field is served."""
    claim = "dollars" if dollars else "cents"
    text = (
        f"The API of {title} serves the money field `{field}` of source `{source}` in "
        f"{claim}, whatever its documents say."
    )
    spec: dict[str, object] = {"source": source, "field": field, "claim": claim}
    return _question("unit", text, (*task.place(source), field), spec, negated=dollars)


def _duplicate(task: TaskSpec, title: str) -> PropositionSpec:
    """Return the question whether two rows are equal in all but the id, or in `fields`.

    Named fields are compared without regard to capital letters.
    """
    source, first, second = task.duplicate
    fields = task.family.same
    what = "one posting made twice: equal in every field but the id."
    spec: dict[str, object] = {"source": source, "rows": [first, second]}
    if fields:
        names = " and ".join(f"`{field}`" for field in fields)
        what = f"of one customer: equal in {names}, capital letters aside."
        spec["fields"] = list(fields)
    text = f"At {title}, {first} and {second} of source `{source}` are {what}"
    subject = (*task.place(source), first, second, *fields)
    return _question("duplicate", text, subject, spec)


def _bound(task: TaskSpec) -> PropositionSpec:
    """Return the question whether a bound is inclusive."""
    source, field, where, text = task.bound
    keys = (str(part) for pair in where.items() for part in pair)
    spec: dict[str, object] = {"source": source, "field": field, "where": dict(where)}
    return _question("bound", text, (*task.place(source), field, *keys), spec)


def _docs(task: TaskSpec, source: str, title: str, *, differ: bool) -> PropositionSpec:
    """Return the question whether the documents of a collection are right."""
    verb = "differ from" if differ else "agree with"
    text = (
        f"The documents of {title} on source `{source}` {verb} what is served: path, "
        "fields, units, formats, allowed values, required parameters, wrapper and "
        "paging."
    )
    spec: dict[str, object] = {"source": source, "claim": verb.split()[0]}
    return _question("docs", text, task.place(source), spec, negated=differ)


def _question(
    kind: str,
    text: str,
    subject: tuple[str, ...],
    spec: dict[str, object],
    *,
    negated: bool = False,
) -> PropositionSpec:
    name = f"{kind}-{spec['source']}"
    proposition = api.Proposition(
        name=name, kind=kind, text=text, truth=False, subject=subject, negated=negated
    )
    return PropositionSpec(proposition, {"id": name, "kind": kind, **spec})


def proposition_class(proposition: api.Proposition) -> str:
    """Return the class that has one reference: a claim on documents and its denial.

    Documents differ more often than they agree, so the wording tells how likely a claim is; the
    other kinds are true half of the time in either wording.
    """
    if proposition.kind != "docs":
        return proposition.kind
    return "docs_differ" if proposition.negated else "docs_agree"


def truths(world: api.ApiWorld) -> tuple[api.Proposition, ...]:
    """Return the propositions of `world` with their truth in this very world.

    One about a collection that a honeypot lacks is listed as in any other world, since a shorter
    list would tell; its truth stays as it was and resolves nothing.
    """
    return tuple(
        replace(p, truth=_fact(world, p) != p.negated) if is_served(world, p) else p
        for p in world.propositions
    )


def is_served(world: api.ApiWorld, proposition: api.Proposition) -> bool:
    """Return whether there is what a proposition is about.

    Args:
        world: The world.
        proposition: One that its goal lists.
    Returns: False for a collection that a honeypot lacks.
    """
    vendor, resource, *_ = proposition.subject
    resources = world.provider(vendor).contract.resources
    return any(served.key == resource for served in resources)


def _fact(world: api.ApiWorld, proposition: api.Proposition) -> bool:
    """Return whether the fact that the kind names holds, before any negation."""
    vendor, resource, *rest = proposition.subject
    provider = world.provider(vendor)
    if proposition.kind == "unit":
        return provider.contract.resource(resource).field(rest[0]).unit == "cents"
    if proposition.kind == "docs":
        documents = _refutable(provider.documented.resource(resource))
        return documents == _refutable(provider.contract.resource(resource))
    table = provider.table(resource)
    if proposition.kind == "duplicate":
        return _equal(table, *rest)
    field, *where = rest
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=True))
        if all(str(cells[k]) == v for k, v in zip(*[iter(where)] * 2, strict=True)):
            return bool(cells[field])
    raise KeyError(proposition.name)


def _equal(table: api.Table, first: str, second: str, *fields: str) -> bool:
    """Return whether two rows are equal in all but the id, or in `fields`."""
    rows = {row[0]: row for row in table.rows}
    if not fields:
        return rows[first][1:] == rows[second][1:]
    places = [table.columns.index(field) for field in fields]
    return all(str(rows[first][i]).casefold() == str(rows[second][i]).casefold() for i in places)


def _refutable(resource: api.ApiResource) -> tuple[object, ...]:
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

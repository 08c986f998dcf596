"""Task families, the data that one draws for a task, and the task's specification.

A family declares its vendors, its rule and its text; drawing one of its tasks gives rows. What all
families say the same way follows from the declaration: the directory that joins two vendors from
tier 3 on, control totals, sources, and which money fields are asked about.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from owa_bench.envs.toolquest.draws import IntegerDraws
from owa_bench.envs.toolquest.provider_templates import CONTROL, ProviderTemplate, ResourceTemplate
from owa_bench.envs.toolquest.world import Value

SourceRow = Mapping[str, Value]  # role -> value, money in cents
SourceRows = Sequence[SourceRow]
Sources = Mapping[str, SourceRows]  # source id -> rows
RuleParameters = Mapping[str, Value]
AnswerRow = tuple[Value, ...]
IdPair = tuple[str, str]
Sizes = Mapping[str, int]
_DIRECTORY_TIER = 3  # the first tier at which a directory holds the keys that join


class VendorLink(NamedTuple):
    """The join of two vendors: a key of `resource` and the key of the other vendor."""

    resource: str
    key: str
    value: str
    about: str


class Invariant(NamedTuple):
    """What holds of a task's rows whatever drifts, as the goal states it.

    `kind` is "gapless" (the periods of the source `of` cover every day), "counterpart" (some rows
    of the two "source.role" in `of` have equal amounts) or "cents" (every list of amounts has one
    that is no whole dollar). `text` says it in words.
    """

    kind: str
    of: tuple[str, ...]
    text: str


class TaskData(NamedTuple):
    """The data of one drawn task.

    `tables` are rows by collection, `links` the rows that hold both keys of the link, `pairs` the
    ids of a repeated posting and of two that only look alike, `where` the row whose bound is asked
    about.
    """

    tables: Mapping[str, SourceRows]
    links: SourceRows
    rule: RuleParameters
    pairs: tuple[IdPair, IdPair]
    where: Mapping[str, Value]


class TaskFamily(NamedTuple):
    """The declaration of a task family.

    `vendors` are templates, the one with the link first. `sizes` holds for each number of rows its
    value at tiers 1, 2 and from 3 on. `columns` are those of the answer or of the records to write,
    `sources` the collections that the answer rests on, in order of use. `text` is the goal, with
    `{vendor}` for a title and `{parameter}` for a value of the rule. `duplicates` is the source
    that may hold repeated postings, `same` the roles in which two are compared (empty: all but the
    id). `bound` is "source.field" of the question whether a bound is inclusive, `bound_text` its
    claim. `documents` are the sources whose documents may be asked about, only the first from tier
    3 on. A honeypot lacks the source `last`. Records go to `writes`. `spare` control totals may be
    missing where all amounts are whole dollars: a counterpart shows the unit. `invariants` hold in
    every task. `draw` makes a task, `solve` is the rule from rows to the rows of the answer.
    """

    name: str
    vendors: tuple[ProviderTemplate, ...]
    link: VendorLink
    sizes: str
    columns: tuple[str, ...]
    sources: tuple[str, ...]
    text: str
    duplicates: str
    bound: str
    bound_text: str
    documents: tuple[str, str]
    last: str
    draw: Callable[[IntegerDraws, Sizes], TaskData]
    solve: Callable[[Sources, RuleParameters], list[AnswerRow]]
    writes: str = ""
    same: tuple[str, ...] = ()
    spare: int = 0
    invariants: tuple[Invariant, ...] = ()

    @property
    def directory(self) -> ProviderTemplate:
        """The vendor that holds the link from tier 3 on."""
        fields = {f.key: f for f in self.vendors[0].resource(self.link.resource).fields}
        links = ResourceTemplate(
            "links",
            self.link.about,
            ("links", "mappings", "cross-references", "pairs", "relations"),
            (fields[self.link.key], fields[self.link.value]),
        )
        return ProviderTemplate(
            "directory",
            "directory",
            ("Directory", "Index", "Crossref"),
            "Says which keys of different vendors belong together.",
            (links,),
        )

    @property
    def templates(self) -> tuple[ProviderTemplate, ...]:
        """All vendors that its tasks may rest on."""
        return (*self.vendors, self.directory)


class SourceSpec(NamedTuple):
    """A source of the goal: its id, and the collection it stands for."""

    id: str
    vendor: str
    resource: str
    optional: bool = False


class BoundQuestion(NamedTuple):
    """The question whether a bound is inclusive: a boolean field of one row."""

    source: str
    field: str
    where: Mapping[str, Value]
    text: str


class TaskSpec(NamedTuple):
    """One drawn task of a family, before its vendors get names and contracts.

    `units` are (source, money field), `duplicate` is (source, id, id), `docs` the sources one of
    which is asked about, `invariants` what the goal states of the rows.
    """

    family: TaskFamily
    vendors: tuple[tuple[ProviderTemplate, Mapping[str, SourceRows]], ...]
    sources: tuple[SourceSpec, ...]
    rule: RuleParameters
    units: tuple[tuple[str, str], ...]
    duplicate: tuple[str, str, str]
    bound: BoundQuestion
    docs: tuple[str, ...]
    invariants: tuple[Invariant, ...]

    def place(self, source_id: str) -> tuple[str, str]:
        """Return vendor and collection of a source."""
        source = next(s for s in self.sources if s.id == source_id)
        return source.vendor, source.resource


def draw_task(family: TaskFamily, draws: IntegerDraws, tier: int) -> TaskSpec:
    """Return a drawn task of a family.

    Args:
        family: The declaration.
        draws: Small integers from the instance's base stream.
        tier: 1 to 4; it sets the sizes, and from 3 on a directory holds the link.
    Returns: The specification, with all control totals that its vendors may have.
    """
    link, joined = family.link, tier >= _DIRECTORY_TIER
    data = family.draw(draws, _sizes(family.sizes, tier))
    templates, tables = family.vendors, dict(data.tables)
    if joined:
        first = templates[0].without_field(link.resource, link.value)
        templates = (first, family.directory, *templates[1:])
        links = [{k: row[k] for k in (link.key, link.value)} for row in data.links]
        tables["links"] = draws.shuffled(links)
    source, field = family.bound.split(".")
    homes = {r.key: (t.key, r) for t in templates for r in t.resources}
    needed = [name for name in family.sources if name in homes]
    return TaskSpec(
        family=family,
        vendors=tuple((t, _rows_of(t, tables)) for t in templates),
        sources=(
            *(SourceSpec(name, homes[name][0], name) for name in needed),
            *_controls(templates),
        ),
        rule=data.rule,
        units=tuple(
            (name, f.key) for name in needed for f in homes[name][1].fields if f.kind == "money"
        ),
        duplicate=(family.duplicates, *data.pairs[draws.below(2)]),
        bound=BoundQuestion(source, field, data.where, family.bound_text.format(**data.where)),
        docs=family.documents[:1] if joined else family.documents,
        invariants=family.invariants,
    )


def _sizes(text: str, tier: int) -> Sizes:
    """Return numbers of rows by name, from `name TIER1 TIER2 TIER3; ..`."""
    rows = (part.split() for part in text.split(";"))
    return {name: int(numbers[min(tier, len(numbers)) - 1]) for name, *numbers in rows}


def _rows_of(
    template: ProviderTemplate, tables: Mapping[str, SourceRows]
) -> Mapping[str, SourceRows]:
    """Return a vendor's rows by collection, its control totals among them."""
    lists = [resource for resource in template.resources if resource != CONTROL]
    rows = {resource.key: tables[resource.key] for resource in lists}
    if CONTROL in template.resources:
        rows[CONTROL.key] = [
            {
                "list": resource.key,
                "count": len(rows[resource.key]),
                "total": sum(int(row[field.key]) for row in rows[resource.key]),
            }
            for resource in lists
            for field in resource.fields
            if field.kind == "money"
        ]
    return rows


def _controls(templates: Sequence[ProviderTemplate]) -> list[SourceSpec]:
    """Return the sources that hold control totals; none of them is needed."""
    keys = [t.key for t in templates if CONTROL in t.resources]
    names = [f"{key}_control" for key in keys] if len(keys) > 1 else ["control"]
    return [
        SourceSpec(name, key, CONTROL.key, optional=True)
        for name, key in zip(names, keys, strict=True)
    ]


# --- what the rules of several families need ------------------------------------------


def distinct(rows: SourceRows) -> list[SourceRow]:
    """Return the rows without repeated postings: equal in all but the id."""
    first: dict[tuple[tuple[str, Value], ...], SourceRow] = {}
    for row in rows:
        first.setdefault(tuple(cell for cell in row.items() if cell[0] != "id"), row)
    return list(first.values())


def key_map(sources: Sources, own: SourceRows, key: str, value: str) -> dict[Value, Value]:
    """Return a join of two vendors' keys.

    Args:
        sources: All rows by source; `links` is among them from tier 3 on.
        own: The rows that hold both keys below tier 3.
        key: Role of the key.
        value: Role of the other vendor's key.
    Returns: Key -> other vendor's key.
    """
    return {row[key]: row[value] for row in sources.get("links", own)}


def within(period: SourceRow, day: str) -> bool:
    """Return whether a day lies in a period.

    Args:
        period: A row with `first_day`, `last_day` and `last_day_included`.
        day: An ISO date.
    Returns: True from the first day to the last, which may be included or not.
    """
    last = str(period["last_day"])
    return str(period["first_day"]) <= day and (
        day < last or (day == last and bool(period["last_day_included"]))
    )

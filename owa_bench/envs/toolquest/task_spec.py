"""What a family hands to the generator: vendors with rows, rule, text and questions."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from owa_bench.envs.toolquest.draws import IntegerDraws
from owa_bench.envs.toolquest.provider_templates import (
    FieldTemplate,
    ProviderTemplate,
    ResourceTemplate,
    Rows,
)
from owa_bench.envs.toolquest.rows import AnswerRow, RuleParameters, Sources
from owa_bench.worlds.api import Value


class SourcePlan(NamedTuple):
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

    `text` holds `{vendor key}` where a title goes. `units` are (source, money field),
    `duplicate` is (source, id, id) and `same` the roles in which the two rows may be
    equal (empty: all but the id), `docs` the sources one of which is asked about,
    `last` the source that a honeypot lacks, `writes` the one that records go to, "" for
    a task that only reads. `spare` control totals may be missing where all amounts are
    whole dollars: a counterpart shows the unit.
    """

    vendors: tuple[tuple[ProviderTemplate, Mapping[str, Rows]], ...]
    sources: tuple[SourcePlan, ...]
    rule: Mapping[str, Value]
    text: str
    units: tuple[tuple[str, str], ...]
    duplicate: tuple[str, str, str]
    bound: BoundQuestion
    docs: tuple[str, ...]
    last: str
    writes: str = ""
    same: tuple[str, ...] = ()
    spare: int = 0


class TaskFamily(NamedTuple):
    """A kind of task: how one is drawn, and what is right.

    `vendors` are all that its tasks may rest on, `columns` those of the answer or of
    the records to write; `solve` is the rule from rows to the answer's rows.
    """

    name: str
    vendors: tuple[ProviderTemplate, ...]
    columns: tuple[str, ...]
    story: Callable[[IntegerDraws, int], TaskSpec]
    solve: Callable[[Sources, RuleParameters], list[AnswerRow]]


def link_vendor(
    left: FieldTemplate, right: FieldTemplate, about: str
) -> ProviderTemplate:
    """Return the directory that joins two vendors' keys at the highest tier."""
    links = ResourceTemplate(
        "links",
        about,
        ("links", "mappings", "cross-references", "pairs", "relations"),
        (left, right),
    )
    return ProviderTemplate(
        "directory",
        "directory",
        ("Directory", "Index", "Crossref"),
        "Says which keys of different vendors belong together.",
        (links,),
    )


def shed(plan: ProviderTemplate, resource_key: str, field_key: str) -> ProviderTemplate:
    """Return the vendor without one field, which the directory then holds."""
    resources = tuple(
        r._replace(fields=tuple(f for f in r.fields if f.key != field_key))
        if r.key == resource_key
        else r
        for r in plan.resources
    )
    return plan._replace(resources=resources)

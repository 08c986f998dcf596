"""The site world: what a web site means, and how it is shown.

`SiteSpec` holds meaning: tables, collections to browse, workflows to fill in, the goal.
`RenderPlan` holds presentation: words, controls, layout, pages, sign-in. Drift
touches the plan alone, so a goal and its answer never move. Money is in cents and dates
are ISO text; there are no floats, so equal worlds have equal bytes. Everything an
operator may change is found by canonical keys that no operator changes: label key,
collection key, workflow key, slot key.
"""

from functools import lru_cache
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from owa_bench.canonical import record_digest, sha256

Value = str | int
Kind = Literal["text", "date", "money", "number", "choice", "check"]
Control = Literal[
    "text", "area", "select", "radio", "listbox", "parts", "picker", "box", "switch"
]
Placement = Literal["label", "wrap", "placeholder", "aria"]
ListForm = Literal["table", "cards", "grid"]
Paging = Literal["pages", "more", "all"]
Filter = Literal["search", "tree", "none"]
DateForm = Literal["iso", "dmy", "mdy", "dots"]
AuthKind = Literal["none", "password", "two_step", "mailbox", "one_time", "redirect"]
Root = Literal["plain", "shadow", "frame"]
Nav = Literal["top", "side", "bottom"]

# Controls that may stand for a slot of each kind.
CONTROLS: dict[Kind, tuple[Control, ...]] = {
    "text": ("text", "area"),
    "date": ("text", "parts", "picker"),
    "money": ("text",),
    "number": ("text", "select"),
    "choice": ("select", "radio", "listbox"),
    "check": ("box", "switch"),
}
LIST_FORMS: tuple[ListForm, ...] = ("table", "cards", "grid")
DATE_FORMS: tuple[DateForm, ...] = ("iso", "dmy", "mdy", "dots")


class _Record(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """What all parts of a world are: frozen, told apart by content."""


# --- meaning --------------------------------------------------------------------------


class Table(_Record, frozen=True, kw_only=True, cache_hash=True):
    """Rows of the site's database; the first column is the key."""

    key: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...] = ()


class Column(_Record, frozen=True, kw_only=True, cache_hash=True):
    """A column that a page may show; its words are label `column:KEY`."""

    key: str
    kind: Kind


class Collection(_Record, frozen=True, kw_only=True, cache_hash=True):
    """A table that can be browsed: a list, and a page for every row.

    `title` is the column that names a row on pages, `category` the one of the tree
    filter, "" for none. `secluded` columns are shown on the row's own page alone.
    """

    key: str
    columns: tuple[Column, ...]
    title: str
    category: str = ""
    secluded: tuple[str, ...] = ()

    def column(self, key: str) -> Column:
        """Return the column of canonical key `key`; KeyError if there is none."""
        return _by_key(self.columns, key)


class Option(_Record, frozen=True, kw_only=True, cache_hash=True):
    """A value of a choice and the words it goes by."""

    value: str
    text: str


class Slot(_Record, frozen=True, kw_only=True, cache_hash=True):
    """One thing a workflow asks for; its words are label `slot:KEY`.

    `when` (slot, value): asked only then. `least` and `most` bound a number.
    """

    key: str
    kind: Kind
    options: tuple[Option, ...] = ()
    required: bool = True
    when: tuple[str, str] | None = None
    least: int = 1
    most: int = 9


class Check(_Record, frozen=True, kw_only=True, cache_hash=True):
    """A rule that a commit must meet, or it is refused with `text`.

    rule       arguments
    before     slot, slot            the first date lies before the second
    within     slot, column          a number is at most the record's column
    is         column, value         the record's column has this value
    known      slot, table, column, status
                                     a row with that status has this text
    free       first, last, table, column, from, to, status
                                     no such row of the record overlaps the two dates
    """

    rule: Literal["before", "within", "is", "known", "free"]
    arguments: tuple[str, ...]
    text: str


class Effect(_Record, frozen=True, kw_only=True, cache_hash=True):
    """What a commit writes: a new row, or columns of the record it began at.

    `values` are (column, source); a source is `slot:KEY`, `record:COLUMN` or `=TEXT`.
    For `take` the slot's number is taken off the record's column.
    """

    kind: Literal["insert", "update", "take"]
    table: str
    values: tuple[tuple[str, str], ...]


class Workflow(_Record, frozen=True, kw_only=True, cache_hash=True):
    """A form of one or more pages that ends in a commit.

    `record` is the collection it begins at, "" for the menu. `after` are the pairs
    (slot, earlier slot) that any order of pages must keep.
    """

    key: str
    slots: tuple[Slot, ...]
    effects: tuple[Effect, ...]
    record: str = ""
    checks: tuple[Check, ...] = ()
    after: tuple[tuple[str, str], ...] = ()

    def slot(self, key: str) -> Slot:
        """Return the slot of canonical key `key`; KeyError if there is none."""
        return _by_key(self.slots, key)


class Wanted(_Record, frozen=True, kw_only=True, cache_hash=True):
    """A row that must exist in the end; `key` None: a new one."""

    table: str
    key: Value | None
    values: tuple[tuple[str, Value], ...]


class Goal(_Record, frozen=True, kw_only=True, cache_hash=True):
    """The task in words and for machines.

    `workflow` is what commits it, at the row `record` ("" for none), with `values` by
    slot. `arguments` are what the words of the goal name: (name, text), at most 12.
    `evidence` are the cells (collection, row key, column) that the answer rests on.
    """

    family: str
    text: str
    workflow: str
    record: Value
    values: tuple[tuple[str, Value], ...]
    wanted: tuple[Wanted, ...]
    arguments: tuple[tuple[str, str], ...]
    evidence: tuple[tuple[str, Value, str], ...] = ()


class Proposition(_Record, frozen=True, kw_only=True, cache_hash=True):
    """A question about the site with its truth, which only the oracle reads.

    kind      subject                       the fact
    unit      collection, column            money stands in cents in the list
    default   workflow, slot, value         the form comes with this value
    fact      collection, row, column, v    the row's column is v
    """

    name: str
    kind: Literal["unit", "default", "fact"]
    text: str
    subject: tuple[str, ...]


class SiteSpec(_Record, frozen=True, kw_only=True, cache_hash=True):
    """What a site means. `today` is the site clock's date when an episode begins."""

    site: str
    tier: int
    today: str
    user: str
    tables: tuple[Table, ...]
    collections: tuple[Collection, ...]
    workflows: tuple[Workflow, ...]
    goal: Goal
    propositions: tuple[Proposition, ...] = ()
    honeypot: bool = False

    def table(self, key: str) -> Table:
        """Return the table of canonical key `key`; KeyError if there is none."""
        return _by_key(self.tables, key)

    def collection(self, key: str) -> Collection:
        """Return the collection of canonical key `key`; KeyError if there is none."""
        return _by_key(self.collections, key)

    def workflow(self, key: str) -> Workflow:
        """Return the workflow of canonical key `key`; KeyError if there is none."""
        return _by_key(self.workflows, key)


# --- presentation ---------------------------------------------------------------------


class Label(_Record, frozen=True, kw_only=True, cache_hash=True):
    """The words that a meaning goes by, and what else it could be called."""

    key: str
    text: str
    others: tuple[str, ...] = ()


class SlotPlan(_Record, frozen=True, kw_only=True, cache_hash=True):
    """How a slot is shown; `key` is WORKFLOW.SLOT, `default` what it comes with."""

    key: str
    control: Control
    placement: Placement = "label"
    default: Value = ""


class ListPlan(_Record, frozen=True, kw_only=True, cache_hash=True):
    """How a collection is shown.

    `columns` are those of the list, in order; `drawer` those folded away beneath a row.
    `cents`: money columns of the list are in cents; `told`: and their headers say so.
    `dates` overrules the site's form of dates in the list, "" for none, untold.
    `direct`: a row of the list carries its action itself, not only the row's page.
    """

    key: str
    form: ListForm
    columns: tuple[str, ...]
    drawer: tuple[str, ...] = ()
    size: int = 10
    paging: Paging = "pages"
    filter: Filter = "search"
    cents: bool = False
    told: bool = True
    dates: DateForm | Literal[""] = ""
    direct: bool = False


class FlowPlan(_Record, frozen=True, kw_only=True, cache_hash=True):
    """How a workflow is cut into pages of slot keys, with what comes between."""

    key: str
    pages: tuple[tuple[str, ...], ...]
    review: bool = False
    offer: bool = False


class Auth(_Record, frozen=True, kw_only=True, cache_hash=True):
    """How a visitor signs in. `early`: before anything else, not only before a form.

    `former` are passwords that no longer work, `spares` those it could change to.
    `expires` is after how many requests the sign-in lapses, 0 for never. `others` are
    kinds it could change to.
    """

    kind: AuthKind
    user: str
    password: str
    code: str
    early: bool = False
    former: tuple[str, ...] = ()
    expires: int = 0
    others: tuple[AuthKind, ...] = ()
    spares: tuple[str, ...] = ()


class Friction(_Record, frozen=True, kw_only=True, cache_hash=True):
    """What makes a site tiresome; times in simulated milliseconds, 0 for none.

    At most `requests` per `window_ms`; every reply takes `slow_ms`; a form is refused
    sooner than `least_ms` after it was served. `trap`: an input no person can see.
    `once`: a form can be sent only once.
    """

    requests: int = 0
    window_ms: int = 0
    slow_ms: int = 0
    least_ms: int = 0
    trap: bool = False
    once: bool = False


class RenderPlan(_Record, frozen=True, kw_only=True, cache_hash=True):
    """How a site is shown.

    `churn` moves every id, class, field name and route. `templates` are the layouts the
    world may use. `icons` are label keys of buttons shown as a sign with an accessible
    name. `hinted`: date fields say their form. `menu` is the order of the menu.
    """

    brand: str
    host: str
    auth_host: str
    start: Literal["home", "search"]
    labels: tuple[Label, ...]
    slots: tuple[SlotPlan, ...]
    lists: tuple[ListPlan, ...]
    flows: tuple[FlowPlan, ...]
    auth: Auth
    menu: tuple[str, ...]
    friction: Friction = Friction()
    template: int = 0
    templates: tuple[int, ...] = (0, 1, 2)
    theme: int = 0
    dense: bool = False
    nav: Nav = "top"
    depth: int = 0
    viewport: tuple[int, int] = (1280, 720)
    dates: DateForm = "iso"
    hinted: bool = True
    swaps: bool = False
    root: Root = "plain"
    icons: tuple[str, ...] = ()
    churn: int = 0

    def label(self, key: str) -> str:
        """Return the words of label `key`; KeyError if there are none."""
        return _label_texts(self.labels)[key]

    def slot(self, key: str) -> SlotPlan:
        """Return how the slot WORKFLOW.SLOT is shown; KeyError if there is none."""
        return _by_key(self.slots, key)

    def listing(self, key: str) -> ListPlan:
        """Return how a collection is shown; KeyError if there is none."""
        return _by_key(self.lists, key)

    def flow(self, key: str) -> FlowPlan:
        """Return how a workflow is cut; KeyError if there is none."""
        return _by_key(self.flows, key)


class SiteWorld(_Record, frozen=True, kw_only=True, cache_hash=True):
    """Everything an episode of ChangeSurf happens in."""

    spec: SiteSpec
    plan: RenderPlan

    @property
    def honeypot(self) -> bool:
        """Whether the goal cannot be met: the agent must declare it infeasible."""
        return self.spec.honeypot

    def digest(self) -> str:
        """Return the SHA-256 that names this world in traces."""
        plan = record_digest(self.plan)
        return sha256(f"{_spec_digest(self.spec)}|{plan}".encode())

    def with_plan(self, **changes: Any) -> "SiteWorld":
        """Return this world with fields of its plan replaced."""
        plan = msgspec.structs.replace(self.plan, **changes)
        return msgspec.structs.replace(self, plan=plan)

    def with_part(self, field: str, part: Any) -> "SiteWorld":
        """Return this world with one of labels, slots, lists or flows replaced."""
        parts = getattr(self.plan, field)
        changed = tuple(part if old.key == part.key else old for old in parts)
        return self.with_plan(**{field: changed})


class _Keyed(Protocol):
    """A part of a world that is found by its key."""

    @property
    def key(self) -> str:
        """The canonical key."""


_Part = TypeVar("_Part", bound=_Keyed)


def _by_key(parts: tuple[_Part, ...], key: str) -> _Part:
    """Return the part of this key; KeyError if there is none."""
    for part in parts:
        if part.key == key:
            return part
    raise KeyError(key)


@lru_cache(maxsize=256)
def _label_texts(labels: tuple[Label, ...]) -> dict[str, str]:
    return {label.key: label.text for label in labels}


@lru_cache(maxsize=256)
def _spec_digest(spec: SiteSpec) -> str:
    return record_digest(spec)


def distance(a: SiteWorld, b: SiteWorld) -> float:
    """Return the share of presentation facts in which worlds differ.

    0 for equal plans, 1 when nothing is shared (Jaccard distance of fact sets).
    """
    first, second = _facts(a.plan), _facts(b.plan)
    union = first | second
    return len(first ^ second) / len(union) if union else 0.0


def _facts(plan: RenderPlan) -> set[tuple[Any, ...]]:
    """Return the comparable facts of a plan; what it could become is left out."""
    facts: set[tuple[Any, ...]] = {("label", x.key, x.text) for x in plan.labels}
    facts |= {("slot", x) for x in plan.slots}
    for field in ("lists", "flows"):
        for part in getattr(plan, field):
            facts |= {
                (field, part.key, name, getattr(part, name))
                for name in part.__struct_fields__
            }
    skipped = ("labels", "slots", "lists", "flows", "templates")
    for name in plan.__struct_fields__:
        if name not in skipped:
            facts.add((name, getattr(plan, name)))
    return facts

"""Meaning of a site: tables, collections to browse, workflows to fill in, the goal.

The part of a site world that no drift changes. Money is in cents, dates are ISO text.
"""

from typing import Literal, Protocol, TypeVar

import msgspec

SiteValue = str | int
Kind = Literal["text", "date", "money", "number", "choice", "check"]
Control = Literal["text", "area", "select", "radio", "listbox", "parts", "picker", "box", "switch"]
Placement = Literal["label", "wrap", "placeholder", "aria"]
ListForm = Literal["table", "cards", "grid"]
Paging = Literal["pages", "more", "all"]
Filter = Literal["search", "tree", "none"]
DateForm = Literal["iso", "dmy", "mdy", "dots"]
SignInKind = Literal["none", "password", "two_step", "mailbox", "one_time", "redirect"]
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
NAVS: tuple[Nav, ...] = ("top", "side", "bottom")
DATE_FORMS: tuple[DateForm, ...] = ("iso", "dmy", "mdy", "dots")


class Record(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Base of all parts of a site world: frozen, compared by content."""


class _Keyed(Protocol):
    """A part of a world that is found by its key."""

    @property
    def key(self) -> str:
        """The canonical key."""


_Part = TypeVar("_Part", bound=_Keyed)


def by_key(parts: tuple[_Part, ...], key: str) -> _Part:
    """Return the part of a key.

    Args:
        parts: labels, slots, columns or other parts.
        key: the canonical key.
    Raises: KeyError: there is none.
    """
    for part in parts:
        if part.key == key:
            return part
    raise KeyError(key)


class SiteTable(Record, frozen=True, kw_only=True, cache_hash=True):
    """Rows of the site's database; the first column is the key."""

    key: str
    columns: tuple[str, ...]
    rows: tuple[tuple[SiteValue, ...], ...] = ()


class Column(Record, frozen=True, kw_only=True, cache_hash=True):
    """A column that a page may show; its words are label `column:KEY`."""

    key: str
    kind: Kind


class Collection(Record, frozen=True, kw_only=True, cache_hash=True):
    """A table that can be browsed: a list, and a page for every row.

    `title` is the column that names a row on pages, `category` the one of the tree filter, "" for
    none. `secluded` columns are shown on the row's own page alone.
    """

    key: str
    columns: tuple[Column, ...]
    title: str
    category: str = ""
    secluded: tuple[str, ...] = ()

    def column(self, key: str) -> Column:
        """Return the column of canonical key `key`; KeyError if there is none."""
        return by_key(self.columns, key)


class Option(Record, frozen=True, kw_only=True, cache_hash=True):
    """A value of a choice and the words it goes by."""

    value: str
    text: str


class Slot(Record, frozen=True, kw_only=True, cache_hash=True):
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


class Check(Record, frozen=True, kw_only=True, cache_hash=True):
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


class Effect(Record, frozen=True, kw_only=True, cache_hash=True):
    """What a commit writes: a new row, or columns of the record it began at.

    `values` are (column, source); a source is `slot:KEY`, `record:COLUMN` or `=TEXT`. For `take`
    the slot's number is taken off the record's column; `replace` is a new row in place of those
    sent before.
    """

    kind: Literal["insert", "replace", "update", "take"]
    table: str
    values: tuple[tuple[str, str], ...]


class Workflow(Record, frozen=True, kw_only=True, cache_hash=True):
    """A form of one or more pages that ends in a commit.

    `record` is the collection it begins at, "" for the menu. `after` are the pairs (slot, earlier
    slot) that any order of pages must keep.
    """

    key: str
    slots: tuple[Slot, ...]
    effects: tuple[Effect, ...]
    record: str = ""
    checks: tuple[Check, ...] = ()
    after: tuple[tuple[str, str], ...] = ()

    def slot(self, key: str) -> Slot:
        """Return the slot of canonical key `key`; KeyError if there is none."""
        return by_key(self.slots, key)


class RequiredRow(Record, frozen=True, kw_only=True, cache_hash=True):
    """A row that must exist in the end; `key` None: a new one."""

    table: str
    key: SiteValue | None
    values: tuple[tuple[str, SiteValue], ...]


class SiteGoal(Record, frozen=True, kw_only=True, cache_hash=True):
    """The task in words and for machines.

    `workflow` is what commits it, at the row `record` ("" for none), with `values` by slot.
    `arguments` are what the words of the goal name: (name, text), at most 12. `evidence` are the
    cells (collection, row key, column) that the answer rests on.
    """

    family: str
    text: str
    workflow: str
    record: SiteValue
    values: tuple[tuple[str, SiteValue], ...]
    wanted: tuple[RequiredRow, ...]
    arguments: tuple[tuple[str, str], ...]
    evidence: tuple[tuple[str, SiteValue, str], ...] = ()


class SiteProposition(Record, frozen=True, kw_only=True, cache_hash=True):
    """A question about the site with its truth, which only the oracle reads.

    kind      subject                       the fact
    unit      collection, column            money stands in cents in the list
    default   workflow, slot                the form comes with a value nobody chose
    fact      collection, row, column, v    the row's column is v
    """

    name: str
    kind: Literal["unit", "default", "fact"]
    text: str
    subject: tuple[str, ...]


class SiteSpec(Record, frozen=True, kw_only=True, cache_hash=True):
    """What a site means. `today` is the site clock's date when an episode begins."""

    site: str
    tier: int
    today: str
    user: str
    tables: tuple[SiteTable, ...]
    collections: tuple[Collection, ...]
    workflows: tuple[Workflow, ...]
    goal: SiteGoal
    propositions: tuple[SiteProposition, ...] = ()
    honeypot: bool = False

    def table(self, key: str) -> SiteTable:
        """Return the table of canonical key `key`; KeyError if there is none."""
        return by_key(self.tables, key)

    def collection(self, key: str) -> Collection:
        """Return the collection of canonical key `key`; KeyError if there is none."""
        return by_key(self.collections, key)

    def workflow(self, key: str) -> Workflow:
        """Return the workflow of canonical key `key`; KeyError if there is none."""
        return by_key(self.workflows, key)

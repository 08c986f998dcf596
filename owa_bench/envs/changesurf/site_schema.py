"""Site schema: what a site file declares, how it is drawn, and the goal that follows.

A site is one file that exports `SITE`. The rows that a goal wants are what the workflow's own
effects would write, so goal and site cannot differ.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple, TypeVar

import numpy as np

from owa_bench.envs.changesurf import site_spec as specs
from owa_bench.envs.changesurf.server.forms import is_asked, join_date

T = TypeVar("T")
SiteRow = tuple[specs.SiteValue, ...]
SiteRows = list[SiteRow]
CellRefs = Sequence[tuple[str, specs.SiteValue, str]]
INFEASIBLE = "infeasible"
# Days after the 12th: day and month of a goal's dates are never mistaken unnoticed.
_FIRST_DAY, _LAST_DAY = 13, 24
_HAND_IN = "Hand it in through the answer desk; what is sent last counts."
_LABEL = re.compile(r"(\S+)\s+(?:\((.*?)\) )?(.*)")
_SLOT = re.compile(r"(\w+)(?::(\w+))?(?:<(\d+))?(?:@(\w+)=(\w+))?(\?)?")
_YES_NO = (specs.Option(value="yes", text="Yes"), specs.Option(value="no", text="No"))


# --- drawing --------------------------------------------------------------------------


class SiteDraw:
    """A site while it is drawn: random values, and what is drawn so far.

    `today` is the site clock's date; its year is the world's, not the machine's. `practice` worlds
    have no held-out words. Every draw gives equal results on every machine.
    """

    def __init__(self, rng: np.random.Generator, *, tier: int, practice: bool) -> None:
        self._rng = rng
        self.tier = tier
        self.practice = practice
        year, month = self.between(2031, 2058), self.between(2, 11)
        self.today = f"{year}-{month:02d}-13"
        self.rows: dict[str, Sequence[tuple[specs.SiteValue, ...]]] = {}
        self.workflows: dict[str, specs.Workflow] = {}

    def between(self, low: int, high: int) -> int:
        """Return a whole number.

        Args:
            low: the least one.
            high: the greatest one.
        """
        return int(self._rng.integers(low, high + 1))

    def coin(self) -> bool:
        """Return true half of the time."""
        return self.between(0, 1) == 1

    def pick(self, items: Sequence[T]) -> T:
        """Return one of `items`."""
        return items[self.between(0, len(items) - 1)]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Return some of `items` in a drawn order.

        Args:
            items: what to choose from.
            count: how many.
        Returns: Different items.
        """
        return [items[i] for i in self._rng.permutation(len(items))[:count].tolist()]

    def cents(self, low: int, high: int) -> int:
        """Return an amount in cents.

        Args:
            low: the least whole units.
            high: the greatest whole units.
        """
        return self.between(low, high) * 100 + self.pick((0, 25, 50, 75, 90, 99))

    def day(self, months: int) -> str:
        """Return a day after the 12th, so many months from the site clock's month."""
        year, month, _ = map(int, self.today.split("-"))
        years, months = divmod(year * 12 + month - 1 + months, 12)
        date = self.between(_FIRST_DAY, _LAST_DAY)
        return join_date(years, months + 1, date) or self.today

    def values(
        self, workflow: str, **draws: Callable[[], specs.SiteValue]
    ) -> dict[str, specs.SiteValue]:
        """Draw the values of a workflow's slots, in their order.

        Args:
            workflow: its key.
            draws: how to draw a slot; the others get one of their options.
        Returns: Values by slot.
        """
        values: dict[str, specs.SiteValue] = {}
        for slot in self.workflows[workflow].slots:
            if slot.key in draws and is_asked(slot, values):
                values[slot.key] = draws[slot.key]()
            elif is_asked(slot, values):
                values[slot.key] = self.pick(slot.options).value
        return values


# --- declarations ---------------------------------------------------------------------


class SiteTask(NamedTuple):
    """A visitor's task: a workflow, the record it begins at, the given values."""

    text: str
    workflow: str
    values: Mapping[str, specs.SiteValue]
    record: specs.SiteValue = ""
    evidence: CellRefs = ()


class SiteFact(NamedTuple):
    """A column of a table that a proposition asks about."""

    table: str
    column: str


class Site(NamedTuple):
    """A site's declaration.

    `labels` is a table of text: a label's key, for slots in brackets their name in goals, and
    words: those of all worlds, a double bar, those that practice worlds never meet. `tasks` has a
    task for each goal, and one that cannot be done of the kind `infeasible`. `fact` says which
    cells a proposition asks about. A `held_out` site is in no public family and in no practice
    world.
    """

    key: str
    user: str
    brands: tuple[str, ...]
    labels: str
    collections: tuple[specs.Collection, ...]
    tables: Callable[[SiteDraw], tuple[specs.SiteTable, ...]]
    workflows: Callable[[SiteDraw], tuple[specs.Workflow, ...]]
    tasks: Mapping[str, Callable[[SiteDraw], SiteTask]]
    infeasible: str
    fact: SiteFact
    held_out: bool = False

    @property
    def goals(self) -> tuple[str, ...]:
        """The goals that can be reached."""
        return tuple(goal for goal in self.tasks if goal != INFEASIBLE)

    @property
    def words(self) -> dict[str, str]:
        """The words of each label, as text."""
        return label_words(self.labels)

    @property
    def names(self) -> dict[str, str]:
        """The names of slots in the words of a goal."""
        rows = _label_rows(self.labels)
        return {key.removeprefix("slot:"): name for key, name, _ in rows if name}


def label_words(text: str) -> dict[str, str]:
    """Return the words of each label of a table such as `Site.labels`."""
    return {key: words for key, _, words in _label_rows(text)}


@cache
def _label_rows(text: str) -> tuple[tuple[str, str, str], ...]:
    found = (_LABEL.fullmatch(line.strip()) for line in text.strip().splitlines())
    return tuple((row[1], row[2] or "", row[3]) for row in found if row)


def collection(
    key: str, columns: str, title: str, category: str = "", secluded: str = ""
) -> specs.Collection:
    """Return a collection.

    Args:
        key: its table's key.
        columns: `NAME:KIND NAME:KIND`; text without a kind.
        title: the column that names a row.
        category: the column of the tree filter, "" for none.
        secluded: the column that only a row's own page shows, "" for none.
    """
    parts = [part.partition(":") for part in columns.split()]
    return specs.Collection(
        key=key,
        columns=tuple(
            specs.Column(key=name, kind=kind or "text")  # type: ignore[arg-type]
            for name, _, kind in parts
        ),
        title=title,
        category=category,
        secluded=(secluded,) if secluded else (),
    )


def table(key: str, columns: str, rows: SiteRows) -> specs.SiteTable:
    """Return a table.

    Args:
        key: its key.
        columns: their names, the row's key first.
        rows: its rows.
    """
    return specs.SiteTable(key=key, columns=tuple(columns.split()), rows=tuple(rows))


def options(*texts: str) -> tuple[specs.Option, ...]:
    """Return options whose value is the text in small letters with dashes."""
    return tuple(specs.Option(value=t.lower().replace(" ", "-"), text=t) for t in texts)


def slots(
    draw: SiteDraw, *tiers: str, **choices: tuple[specs.Option, ...]
) -> tuple[specs.Slot, ...]:
    """Return the slots of a workflow.

    Args:
        draw: the site as drawn, for its tier.
        tiers: what each tier adds: `KEY[:KIND][<MOST][@SLOT=VALUE][?]`; text without a kind,
            numbers below 9 by default, asked only where SLOT has VALUE, `?` for optional.
        choices: the options of choices.
    Returns: The slots in order.
    """
    parsed = []
    for part in " ".join(tiers[: draw.tier]).split():
        match = _SLOT.fullmatch(part)
        if match is None:
            raise KeyError(part)
        key, kind, most, other, value, optional = match.groups()
        slot = specs.Slot(
            key=key,
            kind=kind or "text",  # type: ignore[arg-type]
            options=_YES_NO if kind == "check" else choices.get(key, ()),
            required=not optional and kind != "check",
            when=(other, value) if other else None,
            most=int(most or 9),
        )
        parsed.append(slot)
    return tuple(parsed)


def effect(kind: str, table: str, slots: Sequence[specs.Slot], **cells: str) -> specs.Effect:
    """Return an effect that writes every slot into the column of its key.

    Args:
        kind: `insert`, `replace` or `update`.
        table: the table's key.
        slots: the workflow's slots.
        cells: the sources of other columns.
    """
    own = ((slot.key, f"slot:{slot.key}") for slot in slots)
    return specs.Effect(kind=kind, table=table, values=(*cells.items(), *own))  # type: ignore[arg-type]


def workflow(
    key: str,
    slots: tuple[specs.Slot, ...],
    *effects: specs.Effect,
    record: str = "",
    after: tuple[tuple[str, str], ...] = (),
    refusals: Mapping[str, str],
) -> specs.Workflow:
    """Return a workflow.

    Args:
        key: its key.
        slots: what it asks for.
        effects: what its commit writes.
        record: the collection of the row at which it begins, "" for none.
        after: pairs of slots, the first of which must come after the second.
        refusals: what the site says where a commit breaks a rule, by the rule's name and arguments.
    """
    checks = []
    for rule, text in refusals.items():
        name, *arguments = rule.split()
        check = specs.Check(rule=name, arguments=tuple(arguments), text=text)  # type: ignore[arg-type]
        checks.append(check)
    return specs.Workflow(
        key=key, slots=slots, effects=effects, record=record, checks=tuple(checks), after=after
    )


def question(text: str, value: specs.SiteValue, evidence: CellRefs) -> SiteTask:
    """Return the task to find an amount and hand it in.

    Args:
        text: the question.
        value: the answer in cents.
        evidence: the cells on which it rests.
    """
    return SiteTask(f"{text} {_HAND_IN}", "answer", {"answer": value}, "", evidence)


# Labels that every site has; the form is that of `Site.labels`.
SHARED_WORDS = label_words("""
menu:home       Home|Start|Welcome || Front page|Overview
menu:mail       Mailbox|Messages|Inbox || Post box|Letters
go:next         Continue|Next|Go on || Proceed|Onwards
go:confirm      Confirm|Yes, submit|Looks right || All correct|Approve
go:search       Search|Find|Look up || Seek|Show matches
field:q         Search words|Search for|Keywords || Containing|Filter text
go:more         Load more|Show more|More rows || Extend the list|Reveal more
go:later        Next page|Following page|Page forward || Later rows|Turn the page
go:earlier      Previous page|Preceding page|Page back || Earlier rows|Turn back
go:signin       Sign in|Log in|Log on || Enter|Identify me
go:partner      Sign in with Passkeeper|Use Passkeeper|Passkeeper sign-in \
                || Via Passkeeper|Passkeeper account
field:user      User name|Account name|Login || Member name|Sign-in name
field:password  Password|Pass phrase|Secret word || Access phrase|Key phrase
field:code      Code|Verification code|One-time code || Check digits|Access digits
offer:no        No thanks|Skip this|Not now || Decline|Leave it
offer:yes       Yes, add it|Add to mine|I want it || Include it|Take the offer
all             All|Everything|Any || No limit|Unfiltered
drawer          Details|More about this|Additional data \
                || Fold out|Further particulars
part:day        Day|Date of month|DD || Day number|Which day
part:month      Month|MM|Calendar month || Month name|Which month
part:year       Year|YYYY|Calendar year || Year number|Which year
menu:answer     Answer desk|Report a finding|Submit an answer \
                || Reply form|Findings form
flow:answer     Your answer|Your finding|Your reply || What you found|The result
commit:answer   Send answer|Submit finding|Hand in || File the answer|Deliver
slot:answer     Answer|Finding|Result || Your figure|What it comes to
""")

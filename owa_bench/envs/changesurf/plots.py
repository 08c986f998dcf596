"""What a site is made of, and how a goal follows from its workflow.

A site is one file: its words, and `draw`, which returns a `Plot`. The rows that a goal
wants are what the workflow's own effects would write, so goal and site cannot differ.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from owa_bench.envs.changesurf.draws import Draws
from owa_bench.envs.changesurf.formats import show_money
from owa_bench.envs.changesurf.words import Words
from owa_bench.worlds.site import (
    Check,
    Collection,
    Column,
    Effect,
    Kind,
    Option,
    RequiredRow,
    SiteGoal,
    SiteTable,
    SiteValue,
    Slot,
    Workflow,
)

EXTRAS = SiteTable(key="extras", columns=("id", "workflow"))
ANSWERS = SiteTable(key="answers", columns=("id", "value"))
_ROWS_MAX = 10_000_000
_HAND_IN = "Hand the amount in through the answer desk."
Rows = list[tuple[SiteValue, ...]]
Evidence = tuple[tuple[str, SiteValue, str], ...]


class Task(NamedTuple):
    """What a visitor is to do: a workflow, where it begins, the values it is given."""

    text: str
    workflow: str
    values: Mapping[str, SiteValue]
    record: SiteValue = ""
    evidence: Evidence = ()


class Plot(NamedTuple):
    """A site as drawn: everything but its presentation and what every site has.

    `fact` is a cell (collection, key, column, other value) that a proposition may ask
    about: what stands there and what does not.
    """

    today: str
    user: str
    tables: tuple[SiteTable, ...]
    collections: tuple[Collection, ...]
    workflows: tuple[Workflow, ...]
    task: Task
    fact: tuple[str, SiteValue, str, SiteValue]


class Site(NamedTuple):
    """A site: its key, goals (the last may be infeasible), brands, words and draw.

    `names` are how the goal's words call each slot. A site that is `held_out` is in no
    public family and in no practice world.
    """

    key: str
    goals: tuple[str, ...]
    infeasible: str
    brands: tuple[str, ...]
    words: Words
    names: Mapping[str, str]
    draw: Callable[[Draws, int, str], Plot]
    held_out: bool = False


def today(draws: Draws) -> str:
    """Return the site clock's date; the year is the world's, not the machine's."""
    return f"{draws.between(2031, 2058)}-{draws.between(2, 11):02d}-{13:02d}"


def columns(text: str) -> tuple[Column, ...]:
    """Return columns from `name:kind name:kind`."""
    made = [part.partition(":") for part in text.split()]
    return tuple(Column(key=key, kind=_kind(kind)) for key, _, kind in made)


def options(*texts: str) -> tuple[Option, ...]:
    """Return options whose value is the text in small letters with dashes."""
    return tuple(Option(value=t.lower().replace(" ", "-"), text=t) for t in texts)


def box(key: str) -> Slot:
    """Return a slot that may be ticked."""
    both = options("Yes", "No")
    return Slot(key=key, kind="check", options=both, required=False)


def cells(slots: Sequence[Slot]) -> tuple[tuple[str, str], ...]:
    """Return what an effect writes of slots: each into the column of its key."""
    return tuple((slot.key, f"slot:{slot.key}") for slot in slots)


def finished(plot: Plot) -> Plot:
    """Return a plot with what every site has: the answer desk and the extras."""
    return plot._replace(
        tables=(*plot.tables, ANSWERS, EXTRAS),
        workflows=(*plot.workflows, answer("money")),
    )


def answer(kind: Kind) -> Workflow:
    """Return the workflow by which a finding is handed in on the site itself."""
    slot = Slot(key="answer", kind=kind, least=0, most=_ROWS_MAX)
    effect = Effect(kind="insert", table="answers", values=(("value", "slot:answer"),))
    return Workflow(key="answer", slots=(slot,), effects=(effect,))


def finding(
    text: str, value: SiteValue, evidence: Sequence[tuple[str, SiteValue, str]]
) -> Task:
    """Return the task to find a value and hand it in."""
    return Task(f"{text} {_HAND_IN}", "answer", {"answer": value}, "", tuple(evidence))


def goal(site: Site, family: str, plot: Plot) -> SiteGoal:
    """Return the goal of a plot: words, values, and the rows that must come of it."""
    task = plot.task
    workflow = next(w for w in plot.workflows if w.key == task.workflow)
    record = _record(plot, workflow, task.record)
    asked = [slot for slot in workflow.slots if slot.key in task.values]
    said = [
        (site.names.get(s.key, s.key), spoken(s, task.values[s.key])) for s in asked
    ]
    text = task.text
    if workflow.key != "answer":
        text += " " + "; ".join(f"{name}: {value}" for name, value in said) + "."
    return SiteGoal(
        family=family,
        text=text,
        workflow=workflow.key,
        record=task.record,
        values=tuple(task.values.items()),
        wanted=wanted(workflow, task.values, record, task.record),
        arguments=() if workflow.key == "answer" else tuple(said),
        evidence=task.evidence,
    )


def spoken(slot: Slot, value: SiteValue) -> str:
    """Return a slot's value in the words of a goal."""
    if slot.kind == "money":
        return f"EUR {show_money(int(value))}"
    texts = {option.value: option.text for option in slot.options}
    return texts.get(str(value), str(value))


def wanted(
    workflow: Workflow,
    values: Mapping[str, SiteValue],
    record: Mapping[str, SiteValue],
    key: SiteValue,
) -> tuple[RequiredRow, ...]:
    """Return the rows that the workflow's effects would leave."""
    made: list[RequiredRow] = []
    for effect in workflow.effects:
        cells = tuple(
            (column, _value(effect.kind, column, source, values, record))
            for column, source in effect.values
        )
        row = None if effect.kind == "insert" else key
        made.append(RequiredRow(table=effect.table, key=row, values=cells))
    return tuple(made)


def _value(
    kind: str,
    column: str,
    source: str,
    values: Mapping[str, SiteValue],
    record: Mapping[str, SiteValue],
) -> SiteValue:
    if source.startswith("="):
        return source[1:]
    origin, _, name = source.partition(":")
    value = values.get(name, "") if origin == "slot" else record[name]
    return int(record[column]) - int(value) if kind == "take" else value


def _record(plot: Plot, workflow: Workflow, key: SiteValue) -> dict[str, SiteValue]:
    if not workflow.record:
        return {}
    table = next(t for t in plot.tables if t.key == workflow.record)
    row = next(row for row in table.rows if row[0] == key)
    return dict(zip(table.columns, row, strict=True))


def _kind(text: str) -> Kind:
    kinds: dict[str, Kind] = {
        "": "text",
        "date": "date",
        "money": "money",
        "number": "number",
        "choice": "choice",
    }
    return kinds[text]


def only(rule: str, *arguments: str) -> Check:
    """Return a check from `rule` and its arguments, the last of them the refusal."""
    rules = {"before", "within", "is", "known", "free"}
    if rule not in rules:
        raise KeyError(rule)
    return Check(rule=rule, arguments=arguments[:-1], text=arguments[-1])  # type: ignore[arg-type]

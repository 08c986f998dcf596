"""World propositions of ChangeSurf: drawn so that the way to the goal settles them."""

from collections.abc import Iterator, Sequence
from typing import Literal

from owa_bench.envs.changesurf import site_spec as specs
from owa_bench.envs.changesurf import world as plans
from owa_bench.envs.changesurf.server.forms import show_fully
from owa_bench.envs.changesurf.site_edits import goal_lists, goal_slots
from owa_bench.envs.changesurf.site_schema import Site, SiteDraw, SiteRow

PropositionKind = Literal["unit", "default", "fact"]
_NEAR = 3  # first rows of a list: on its first page, however it is paged


def propositions(
    draw: SiteDraw, world: plans.SiteWorld, site: Site
) -> Iterator[specs.SiteProposition]:
    """Yield what the episode asks: a fact, and a unit and a default where there is one.

    Each can be settled on the way to the goal and at most three looks aside: of a row that the way
    shows or that heads its list, of a list on the way that has amounts, of the goal's own form.
    Nothing that is listed tells how often a kind is true: which way a fact is claimed is a coin,
    and units and defaults are asked only of what drift can change in every family.

    Args:
        draw: draws rows, lists and slots.
        world: the site before any drift, with its goal.
        site: its declaration.
    Yields: Propositions without their truth.
    """
    spec, label = world.spec, world.plan.label
    table, column = site.fact.table, site.fact.column
    collection = spec.collection(table)
    row = draw.pick(_rows_on_the_way(spec, table, column))
    key, value = row[0], _claim(draw, spec.table(table), row, column)
    title = row[spec.table(table).columns.index(collection.title)]
    shown = show_fully(value, collection.column(column).kind)
    text = f"The site says of `{title}`: `{label(f'column:{column}')}` is {shown}."
    yield _proposition("fact", text, table, str(key), column, str(value))
    units = [
        (each.key, column.key)
        for each in spec.collections
        if each.key in goal_lists(world)
        for column in each.columns
        if column.kind == "money" and column.key in world.plan.listing(each.key).columns
    ]
    if units:
        table, column = draw.pick(units)
        text = (
            f"In the list first called `{label(f'menu:{table}')}`, the amounts first "
            f"headed `{label(f'column:{column}')}` are in cents, whatever the page "
            "says."
        )
        yield _proposition("unit", text, table, column)
    boxes = [slot for slot in goal_slots(world) if slot.kind in ("check", "choice")]
    if boxes:
        slot, flow = draw.pick(boxes), spec.goal.workflow
        state = "ticked" if slot.kind == "check" else "chosen"
        text = (
            f"The form first called `{label(f'flow:{flow}')}` comes with "
            f"`{label(f'slot:{slot.key}')}` already {state}."
        )
        yield _proposition("default", text, flow, slot.key)


def _claim(draw: SiteDraw, table: specs.SiteTable, row: SiteRow, column: str) -> specs.SiteValue:
    """Return the value of a row half of the time, else another row's other value."""
    place = table.columns.index(column)
    others = [each[place] for each in table.rows if each[place] != row[place]]
    return draw.pick(others) if others and draw.coin() else row[place]


def _rows_on_the_way(spec: specs.SiteSpec, table: str, column: str) -> Sequence[SiteRow]:
    """Return the rows of a table that the way to the goal shows, else the first ones.

    A cell that the goal changes is left out: it is true at one time and false later.
    """
    goal, rows = spec.goal, spec.table(table).rows
    shown = {key for collection, key, _ in goal.evidence if collection == table}
    if spec.workflow(goal.workflow).record == table:
        shown.add(goal.record)
    changed = {
        wanted.key
        for wanted in goal.wanted
        if wanted.table == table and column in dict(wanted.values)
    }
    free = [row for row in rows if row[0] not in changed]
    return [row for row in free if row[0] in shown] or free[:_NEAR]


def _proposition(kind: PropositionKind, text: str, *subject: str) -> specs.SiteProposition:
    return specs.SiteProposition(name=kind, kind=kind, text=text, subject=subject)

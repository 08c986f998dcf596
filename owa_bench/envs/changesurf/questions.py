"""World propositions: what an episode asks about its site, and what is true."""

from owa_bench.envs.changesurf.draws import Draws
from owa_bench.envs.changesurf.formats import show_fully
from owa_bench.worlds.site import SiteProposition, SiteValue, SiteWorld

PROPOSITION_KINDS = ("unit", "default", "fact")


def questions(
    draws: Draws, world: SiteWorld, fact: tuple[str, SiteValue, str, SiteValue]
) -> tuple[SiteProposition, ...]:
    """Return what the episode asks: a fact, a unit and a default where there is one."""
    made = [_fact(world, fact)]
    units = [
        (collection.key, column.key)
        for collection in world.spec.collections
        for column in collection.columns
        if column.kind == "money"
        and column.key in world.plan.listing(collection.key).columns
    ]
    if units:
        made.append(_unit(world, *draws.pick(units)))
    boxes = [
        (workflow.key, slot.key)
        for workflow in world.spec.workflows
        for slot in workflow.slots
        if slot.kind == "check"
    ]
    if boxes:
        made.append(_default(world, *draws.pick(boxes)))
    return tuple(made)


def truth(world: SiteWorld, proposition: SiteProposition) -> bool:
    """Return whether a proposition holds in this very world."""
    if proposition.kind == "unit":
        return world.plan.listing(proposition.subject[0]).cents
    if proposition.kind == "default":
        workflow, slot, value = proposition.subject
        return world.plan.slot(f"{workflow}.{slot}").default == value
    collection, key, column, value = proposition.subject
    table = world.spec.table(collection)
    row = next(row for row in table.rows if str(row[0]) == key)
    return str(row[table.columns.index(column)]) == value


def _fact(
    world: SiteWorld, fact: tuple[str, SiteValue, str, SiteValue]
) -> SiteProposition:
    collection, key, column, value = fact
    about = world.spec.collection(collection)
    table = world.spec.table(collection)
    row = next(row for row in table.rows if row[0] == key)
    title = row[table.columns.index(about.title)]
    shown = show_fully(value, about.column(column).kind)
    text = f"The site says of `{title}`: `{world.plan.label(f'column:{column}')}` is "
    return SiteProposition(
        name="fact",
        kind="fact",
        text=f"{text}{shown}.",
        subject=(collection, str(key), column, str(value)),
    )


def _unit(world: SiteWorld, collection: str, column: str) -> SiteProposition:
    menu = world.plan.label(f"menu:{collection}")
    name = world.plan.label(f"column:{column}")
    text = (
        f"In the list first called `{menu}`, the amounts first headed `{name}` are in "
        "cents, whatever the page says."
    )
    return SiteProposition(
        name="unit", kind="unit", text=text, subject=(collection, column)
    )


def _default(world: SiteWorld, workflow: str, slot: str) -> SiteProposition:
    flow = world.plan.label(f"flow:{workflow}")
    name = world.plan.label(f"slot:{slot}")
    text = f"The form first called `{flow}` comes with `{name}` already ticked."
    return SiteProposition(
        name="default", kind="default", text=text, subject=(workflow, slot, "yes")
    )

"""The steps of a workflow: which pages a draft goes through, and what each one asks."""

from collections.abc import Mapping

from owa_bench.worlds.site import SiteValue, SiteWorld, Slot, Workflow


def is_asked(slot: Slot, values: Mapping[str, SiteValue]) -> bool:
    """Return whether a slot matters under the values so far."""
    return slot.when is None or values.get(slot.when[0]) == slot.when[1]


def slots_on(
    world: SiteWorld, workflow: Workflow, page: int, values: Mapping[str, SiteValue]
) -> tuple[Slot, ...]:
    """Return the slots a page shows: those asked, or decided on the same page."""
    keys = world.plan.flow(workflow.key).pages[page]
    shown = [workflow.slot(key) for key in keys]
    return tuple(
        slot
        for slot in shown
        if is_asked(slot, values) or (slot.when and slot.when[0] in keys)
    )


def is_decided(world: SiteWorld, workflow: Workflow, page: int, slot: Slot) -> bool:
    """Return whether a page that shows a slot was served knowing that it is asked."""
    keys = world.plan.flow(workflow.key).pages[page]
    return slot.when is None or slot.when[0] not in keys


def steps(
    world: SiteWorld, workflow: Workflow, values: Mapping[str, SiteValue]
) -> tuple[str, ...]:
    """Return the page keys a draft goes through, in order; the last one commits."""
    flow = world.plan.flow(workflow.key)
    made = [
        f"flow:{workflow.key}/{i}"
        for i in range(len(flow.pages))
        if slots_on(world, workflow, i, values)
    ]
    if flow.offer:
        made.append(f"offer:{workflow.key}")
    if flow.review:
        made.append(f"review:{workflow.key}")
    return tuple(made)


def page_keys(world: SiteWorld) -> tuple[str, ...]:
    """Return every page a site has, in canonical words."""
    spec = world.spec
    made = ["home", "login", "login2", "passport", "return", "mail", "decoy"]
    for collection in spec.collections:
        made.append(f"list:{collection.key}")
        rows = spec.table(collection.key).rows
        made += [f"item:{collection.key}/{row[0]}" for row in rows]
    for workflow in spec.workflows:
        pages = len(world.plan.flow(workflow.key).pages)
        made += [f"flow:{workflow.key}/{i}" for i in range(pages)]
        made += [f"{kind}:{workflow.key}" for kind in ("offer", "review", "done")]
        made.append(f"start:{workflow.key}")
        if workflow.record:
            rows = spec.table(workflow.record).rows
            made += [f"start:{workflow.key}/{row[0]}" for row in rows]
    return tuple(made)

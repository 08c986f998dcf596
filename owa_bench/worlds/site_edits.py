"""What operators on site worlds share: what a goal rests on, and safe look-ups.

Operators act only on what the task comes by, so that every entry of a drift order is
felt; and they look things up in the world they get, never in one they remember.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from owa_bench.errors import DriftError
from owa_bench.worlds.site import (
    DATE_FORMS,
    FlowPlan,
    ListPlan,
    SiteWorld,
    Slot,
    SlotPlan,
    Workflow,
)

# What dates drift to: a site begins with ISO, and no drift leads back to it.
OTHER_DATE_FORMS = tuple(form for form in DATE_FORMS if form != "iso")
SITE = "site"  # the target of operators that act on the site as a whole
T = TypeVar("T")


def goal_workflow(world: SiteWorld) -> Workflow:
    """Return the workflow that the goal is reached by."""
    return world.spec.workflow(world.spec.goal.workflow)


def goal_slots(world: SiteWorld) -> tuple[Slot, ...]:
    """Return the slots of the goal's workflow that the goal gives a value."""
    values = dict(world.spec.goal.values)
    return tuple(slot for slot in goal_workflow(world).slots if slot.key in values)


def goal_lists(world: SiteWorld) -> tuple[str, ...]:
    """Return the collections that the goal's way leads through."""
    goal = world.spec.goal
    named = [cell[0] for cell in goal.evidence] + [goal_workflow(world).record]
    return tuple(dict.fromkeys(key for key in named if key))


def goal_labels(world: SiteWorld) -> tuple[str, ...]:
    """Return the labels that the goal's way is signposted with."""
    workflow = goal_workflow(world)
    made = [f"slot:{slot.key}" for slot in goal_slots(world)]
    made += [f"menu:{key}" for key in goal_lists(world)]
    made += [f"commit:{workflow.key}", "go:next"]
    made.append(f"act:{workflow.key}" if workflow.record else f"menu:{workflow.key}")
    made += [f"column:{column}" for _, _, column in world.spec.goal.evidence]
    if world.plan.auth.kind != "none":
        made += ["go:signin", "field:user", "field:password"]
    return tuple(dict.fromkeys(made))


def slot_key(world: SiteWorld, slot: Slot) -> str:
    """Return the key of a slot's plan: WORKFLOW.SLOT."""
    return f"{goal_workflow(world).key}.{slot.key}"


def whole(target: str) -> None:
    """Refuse a target that is not the site as a whole."""
    if target != SITE:
        raise DriftError(f"`target` must be {SITE!r}, got {target!r}.")


def listing_at(world: SiteWorld, target: str) -> ListPlan:
    """Return the list at `target`; DriftError if there is none."""
    try:
        return world.plan.listing(target)
    except KeyError as error:
        raise DriftError(f"`target` must name a collection, got {target!r}.") from error


def flow_at(world: SiteWorld, target: str) -> FlowPlan:
    """Return the flow at `target`; DriftError if there is none."""
    try:
        return world.plan.flow(target)
    except KeyError as error:
        raise DriftError(f"`target` must name a workflow, got {target!r}.") from error


def slot_at(world: SiteWorld, target: str) -> tuple[SlotPlan, Slot]:
    """Return plan and meaning of the slot at `target`; DriftError if there is none."""
    workflow, _, key = target.partition(".")
    try:
        return world.plan.slot(target), world.spec.workflow(workflow).slot(key)
    except KeyError as error:
        raise DriftError(f"`target` must name a slot, got {target!r}.") from error


def another(options: Sequence[T], now: T, rng: np.random.Generator) -> T:
    """Return a drawn one of `options` that is not `now`.

    Errors: DriftError if there is no other.
    """
    others = [option for option in options if option != now]
    if not others:
        raise DriftError(f"What is changed must have another form, got only {now!r}.")
    return others[int(rng.integers(len(others)))]


def reordered(items: tuple[T, ...], rng: np.random.Generator) -> tuple[T, ...]:
    """Return `items` in another order; DriftError if there is none."""
    if len(items) < len(("one", "other")):
        raise DriftError(
            f"What is put in another order must be two things, got {items!r}."
        )
    order = rng.permutation(len(items)).tolist()
    if order == sorted(order):
        order = [*order[1:], order[0]]
    return tuple(items[i] for i in order)


def recut(flow: FlowPlan, keys: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return pages of the sizes a flow has, filled with `keys` in their order."""
    pages: list[tuple[str, ...]] = []
    start = 0
    for page in flow.pages:
        pages.append(tuple(keys[start : start + len(page)]))
        start += len(page)
    return tuple(pages)


def allowed(workflow: Workflow, keys: Sequence[str]) -> bool:
    """Return whether an order of slots keeps what must come before what."""
    place = {key: i for i, key in enumerate(keys)}
    pairs = [*workflow.after]
    pairs += [(slot.key, slot.when[0]) for slot in workflow.slots if slot.when]
    return all(place[first] < place[later] for later, first in pairs)

"""_Targets, look-ups and draws that operators on site worlds share.

Operators act only on what the goal depends on, so that every entry of a drift order matters; and
they look things up in the world they get, never in one they remember.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from owa_bench.envs.changesurf.site_spec import Slot, Workflow
from owa_bench.envs.changesurf.world import FlowPlan, ListPlan, SiteWorld, SlotPlan
from owa_bench.errors import DriftError
from owa_bench.seeding import pick

SITE = "site"  # the target of operators that act on the site as a whole
_Targets = Callable[[SiteWorld], tuple[str, ...]]
T = TypeVar("T")


# --- the goal's parts -----------------------------------------------------------------


def goal_workflow(world: SiteWorld) -> Workflow:
    """Return the workflow that the goal is reached by."""
    return world.spec.workflow(world.spec.goal.workflow)


def goal_slots(world: SiteWorld) -> tuple[Slot, ...]:
    """Return the slots of the goal's workflow that the goal gives a value."""
    values = dict(world.spec.goal.values)
    return tuple(slot for slot in goal_workflow(world).slots if slot.key in values)


def goal_lists(world: SiteWorld) -> tuple[str, ...]:
    """Return the collections that hold the goal's evidence or its record."""
    goal = world.spec.goal
    keys = [cell[0] for cell in goal.evidence] + [goal_workflow(world).record]
    return tuple(dict.fromkeys(key for key in keys if key))


def goal_labels(world: SiteWorld) -> tuple[str, ...]:
    """Return the keys of the labels that an agent meets on the way to the goal."""
    workflow = goal_workflow(world)
    keys = [f"slot:{slot.key}" for slot in goal_slots(world)]
    keys += [f"menu:{key}" for key in goal_lists(world)]
    keys += [f"commit:{workflow.key}", "go:next"]
    keys.append(f"act:{workflow.key}" if workflow.record else f"menu:{workflow.key}")
    keys += [f"column:{column}" for _, _, column in world.spec.goal.evidence]
    if world.plan.auth.kind != "none":
        keys += ["go:signin", "field:user", "field:password"]
    return tuple(dict.fromkeys(keys))


# --- targets --------------------------------------------------------------------------


def slots_where(condition: Callable[[Slot], bool]) -> _Targets:
    """Return the targets WORKFLOW.SLOT: the goal's slots that meet a condition."""

    def targets(world: SiteWorld) -> tuple[str, ...]:
        workflow = goal_workflow(world).key
        slots = (slot for slot in goal_slots(world) if condition(slot))
        return tuple(f"{workflow}.{slot.key}" for slot in slots)

    return targets


def lists_where(condition: Callable[[SiteWorld, str], bool]) -> _Targets:
    """Return the targets COLLECTION: the goal's lists that meet a condition."""

    def targets(world: SiteWorld) -> tuple[str, ...]:
        return tuple(key for key in goal_lists(world) if condition(world, key))

    return targets


def listing_at(world: SiteWorld, target: str) -> ListPlan:
    """Return how a collection is shown.

    Args:
        world: the world as it is now.
        target: the collection's key.
    Raises: DriftError: there is no such collection.
    """
    try:
        return world.plan.listing(target)
    except KeyError as error:
        raise DriftError(f"`target` must name a collection, got {target!r}.") from error


def flow_at(world: SiteWorld, target: str) -> FlowPlan:
    """Return how a workflow is cut into pages.

    Args:
        world: the world as it is now.
        target: the workflow's key.
    Raises: DriftError: there is no such workflow.
    """
    try:
        return world.plan.flow(target)
    except KeyError as error:
        raise DriftError(f"`target` must name a workflow, got {target!r}.") from error


def slot_at(world: SiteWorld, target: str) -> tuple[SlotPlan, Slot]:
    """Return how a slot is shown, and what it means.

    Args:
        world: the world as it is now.
        target: WORKFLOW.SLOT.
    Returns: Its plan and its meaning.
    Raises: DriftError: there is no such slot.
    """
    workflow, _, key = target.partition(".")
    try:
        return world.plan.slot(target), world.spec.workflow(workflow).slot(key)
    except KeyError as error:
        raise DriftError(f"`target` must name a slot, got {target!r}.") from error


# --- draws and orders -----------------------------------------------------------------


def another(options: Sequence[T], now: T, rng: np.random.Generator) -> T:
    """Return a drawn option that is not the present one.

    Args:
        options: what there is, the present one may be among them.
        now: the present one.
        rng: the stream to draw from.
    Returns: One of the others.
    Raises: DriftError: there is no other.
    """
    others = [option for option in options if option != now]
    if not others:
        raise DriftError(f"What is changed must have another form, got only {now!r}.")
    return pick(others, rng)


def reordered(items: tuple[T, ...], rng: np.random.Generator) -> tuple[T, ...]:
    """Return items in a drawn order that is not the present one.

    Args:
        items: in their present order.
        rng: the stream to draw from.
    Raises: DriftError: there are fewer than two.
    """
    if len(items) <= 1:
        raise DriftError(f"What is put in another order must be two things, got {items!r}.")
    order = rng.permutation(len(items)).tolist()
    if order == sorted(order):
        order = [*order[1:], order[0]]
    return tuple(items[i] for i in order)


def recut(flow: FlowPlan, keys: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return pages of the sizes that a flow has, filled anew.

    Args:
        flow: the present pages.
        keys: slot keys in their new order, as many as the flow has.
    """
    rest = iter(keys)
    return tuple(tuple(next(rest) for _ in page) for page in flow.pages)


def allowed(workflow: Workflow, keys: Sequence[str]) -> bool:
    """Return whether an order of slots keeps what must come before what.

    Args:
        workflow: the rules.
        keys: slot keys in the order to judge.
    Returns: True where every slot comes after those it depends on.
    """
    place = {key: i for i, key in enumerate(keys)}
    pairs = [*workflow.after]
    pairs += [(slot.key, slot.when[0]) for slot in workflow.slots if slot.when]
    return all(place[first] < place[later] for later, first in pairs)

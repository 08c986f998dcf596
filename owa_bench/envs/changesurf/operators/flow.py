"""Operators on a site's flow: the pages of a form, its lists and its actions."""

from numpy.random import Generator

from owa_bench.drift.operator import operator
from owa_bench.envs.changesurf.site_edits import (
    SITE,
    allowed,
    another,
    flow_at,
    goal_lists,
    goal_workflow,
    listing_at,
    lists_where,
    recut,
    slot_at,
    slots_where,
)
from owa_bench.envs.changesurf.site_spec import Filter, Paging, Workflow
from owa_bench.envs.changesurf.world import FlowPlan, SiteWorld
from owa_bench.errors import DriftError
from owa_bench.seeding import pick

_CHOICES = ("check", "choice")
_FOLDED_SHARE = 0.6  # of the columns at full intensity
_LEAST_PAGE = 3  # rows
_TURNED: tuple[Paging, ...] = ("pages", "more")
_FILTERS: tuple[Filter, ...] = ("search", "tree", "none")
_PLAIN_FILTERS: tuple[Filter, ...] = ("search", "none")


def _first_list(world: SiteWorld) -> tuple[str, ...]:
    """Return the collection that the goal's workflow begins at, if any."""
    record = goal_workflow(world).record
    return (record,) if record else ()


def _goal_flow(world: SiteWorld) -> tuple[str, ...]:
    """Return the goal's workflow."""
    return (goal_workflow(world).key,)


def _many_page_flow(world: SiteWorld) -> tuple[str, ...]:
    """Return the goal's workflow where it has two pages or more."""
    key = goal_workflow(world).key
    return (key,) if len(world.plan.flow(key).pages) > 1 else ()


def _divisible_flow(world: SiteWorld) -> tuple[str, ...]:
    """Return the goal's workflow where a page asks two things or more."""
    key = goal_workflow(world).key
    return (key,) if any(len(page) > 1 for page in world.plan.flow(key).pages) else ()


def _reorderable_flow(world: SiteWorld) -> tuple[str, ...]:
    """Return the goal's workflow where its rules allow another order."""
    workflow = goal_workflow(world)
    keys = _keys(world.plan.flow(workflow.key))
    return (workflow.key,) if _orders(workflow, keys) else ()


def _keys(flow: FlowPlan) -> tuple[str, ...]:
    return tuple(key for page in flow.pages for key in page)


def _orders(workflow: Workflow, keys: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the orders in which one question has changed its place."""
    orders = {
        (*rest[:place], key, *rest[place:])
        for key in keys
        for rest in (tuple(k for k in keys if k != key),)
        for place in range(len(keys))
    }
    return sorted(o for o in orders if o != keys and allowed(workflow, o))


@operator(announcement="D1", weight=0.5, group="Flow", targets=_first_list)
def action_place(world: SiteWorld, target: str) -> SiteWorld:
    """Let rows of one list carry their action themselves, or only their own pages.

    Changes: where a row's action stands.
    Leaves alone: its words and what it does.
    Announcement: D1 (the page shows it). Weight: 0.5.
    Raises: DriftError if `target` names no collection.
    Source: docs/changesurf.md#operators (Flow).
    """
    plan = listing_at(world, target)
    return world.with_part("lists", plan, direct=not plan.direct)


@operator(announcement="D0", weight=0.6, group="Flow", targets=SITE)
def client_swaps(world: SiteWorld) -> SiteWorld:
    """Change pages by a script in place, or load them anew where a script did it.

    Changes: how a page comes into the window.
    Leaves alone: every page.
    Announcement: D0 (the pages are the same). Weight: 0.6.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (Flow).
    """
    return world.with_plan(swaps=not world.plan.swaps)


@operator(
    announcement="D3",
    weight=0.7,
    group="Flow",
    targets=slots_where(lambda slot: slot.kind in _CHOICES),
)
def default_value(world: SiteWorld, target: str, rng: Generator) -> SiteWorld:
    """Let one slot come with a value nobody chose: a ticked box, a chosen option.

    Changes: what a slot holds when its page comes.
    Leaves alone: its words, its control, its options.
    Announcement: D3 (the form shows it and no word is said). Weight: 0.7.
    Raises: DriftError if `target` names no box or choice.
    Source: docs/changesurf.md#operators (Flow).
    """
    plan, slot = slot_at(world, target)
    values = [option.value for option in slot.options]
    if slot.kind not in _CHOICES or not values:
        raise DriftError(f"`target` must name a box or a choice, got {target!r}.")
    return world.with_part("slots", plan, default=another(values, plan.default, rng))


@operator(
    announcement="D1",
    weight=0.6,
    group="Flow",
    targets=lists_where(lambda world, key: not world.plan.listing(key).drawer),
)
def drawer(world: SiteWorld, target: str, intensity: float, rng: Generator) -> SiteWorld:
    """Fold some columns of one list away, to be opened row by row.

    Changes: which columns a list shows at once.
    Leaves alone: what they hold; the title stays in sight.
    Announcement: D1 (the page shows it). Weight: 0.6.
    Raises: DriftError if `target` names no collection.
    Source: docs/changesurf.md#operators (Flow).
    """
    plan = listing_at(world, target)
    title = world.spec.collection(target).title
    count = max(1, round(_FOLDED_SHARE * intensity * len(plan.columns)))
    free = [key for key in plan.columns if key != title]
    order = rng.permutation(len(free)).tolist()[:count]
    folded = tuple(key for i, key in enumerate(free) if i in order)
    columns = tuple(key for key in plan.columns if key not in folded)
    return world.with_part("lists", plan, columns=columns, drawer=(*plan.drawer, *folded))


@operator(announcement="D1", weight=0.6, group="Flow", targets=goal_lists)
def filter_swap(world: SiteWorld, target: str, rng: Generator) -> SiteWorld:
    """Give one list a search box, a tree of categories, or neither.

    Changes: how a list can be narrowed down.
    Leaves alone: rows, columns, paging.
    Announcement: D1 (the page shows it). Weight: 0.6.
    Raises: DriftError if `target` names no collection.
    Source: docs/changesurf.md#operators (Flow).
    """
    plan = listing_at(world, target)
    known = _FILTERS if world.spec.collection(target).category else _PLAIN_FILTERS
    return world.with_part("lists", plan, filter=another(known, plan.filter, rng))


@operator(announcement="D1", weight=0.5, group="Flow", targets=_goal_flow)
def interstitial(world: SiteWorld, target: str) -> SiteWorld:
    """Put an offer before the end of a form: to decline costs a step, to accept money.

    Changes: the steps of a form.
    Leaves alone: its questions; nothing is booked unless the offer is taken.
    Announcement: D1 (the page shows it). Weight: 0.5.
    Raises: DriftError if `target` names no workflow.
    Source: docs/changesurf.md#operators (Flow).
    """
    return world.with_part("flows", flow_at(world, target), offer=True)


@operator(announcement="D1", weight=0.7, group="Flow", targets=goal_lists)
def list_paging(world: SiteWorld, target: str, intensity: float, rng: Generator) -> SiteWorld:
    """Cut one list into shorter pages, turned the other way.

    Changes: page size and how pages are turned.
    Leaves alone: rows, their order, filters.
    Announcement: D1 (the page shows it). Weight: 0.7.
    Raises: DriftError if `target` names no collection.
    Source: docs/changesurf.md#operators (Flow).
    """
    plan = listing_at(world, target)
    size = max(_LEAST_PAGE, round(plan.size * (1 - intensity / 2)))
    paging = another(_TURNED, plan.paging, rng)
    return world.with_part("lists", plan, size=size, paging=paging)


@operator(announcement="D1", weight=0.6, group="Flow", targets=_many_page_flow)
def merge_pages(world: SiteWorld, target: str) -> SiteWorld:
    """Put all that a form asks on one page.

    Changes: how many pages a form has.
    Leaves alone: what it asks, in which order.
    Announcement: D1 (the page shows it). Weight: 0.6.
    Raises: DriftError if `target` names no workflow, or one of a single page.
    Source: docs/changesurf.md#operators (Flow).
    """
    flow = flow_at(world, target)
    if len(flow.pages) == 1:
        raise DriftError(f"`target` must have two pages, got {flow.pages!r}.")
    return world.with_part("flows", flow, pages=(_keys(flow),))


@operator(announcement="D1", weight=0.5, group="Flow", targets=_reorderable_flow)
def page_order(world: SiteWorld, target: str, rng: Generator) -> SiteWorld:
    """Ask what a form asks in another order that its rules allow.

    Changes: the order of slots, and so which page each is on.
    Leaves alone: how many pages there are, and what must come before what.
    Announcement: D1 (the pages show it). Weight: 0.5.
    Raises: DriftError if `target` names no workflow, or one with a single order.
    Source: docs/changesurf.md#operators (Flow).
    """
    flow = flow_at(world, target)
    orders = _orders(world.spec.workflow(target), _keys(flow))
    if not orders:
        raise DriftError(f"`target` must allow another order, got {_keys(flow)!r}.")
    return world.with_part("flows", flow, pages=recut(flow, pick(orders, rng)))


@operator(announcement="D1", weight=0.4, group="Flow", targets=_goal_flow)
def review_page(world: SiteWorld, target: str) -> SiteWorld:
    """Put a page before the end of a form that shows all and asks to confirm.

    Changes: the steps of a form.
    Leaves alone: its questions.
    Announcement: D1 (the page shows it). Weight: 0.4.
    Raises: DriftError if `target` names no workflow.
    Source: docs/changesurf.md#operators (Flow).
    """
    return world.with_part("flows", flow_at(world, target), review=True)


@operator(announcement="D1", weight=0.8, group="Flow", targets=_divisible_flow)
def split_pages(world: SiteWorld, target: str) -> SiteWorld:
    """Cut every page of a form that asks two things or more in two.

    Changes: how many pages a form has.
    Leaves alone: what it asks, in which order.
    Announcement: D1 (the pages show it). Weight: 0.8.
    Raises: DriftError if `target` names no workflow, or one without a page to cut.
    Source: docs/changesurf.md#operators (Flow).
    """
    flow = flow_at(world, target)
    pages: list[tuple[str, ...]] = []
    for page in flow.pages:
        half = (len(page) + 1) // 2
        pages += [part for part in (page[:half], page[half:]) if part]
    if len(pages) == len(flow.pages):
        raise DriftError(f"`target` must have a page to cut, got {flow.pages!r}.")
    return world.with_part("flows", flow, pages=tuple(pages))

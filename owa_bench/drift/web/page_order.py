"""Drift: a form asks its questions in another order."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import FlowPlan, SiteWorld, Workflow
from owa_bench.worlds.site_edits import allowed, flow_at, goal_workflow, recut


def _keys(flow: FlowPlan) -> tuple[str, ...]:
    return tuple(key for page in flow.pages for key in page)


def _orders(workflow: Workflow, keys: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the orders that come of one question changing its place."""
    made = {
        (*rest[:place], key, *rest[place:])
        for key in keys
        for rest in (tuple(k for k in keys if k != key),)
        for place in range(len(keys))
    }
    return sorted(o for o in made if o != keys and allowed(workflow, o))


class PageOrder:
    """Ask what a form asks in another order that its rules allow.

    Changes: the order of slots, and so which page each is on.
    Leaves alone: how many pages there are, and what must come before what.
    Announcement: D1 (the pages show it). Weight: 0.5.
    Errors: DriftError if `target` names no workflow, or one with a single order.
    Source: `changesurf.md` section 4.2, Flow operators.
    """

    name = "page_order"
    version = 1
    announcement: Announcement = "D1"
    weight = 0.5
    group = "Flow"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return the goal's workflow, where another order is allowed."""
        workflow = goal_workflow(world)
        keys = _keys(world.plan.flow(workflow.key))
        return (workflow.key,) if _orders(workflow, keys) else ()

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with its questions in another order."""
        flow = flow_at(world, target)
        keys = _keys(flow)
        orders = _orders(world.spec.workflow(target), keys)
        if not orders:
            raise DriftError(f"`target` must allow another order, got {keys!r}.")
        pages = recut(flow, orders[int(rng.integers(len(orders)))])
        return world.with_part("flows", msgspec.structs.replace(flow, pages=pages))


OPERATOR = PageOrder()

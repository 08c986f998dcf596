"""Drift: a form is put on one page."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import flow_at, goal_workflow


class MergePages:
    """Put all that a form asks on one page.

    Changes: how many pages a form has.
    Leaves alone: what it asks, in which order.
    Announcement: D1 (the page shows it). Weight: 0.6.
    Errors: DriftError if `target` names no workflow, or one of a single page.
    Source: `changesurf.md` section 4.2, Flow operators.
    """

    name = "merge_pages"
    version = 1
    announcement: Announcement = "D1"
    weight = 0.6
    group = "Flow"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return the goal's workflow, where it has two pages."""
        key = goal_workflow(world).key
        return (key,) if len(world.plan.flow(key).pages) > 1 else ()

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with one page."""
        flow = flow_at(world, target)
        if len(flow.pages) == 1:
            raise DriftError(f"`target` must have two pages, got {flow.pages!r}.")
        one = tuple(key for page in flow.pages for key in page)
        return world.with_part("flows", msgspec.structs.replace(flow, pages=(one,)))


OPERATOR = MergePages()

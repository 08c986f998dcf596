"""Drift: a form is cut into more pages."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import flow_at, goal_workflow


class SplitPages:
    """Cut every page of a form that asks two things or more in two.

    Changes: how many pages a form has.
    Leaves alone: what it asks, in which order.
    Announcement: D1 (the pages show it). Weight: 0.8.
    Errors: DriftError if `target` names no workflow, or one without a page to cut.
    Source: `changesurf.md` section 4.2, Flow operators.
    """

    name = "split_pages"
    version = 1
    announcement: Announcement = "D1"
    weight = 0.8
    group = "Flow"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return the goal's workflow, where a page can be cut."""
        key = goal_workflow(world).key
        pages = world.plan.flow(key).pages
        return (key,) if any(len(page) > 1 for page in pages) else ()

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with its pages cut in two."""
        flow = flow_at(world, target)
        pages: list[tuple[str, ...]] = []
        for page in flow.pages:
            half = (len(page) + 1) // 2
            pages += [part for part in (page[:half], page[half:]) if part]
        if len(pages) == len(flow.pages):
            raise DriftError(f"`target` must have a page to cut, got {flow.pages!r}.")
        changed = msgspec.structs.replace(flow, pages=tuple(pages))
        return world.with_part("flows", changed)


OPERATOR = SplitPages()

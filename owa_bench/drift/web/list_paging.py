"""Drift: a list is cut into smaller pieces, another way."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import Paging, SiteWorld
from owa_bench.worlds.site_edits import another, goal_lists, listing_at

_LEAST = 3
_KINDS: tuple[Paging, ...] = ("pages", "more")


class ListPaging:
    """Cut one list into shorter pages, turned the other way.

    Changes: page size and how pages are turned.
    Leaves alone: rows, their order, filters.
    Announcement: D1 (the page shows it). Weight: 0.7.
    Errors: DriftError if `target` names no collection.
    Source: `changesurf.md` section 4.2, Flow operators.
    """

    name = "list_paging"
    version = 1
    announcement: Announcement = "D1"
    weight = 0.7
    group = "Flow"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return every list the goal leads through."""
        return goal_lists(world)

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with the list cut another way."""
        plan = listing_at(world, target)
        size = max(_LEAST, round(plan.size * (1 - intensity / 2)))
        paging = another(_KINDS, plan.paging, rng)
        changed = msgspec.structs.replace(plan, size=size, paging=paging)
        return world.with_part("lists", changed)


OPERATOR = ListPaging()

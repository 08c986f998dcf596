"""Drift: a list is searched another way."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import Filter, SiteWorld
from owa_bench.worlds.site_edits import another, goal_lists, listing_at

_KINDS: tuple[Filter, ...] = ("search", "tree", "none")
_PLAIN: tuple[Filter, ...] = ("search", "none")


class FilterSwap:
    """Give one list a search box, a tree of categories, or neither.

    Changes: how a list can be narrowed down.
    Leaves alone: rows, columns, paging.
    Announcement: D1 (the page shows it). Weight: 0.6.
    Errors: DriftError if `target` names no collection.
    Source: `changesurf.md` section 4.2, Flow operators.
    """

    name = "filter_swap"
    version = 1
    announcement: Announcement = "D1"
    weight = 0.6
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
        """Return `world` with another way to narrow the list down."""
        plan = listing_at(world, target)
        known = _KINDS if world.spec.collection(target).category else _PLAIN
        chosen = another(known, plan.filter, rng)
        return world.with_part("lists", msgspec.structs.replace(plan, filter=chosen))


OPERATOR = FilterSwap()

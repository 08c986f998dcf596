"""Drift: a list shows its columns in another order."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import goal_lists, listing_at, reordered


class ColumnOrder:
    """Put the columns of one list in another order.

    Changes: the order of a list's columns.
    Leaves alone: what they hold, their headers, the rows.
    Announcement: D0 (the headers say which is which). Weight: 0.4.
    Errors: DriftError if `target` names no collection, or one with a single column.
    Source: `changesurf.md` section 4.2, DOM operators.
    """

    name = "column_order"
    version = 1
    announcement: Announcement = "D0"
    weight = 0.4
    group = "DOM"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return every list the goal leads through that has two columns."""
        return tuple(
            key for key in goal_lists(world) if len(world.plan.listing(key).columns) > 1
        )

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with the list's columns in another order."""
        plan = listing_at(world, target)
        columns = reordered(plan.columns, rng)
        return world.with_part("lists", msgspec.structs.replace(plan, columns=columns))


OPERATOR = ColumnOrder()

"""Drift: a list's amounts come in another unit, as its header says."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import goal_lists, listing_at


class Units:
    """Show the amounts of one list in cents; its headers say it.

    Together with `silent_units` the last one decides what the headers say; neither
    undoes the other.

    Changes: the unit of a list's money columns, and their headers.
    Leaves alone: the rows, and the pages of single rows.
    Announcement: D1 (the header says the unit). Weight: 0.7.
    Errors: DriftError if `target` names no collection.
    Source: `changesurf.md` section 4.2, Label operators.
    """

    name = "units"
    version = 1
    announcement: Announcement = "D1"
    weight = 0.7
    group = "Label"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return every list the goal leads through that has amounts."""
        return tuple(
            key
            for key in goal_lists(world)
            if any(c.kind == "money" for c in world.spec.collection(key).columns)
        )

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with the list's amounts in cents and headers that say so."""
        plan = listing_at(world, target)
        changed = msgspec.structs.replace(plan, cents=True, told=True)
        return world.with_part("lists", changed)


OPERATOR = Units()

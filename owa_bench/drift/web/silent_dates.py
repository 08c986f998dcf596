"""Drift: a list's dates swap day and month and nothing says so."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import DateForm, SiteWorld
from owa_bench.worlds.site_edits import another, goal_lists, listing_at

_SWAPPED: tuple[DateForm, ...] = ("dmy", "mdy")


class SilentDates:
    """Show the dates of one list with day and month in another order.

    Changes: the form of dates in one list.
    Leaves alone: headers, rows, fields; the pages of single rows spell months.
    Announcement: D3 (only a row's own page lets it be seen). Weight: 0.5.
    Errors: DriftError if `target` names no collection.
    Source: `changesurf.md` section 4.2, Label operators.
    """

    name = "silent_dates"
    version = 1
    announcement: Announcement = "D3"
    weight = 0.5
    group = "Label"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return every list the goal leads through that has dates."""
        return tuple(
            key
            for key in goal_lists(world)
            if any(c.kind == "date" for c in world.spec.collection(key).columns)
        )

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with the list's dates in another form."""
        plan = listing_at(world, target)
        now = plan.dates or world.plan.dates
        dates = another(_SWAPPED, now, rng)
        return world.with_part("lists", msgspec.structs.replace(plan, dates=dates))


OPERATOR = SilentDates()

"""Drift: dates are written in another form, as the page says."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import (
    OTHER_DATE_FORMS,
    SITE,
    another,
    goal_slots,
    whole,
)


class DateForm:
    """Take and show dates in another form; fields say which.

    Together with `untold_date_form` the last one decides whether fields say it.

    Changes: the form of dates all over the site.
    Leaves alone: the days themselves, silent forms of single lists.
    Announcement: D1 (the field's hint says the form). Weight: 0.7.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, Label operators.
    """

    name = "date_form"
    version = 1
    announcement: Announcement = "D1"
    weight = 0.7
    group = "Label"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return the site, where the goal asks for a date."""
        return (SITE,) if any(s.kind == "date" for s in goal_slots(world)) else ()

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with dates in another form."""
        whole(target)
        dates = another(OTHER_DATE_FORMS, world.plan.dates, rng)
        return world.with_plan(dates=dates, hinted=True)


OPERATOR = DateForm()

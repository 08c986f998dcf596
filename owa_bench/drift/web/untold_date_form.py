"""Drift: dates are written in another form that only an error tells."""

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


class UntoldDateForm:
    """Take and show dates in another form; no field says which.

    Changes: the form of dates, and the hints at date fields.
    Leaves alone: the days themselves, silent forms of single lists.
    Announcement: D2 (the refusal names the form). Weight: 0.5.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, Label operators.
    """

    name = "untold_date_form"
    version = 1
    announcement: Announcement = "D2"
    weight = 0.5
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
        """Return `world` with dates in another form and no hints."""
        whole(target)
        dates = another(OTHER_DATE_FORMS, world.plan.dates, rng)
        return world.with_plan(dates=dates, hinted=False)


OPERATOR = UntoldDateForm()

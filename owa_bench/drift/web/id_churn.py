"""Drift: ids, classes, field names and routes are made anew."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, whole

_FORMS = 1_000_000


class IdChurn:
    """Make every id, class, field name and route anew; alone it is the placebo arm.

    Changes: names that only a program reads.
    Leaves alone: everything a person reads.
    Announcement: D0 (nothing a reader sees). Weight: 0.2.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, DOM operators.
    """

    name = "id_churn"
    version = 1
    announcement: Announcement = "D0"
    weight = 0.2
    group = "DOM"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return the site as a whole."""
        return (SITE,)

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with other names beneath."""
        whole(target)
        churn = world.plan.churn + 1 + int(rng.integers(_FORMS))
        return world.with_plan(churn=churn)


OPERATOR = IdChurn()

"""Drift: pages are set closer, or wider."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, whole


class Density:
    """Set pages in smaller type and closer lines, or no longer so.

    Changes: type size and spacing.
    Leaves alone: everything else.
    Announcement: D0 (the content is the same). Weight: 0.2.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, Layout operators.
    """

    name = "density"
    version = 1
    announcement: Announcement = "D0"
    weight = 0.2
    group = "Layout"

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
        """Return `world` with the other density."""
        whole(target)
        return world.with_plan(dense=not world.plan.dense)


OPERATOR = Density()

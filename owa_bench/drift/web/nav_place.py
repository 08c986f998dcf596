"""Drift: the menu moves to another side."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import Nav, SiteWorld
from owa_bench.worlds.site_edits import SITE, another, whole

_PLACES: tuple[Nav, ...] = ("top", "side", "bottom")


class NavPlace:
    """Move the menu to the side, the top or the bottom.

    Changes: where the menu stands.
    Leaves alone: its words, order and links.
    Announcement: D0 (the content is the same). Weight: 0.4.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, Layout operators.
    """

    name = "nav_place"
    version = 1
    announcement: Announcement = "D0"
    weight = 0.4
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
        """Return `world` with its menu elsewhere."""
        whole(target)
        return world.with_plan(nav=another(_PLACES, world.plan.nav, rng))


OPERATOR = NavPlace()

"""Drift: the menu lists its entries in another order."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, reordered, whole


class MenuOrder:
    """Put the entries of the menu in another order.

    Changes: the order of the menu.
    Leaves alone: its words and where they lead.
    Announcement: D0 (the words are the same). Weight: 0.3.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, DOM operators.
    """

    name = "menu_order"
    version = 1
    announcement: Announcement = "D0"
    weight = 0.3
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
        """Return `world` with its menu in another order."""
        whole(target)
        return world.with_plan(menu=reordered(world.plan.menu, rng))


OPERATOR = MenuOrder()

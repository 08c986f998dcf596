"""Drift: pages change without being loaded anew, or no longer so."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, whole


class ClientSwaps:
    """Change pages by a script in place, or load them anew where a script did it.

    Changes: how a page comes into the window.
    Leaves alone: every page.
    Announcement: D0 (the pages are the same). Weight: 0.6.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, Flow operators.
    """

    name = "client_swaps"
    version = 1
    announcement: Announcement = "D0"
    weight = 0.6
    group = "Flow"

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
        """Return `world` with the other way to change pages."""
        whole(target)
        return world.with_plan(swaps=not world.plan.swaps)


OPERATOR = ClientSwaps()

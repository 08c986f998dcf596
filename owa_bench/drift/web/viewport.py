"""Drift: the window has another size."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, another, whole

_SIZES = ((1280, 720), (1024, 768), (820, 1180))


class Viewport:
    """Show the site in a window of another size.

    Changes: the window's width and height.
    Leaves alone: everything in it.
    Announcement: D0 (the content is the same). Weight: 0.3.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, Layout operators.
    """

    name = "viewport"
    version = 1
    announcement: Announcement = "D0"
    weight = 0.3
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
        """Return `world` in another window."""
        whole(target)
        return world.with_plan(viewport=another(_SIZES, world.plan.viewport, rng))


OPERATOR = Viewport()

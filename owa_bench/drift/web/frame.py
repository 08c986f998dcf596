"""Drift: content moves into a frame."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, whole


class Frame:
    """Serve the content of every page in a frame of the same origin.

    Changes: where in the document the content lies.
    Leaves alone: words, controls, order, pages.
    Announcement: D0 (a reader sees the same page). Weight: 0.5.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, DOM operators.
    """

    name = "frame"
    version = 1
    announcement: Announcement = "D0"
    weight = 0.5
    group = "DOM"
    held_out = True

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
        """Return `world` with its content in a frame."""
        whole(target)
        return world.with_plan(root="frame")


OPERATOR = Frame()

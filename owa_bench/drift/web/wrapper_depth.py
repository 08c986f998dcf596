"""Drift: content lies deeper in nested boxes."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, whole


class WrapperDepth:
    """Wrap a page's content in more boxes.

    Changes: how many elements stand around a page's content.
    Leaves alone: words, controls, order, pages.
    Announcement: D0 (nothing a reader sees). Weight: 0.3.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, DOM operators.
    """

    name = "wrapper_depth"
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
        """Return `world` with one to three boxes more."""
        whole(target)
        return world.with_plan(depth=world.plan.depth + 1 + round(2 * intensity))


OPERATOR = WrapperDepth()

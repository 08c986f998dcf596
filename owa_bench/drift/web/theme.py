"""Drift: pages wear other colours."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, another, whole

_THEMES = 6


class Theme:
    """Give pages another set of colours.

    Changes: colours.
    Leaves alone: everything else.
    Announcement: D0 (the content is the same). Weight: 0.2.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, Layout operators.
    """

    name = "theme"
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
        """Return `world` with other colours."""
        whole(target)
        theme = another(tuple(range(_THEMES)), world.plan.theme, rng)
        return world.with_plan(theme=theme)


OPERATOR = Theme()

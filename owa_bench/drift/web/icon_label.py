"""Drift: buttons show a sign in place of words."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, whole

_BUTTONS = ("go:next", "go:search", "go:more", "go:later", "go:earlier", "go:confirm")


class IconLabel:
    """Show a sign in place of the words of the common buttons.

    Changes: what a button shows.
    Leaves alone: its accessible name, what it does.
    Announcement: D0 (the name stays). Weight: 0.4.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, Label operators.
    """

    name = "icon_label"
    version = 1
    announcement: Announcement = "D0"
    weight = 0.4
    group = "Label"

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
        """Return `world` with signs for words."""
        whole(target)
        return world.with_plan(icons=_BUTTONS)


OPERATOR = IconLabel()

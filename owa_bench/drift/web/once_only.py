"""Drift: a form can be sent only once."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, whole


class OnceOnly:
    """Refuse a form that was sent before, in place of doing it twice.

    Changes: what comes of a form sent twice.
    Leaves alone: what comes of it sent once.
    Announcement: D0 (nothing breaks). Weight: 0.3.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, Friction operators.
    """

    name = "once_only"
    version = 1
    announcement: Announcement = "D0"
    weight = 0.3
    group = "Friction"

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
        """Return `world` with forms that count once."""
        whole(target)
        friction = msgspec.structs.replace(world.plan.friction, once=True)
        return world.with_plan(friction=friction)


OPERATOR = OnceOnly()

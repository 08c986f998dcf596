"""Drift: a form is refused when it comes too soon."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, whole

_LEAST_MS, _MORE_MS = 1_500, 4_500


class LeastTime:
    """Refuse a form that comes back sooner than a person could fill it in.

    Changes: how soon a form is taken.
    Leaves alone: pages, questions, sign-in.
    Announcement: D2 (the refusal says how long to wait). Weight: 0.4.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, Friction operators.
    """

    name = "least_time"
    version = 1
    announcement: Announcement = "D2"
    weight = 0.4
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
        """Return `world` with a least time on forms."""
        whole(target)
        friction = msgspec.structs.replace(
            world.plan.friction, least_ms=_LEAST_MS + round(_MORE_MS * intensity)
        )
        return world.with_plan(friction=friction)


OPERATOR = LeastTime()

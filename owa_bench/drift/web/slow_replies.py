"""Drift: replies take longer."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, whole

_SLOW_MS = 3_000


class SlowReplies:
    """Let every reply take longer, in simulated time.

    Changes: how long a reply takes.
    Leaves alone: pages, forms, sign-in.
    Announcement: D0 (nothing breaks). Weight: 0.3.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, Friction operators.
    """

    name = "slow_replies"
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
        """Return `world` with slow replies."""
        whole(target)
        friction = msgspec.structs.replace(
            world.plan.friction, slow_ms=max(1, round(_SLOW_MS * intensity))
        )
        return world.with_plan(friction=friction)


OPERATOR = SlowReplies()

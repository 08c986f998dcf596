"""Drift: requests are limited."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, whole

_LEAST, _MOST, _WINDOW_MS = 6, 12, 20_000  # requests, simulated ms


class RateLimit:
    """Answer too many requests in a short time with 429 and Retry-After.

    Changes: how many requests a window takes.
    Leaves alone: pages, forms, sign-in.
    Announcement: D2 (the refusal says how long to wait). Weight: 0.4.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, Friction operators.
    """

    name = "rate_limit"
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
        """Return `world` with a rate limit."""
        whole(target)
        friction = msgspec.structs.replace(
            world.plan.friction,
            requests=_MOST - round((_MOST - _LEAST) * intensity),
            window_ms=_WINDOW_MS,
        )
        return world.with_plan(friction=friction)


OPERATOR = RateLimit()

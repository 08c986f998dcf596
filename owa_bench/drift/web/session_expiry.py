"""Drift: a sign-in lapses in the middle of a form."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, whole

_LEAST, _MOST = 5, 10  # requests


class SessionExpiry:
    """Let a sign-in lapse after a few requests; a form that was begun is kept.

    Changes: how long a sign-in lasts.
    Leaves alone: how it works, and what was entered on earlier pages.
    Announcement: D2 (the sign-in page comes back). Weight: 0.5.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, Auth operators.
    """

    name = "session_expiry"
    version = 1
    announcement: Announcement = "D2"
    weight = 0.5
    group = "Auth"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return the site, where it has a sign-in."""
        return () if world.plan.auth.kind == "none" else (SITE,)

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with a sign-in that lapses."""
        whole(target)
        expires = _MOST - round((_MOST - _LEAST) * intensity)
        auth = msgspec.structs.replace(world.plan.auth, expires=expires)
        return world.with_plan(auth=auth)


OPERATOR = SessionExpiry()

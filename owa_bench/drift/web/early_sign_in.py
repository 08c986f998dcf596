"""Drift: signing in is asked before anything else, or no longer so."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, whole


class EarlySignIn:
    """Ask for the sign-in before any list, or only before a form.

    Changes: when the sign-in is asked for.
    Leaves alone: how it works.
    Announcement: D1 (the page shows it). Weight: 0.4.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, Auth operators.
    """

    name = "early_sign_in"
    version = 1
    announcement: Announcement = "D1"
    weight = 0.4
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
        """Return `world` with the sign-in asked at another time."""
        whole(target)
        auth = world.plan.auth
        changed = msgspec.structs.replace(auth, early=not auth.early)
        return world.with_plan(auth=changed)


OPERATOR = EarlySignIn()

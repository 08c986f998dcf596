"""Drift: signing in works another way."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, another, whole


class AuthSwap:
    """Sign visitors in another way: a name first, a code by mail or panel, a partner.

    Changes: the kind of sign-in.
    Leaves alone: user name, password and code.
    Announcement: D1 (the page shows it). Weight: 1.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, Auth operators.
    """

    name = "auth_swap"
    version = 1
    announcement: Announcement = "D1"
    weight = 1.0
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
        """Return `world` with another sign-in."""
        whole(target)
        auth = world.plan.auth
        kind = another(auth.others, auth.kind, rng)
        return world.with_plan(auth=msgspec.structs.replace(auth, kind=kind))


OPERATOR = AuthSwap()

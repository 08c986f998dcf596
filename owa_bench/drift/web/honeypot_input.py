"""Drift: forms hold an input that no person sees."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, whole


class HoneypotInput:
    """Put an input into every form that no person sees; who fills it in is refused.

    Changes: what a form holds out of sight.
    Leaves alone: what a person sees of it.
    Announcement: D0 (nothing a person does breaks). Weight: 0.3.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, Friction operators.
    """

    name = "honeypot_input"
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
        """Return `world` with a trap in its forms."""
        whole(target)
        friction = msgspec.structs.replace(world.plan.friction, trap=True)
        return world.with_plan(friction=friction)


OPERATOR = HoneypotInput()

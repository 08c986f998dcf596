"""Drift: an offer comes between a form and its end."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import flow_at, goal_workflow


class Interstitial:
    """Put an offer before the end of a form: to decline costs a step, to accept money.

    Changes: the steps of a form.
    Leaves alone: its questions; nothing is booked unless the offer is taken.
    Announcement: D1 (the page shows it). Weight: 0.5.
    Errors: DriftError if `target` names no workflow.
    Source: `changesurf.md` section 4.2, Flow operators.
    """

    name = "interstitial"
    version = 1
    announcement: Announcement = "D1"
    weight = 0.5
    group = "Flow"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return the goal's workflow."""
        return (goal_workflow(world).key,)

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with an offer before the end."""
        flow = flow_at(world, target)
        return world.with_part("flows", msgspec.structs.replace(flow, offer=True))


OPERATOR = Interstitial()

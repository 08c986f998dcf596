"""Drift: a form ends with a page to confirm."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import flow_at, goal_workflow


class ReviewPage:
    """Put a page before the end of a form that shows all and asks to confirm.

    Changes: the steps of a form.
    Leaves alone: its questions.
    Announcement: D1 (the page shows it). Weight: 0.4.
    Errors: DriftError if `target` names no workflow.
    Source: `changesurf.md` section 4.2, Flow operators.
    """

    name = "review_page"
    version = 1
    announcement: Announcement = "D1"
    weight = 0.4
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
        """Return `world` with a page to confirm."""
        flow = flow_at(world, target)
        return world.with_part("flows", msgspec.structs.replace(flow, review=True))


OPERATOR = ReviewPage()

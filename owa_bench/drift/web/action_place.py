"""Drift: a row's action stands in the list, or no longer does."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import goal_workflow, listing_at


class ActionPlace:
    """Let rows of one list carry their action themselves, or only their own pages.

    Changes: where a row's action stands.
    Leaves alone: its words and what it does.
    Announcement: D1 (the page shows it). Weight: 0.5.
    Errors: DriftError if `target` names no collection.
    Source: `changesurf.md` section 4.2, Flow operators.
    """

    name = "action_place"
    version = 1
    announcement: Announcement = "D1"
    weight = 0.5
    group = "Flow"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return the list that the goal's workflow begins at."""
        record = goal_workflow(world).record
        return (record,) if record else ()

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with the action elsewhere."""
        plan = listing_at(world, target)
        changed = msgspec.structs.replace(plan, direct=not plan.direct)
        return world.with_part("lists", changed)


OPERATOR = ActionPlace()

"""Drift: columns are folded away beneath their row."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import goal_lists, listing_at

_SHARE = 0.6  # of the columns at full intensity


class Drawer:
    """Fold some columns of one list away, to be opened row by row.

    Changes: which columns a list shows at once.
    Leaves alone: what they hold; the title stays in sight.
    Announcement: D1 (the page shows it). Weight: 0.6.
    Errors: DriftError if `target` names no collection.
    Source: `changesurf.md` section 4.2, Flow operators.
    """

    name = "drawer"
    version = 1
    announcement: Announcement = "D1"
    weight = 0.6
    group = "Flow"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return every list the goal leads through with columns to fold away."""
        return tuple(
            key for key in goal_lists(world) if not world.plan.listing(key).drawer
        )

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with columns folded away."""
        plan = listing_at(world, target)
        title = world.spec.collection(target).title
        count = max(1, round(_SHARE * intensity * len(plan.columns)))
        free = [key for key in plan.columns if key != title]
        order = rng.permutation(len(free)).tolist()[:count]
        folded = tuple(key for i, key in enumerate(free) if i in order)
        columns = tuple(key for key in plan.columns if key not in folded)
        drawer = (*plan.drawer, *folded)
        changed = msgspec.structs.replace(plan, columns=columns, drawer=drawer)
        return world.with_part("lists", changed)


OPERATOR = Drawer()

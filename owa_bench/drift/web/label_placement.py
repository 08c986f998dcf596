"""Drift: a label moves into its field or out of sight."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import Placement, SiteWorld
from owa_bench.worlds.site_edits import another, goal_slots, slot_at, slot_key

_PLACES: tuple[Placement, ...] = ("placeholder", "aria")


class LabelPlacement:
    """Name one field by its placeholder or by its accessible name alone.

    Changes: where a field's label stands.
    Leaves alone: the label's words, the control.
    Announcement: D0 (the name stays). Weight: 0.5.
    Errors: DriftError if `target` names no slot.
    Source: `changesurf.md` section 4.2, Label operators.
    """

    name = "label_placement"
    version = 1
    announcement: Announcement = "D0"
    weight = 0.5
    group = "Label"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return every slot of the goal that is typed or picked from a list."""
        return tuple(
            slot_key(world, slot)
            for slot in goal_slots(world)
            if slot.kind in ("text", "money", "number", "date")
        )

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with the label elsewhere."""
        plan, _ = slot_at(world, target)
        placement = another(_PLACES, plan.placement, rng)
        changed = msgspec.structs.replace(plan, placement=placement)
        return world.with_part("slots", changed)


OPERATOR = LabelPlacement()

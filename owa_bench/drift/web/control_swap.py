"""Drift: a slot is asked by another control."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import CONTROLS, Control, SiteWorld, Slot
from owa_bench.worlds.site_edits import another, goal_slots, slot_at, slot_key

_FEW = 12  # numbers of fewer values than this may be picked from a list


def _controls(slot: Slot) -> tuple[Control, ...]:
    if slot.kind == "number" and slot.most - slot.least >= _FEW:
        return ("text",)
    return CONTROLS[slot.kind]


class ControlSwap:
    """Ask one slot by another kind of control: list, radio buttons, list box, pieces.

    Changes: the control that stands for a slot.
    Leaves alone: its words, its options, the page it is on.
    Announcement: D1 (the page shows the new control). Weight: 1.
    Errors: DriftError if `target` names no slot, or one with a single control.
    Source: `changesurf.md` section 4.2, DOM operators.
    """

    name = "control_swap"
    version = 1
    announcement: Announcement = "D1"
    weight = 1.0
    group = "DOM"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return every slot of the goal that has another control."""
        return tuple(
            slot_key(world, slot)
            for slot in goal_slots(world)
            if len(_controls(slot)) > 1
        )

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with another control for the slot."""
        plan, slot = slot_at(world, target)
        control = another(_controls(slot), plan.control, rng)
        return world.with_part("slots", msgspec.structs.replace(plan, control=control))


OPERATOR = ControlSwap()

"""Drift: a form comes with an answer already given."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import another, goal_slots, slot_at, slot_key


class DefaultValue:
    """Let one slot come with a value nobody chose: a ticked box, a chosen option.

    Changes: what a slot holds when its page comes.
    Leaves alone: its words, its control, its options.
    Announcement: D3 (the form shows it and no word is said). Weight: 0.7.
    Errors: DriftError if `target` names no box or choice.
    Source: `changesurf.md` section 4.2, Flow operators.
    """

    name = "default_value"
    version = 1
    announcement: Announcement = "D3"
    weight = 0.7
    group = "Flow"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return every box and choice of the goal."""
        return tuple(
            slot_key(world, slot)
            for slot in goal_slots(world)
            if slot.kind in ("check", "choice")
        )

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with another value in the slot."""
        plan, slot = slot_at(world, target)
        values = [option.value for option in slot.options]
        if slot.kind not in ("check", "choice") or not values:
            raise DriftError(f"`target` must name a box or a choice, got {target!r}.")
        default = another(values, plan.default, rng)
        return world.with_part("slots", msgspec.structs.replace(plan, default=default))


OPERATOR = DefaultValue()

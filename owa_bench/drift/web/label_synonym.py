"""Drift: a thing goes by another word."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import another, goal_labels


class LabelSynonym:
    """Call one slot, button, menu entry or column by another word.

    Changes: one label, wherever it stands.
    Leaves alone: what it stands for, and every other word.
    Announcement: D1 (the page says the new word). Weight: 1.
    Errors: DriftError if `target` names no label with another word.
    Source: `changesurf.md` section 4.2, Label operators.
    """

    name = "label_synonym"
    version = 1
    announcement: Announcement = "D1"
    weight = 1.0
    group = "Label"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return every label on the goal's way that has another word."""
        labels = {label.key: label for label in world.plan.labels}
        return tuple(
            key for key in goal_labels(world) if key in labels and labels[key].others
        )

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with the label in another word."""
        labels = {label.key: label for label in world.plan.labels}
        if target not in labels or not labels[target].others:
            raise DriftError(
                f"`target` must name a label with another word, got {target!r}."
            )
        label = labels[target]
        text = another(label.others, label.text, rng)
        return world.with_part("labels", msgspec.structs.replace(label, text=text))


OPERATOR = LabelSynonym()

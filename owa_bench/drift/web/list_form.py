"""Drift: a list becomes cards, a table or a grid."""

import msgspec
import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import LIST_FORMS, SiteWorld
from owa_bench.worlds.site_edits import another, goal_lists, listing_at


class ListForm:
    """Show one list in another form: table, cards, or a grid of plain boxes.

    Changes: the elements a list is made of.
    Leaves alone: rows, columns, their words, paging.
    Announcement: D1 (the page shows the new form). Weight: 0.8.
    Errors: DriftError if `target` names no collection.
    Source: `changesurf.md` section 4.2, DOM operators.
    """

    name = "list_form"
    version = 1
    announcement: Announcement = "D1"
    weight = 0.8
    group = "DOM"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return every list the goal leads through."""
        return goal_lists(world)

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with the list in another form."""
        plan = listing_at(world, target)
        form = another(LIST_FORMS, plan.form, rng)
        return world.with_part("lists", msgspec.structs.replace(plan, form=form))


OPERATOR = ListForm()

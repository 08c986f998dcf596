"""Drift: pages follow another layout."""

import numpy as np

from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, another, whole


class Template:
    """Lay pages out by another template.

    Changes: headings, side boxes and mottos around the content.
    Leaves alone: the content itself.
    Announcement: D0 (the content is the same). Weight: 0.5.
    Errors: DriftError if `target` is not the site.
    Source: `changesurf.md` section 4.2, Layout operators.
    """

    name = "template"
    version = 1
    announcement: Announcement = "D0"
    weight = 0.5
    group = "Layout"

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
        """Return `world` with another template."""
        whole(target)
        template = another(world.plan.templates, world.plan.template, rng)
        return world.with_plan(template=template)


OPERATOR = Template()

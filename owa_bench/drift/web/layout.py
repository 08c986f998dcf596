"""Operators on a site's layout: template, colours, spacing, menu side and window."""

from numpy.random import Generator

from owa_bench.interfaces import operator
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, another
from owa_bench.worlds.site_spec import NAVS

_THEMES = tuple(range(6))
_WINDOWS = ((1280, 720), (1024, 768), (820, 1180))  # width and height in pixels


@operator(announcement="D0", weight=0.2, group="Layout", targets=SITE)
def density(world: SiteWorld) -> SiteWorld:
    """Set pages in smaller type and closer lines, or no longer so.

    Changes: type size and spacing.
    Leaves alone: everything else.
    Announcement: D0 (the content is the same). Weight: 0.2.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (Layout).
    """
    return world.with_plan(dense=not world.plan.dense)


@operator(announcement="D0", weight=0.4, group="Layout", targets=SITE)
def nav_place(world: SiteWorld, rng: Generator) -> SiteWorld:
    """Move the menu to the side, the top or the bottom.

    Changes: where the menu stands.
    Leaves alone: its words, order and links.
    Announcement: D0 (the content is the same). Weight: 0.4.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (Layout).
    """
    return world.with_plan(nav=another(NAVS, world.plan.nav, rng))


@operator(announcement="D0", weight=0.5, group="Layout", targets=SITE)
def template(world: SiteWorld, rng: Generator) -> SiteWorld:
    """Lay pages out by another template.

    Changes: headings, side boxes and mottos around the content.
    Leaves alone: the content itself.
    Announcement: D0 (the content is the same). Weight: 0.5.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (Layout).
    """
    plan = world.plan
    return world.with_plan(template=another(plan.templates, plan.template, rng))


@operator(announcement="D0", weight=0.2, group="Layout", targets=SITE)
def theme(world: SiteWorld, rng: Generator) -> SiteWorld:
    """Give pages another set of colours.

    Changes: colours.
    Leaves alone: everything else.
    Announcement: D0 (the content is the same). Weight: 0.2.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (Layout).
    """
    return world.with_plan(theme=another(_THEMES, world.plan.theme, rng))


@operator(announcement="D0", weight=0.3, group="Layout", targets=SITE)
def viewport(world: SiteWorld, rng: Generator) -> SiteWorld:
    """Show the site in a window of another size.

    Changes: the window's width and height.
    Leaves alone: everything in it.
    Announcement: D0 (the content is the same). Weight: 0.3.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (Layout).
    """
    return world.with_plan(viewport=another(_WINDOWS, world.plan.viewport, rng))

"""Operators on a site's document (names, nesting, order, kinds) and its layout."""

from numpy.random import Generator

from owa_bench.drift.operator import operator
from owa_bench.envs.changesurf.site_edits import (
    SITE,
    another,
    goal_lists,
    listing_at,
    lists_where,
    reordered,
    slot_at,
    slots_where,
)
from owa_bench.envs.changesurf.site_spec import CONTROLS, LIST_FORMS, NAVS, Control, Slot
from owa_bench.envs.changesurf.world import SiteWorld

_SHORT_RANGE = 12  # numbers of fewer values than this may be picked from a list
_IDENTIFIER_SCHEMES = 1_000_000


def _controls(slot: Slot) -> tuple[Control, ...]:
    """Return the controls that may stand for a slot."""
    if slot.kind == "number" and slot.most - slot.least >= _SHORT_RANGE:
        return ("text",)
    return CONTROLS[slot.kind]


@operator(
    announcement="D0",
    weight=0.4,
    group="DOM",
    targets=lists_where(lambda world, key: len(world.plan.listing(key).columns) > 1),
)
def column_order(world: SiteWorld, target: str, rng: Generator) -> SiteWorld:
    """Put the columns of one list in another order.

    Changes: the order of a list's columns.
    Leaves alone: what they hold, their headers, the rows.
    Announcement: D0 (the headers say which is which). Weight: 0.4.
    Raises: DriftError if `target` names no collection, or one with a single column.
    Source: docs/changesurf.md#operators (DOM).
    """
    plan = listing_at(world, target)
    return world.with_part("lists", plan, columns=reordered(plan.columns, rng))


@operator(
    announcement="D1",
    weight=1.0,
    group="DOM",
    targets=slots_where(lambda slot: len(_controls(slot)) > 1),
)
def control_swap(world: SiteWorld, target: str, rng: Generator) -> SiteWorld:
    """Ask one slot by another kind of control: list, radio buttons, list box, pieces.

    Changes: the control that stands for a slot.
    Leaves alone: its words, its options, the page it is on.
    Announcement: D1 (the page shows the new control). Weight: 1.
    Raises: DriftError if `target` names no slot, or one with a single control.
    Source: docs/changesurf.md#operators (DOM).
    """
    plan, slot = slot_at(world, target)
    control = another(_controls(slot), plan.control, rng)
    return world.with_part("slots", plan, control=control)


@operator(announcement="D0", weight=0.5, group="DOM", targets=SITE, held_out=True)
def frame(world: SiteWorld) -> SiteWorld:
    """Serve the content of every page in a frame of the same origin.

    Changes: where in the document the content lies.
    Leaves alone: words, controls, order, pages.
    Announcement: D0 (a reader sees the same page). Weight: 0.5.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (DOM).
    """
    return world.with_plan(root="frame")


@operator(announcement="D0", weight=0.2, group="DOM", targets=SITE)
def id_churn(world: SiteWorld, rng: Generator) -> SiteWorld:
    """Make every id, class, field name and route anew; alone it is the placebo arm.

    Changes: names that only a program reads.
    Leaves alone: everything a person reads.
    Announcement: D0 (nothing a reader sees). Weight: 0.2.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (DOM).
    """
    churn = world.plan.churn + 1 + int(rng.integers(_IDENTIFIER_SCHEMES))
    return world.with_plan(churn=churn)


@operator(announcement="D1", weight=0.8, group="DOM", targets=goal_lists)
def list_form(world: SiteWorld, target: str, rng: Generator) -> SiteWorld:
    """Show one list in another form: table, cards, or a grid of plain boxes.

    Changes: the elements a list is made of.
    Leaves alone: rows, columns, their words, paging.
    Announcement: D1 (the page shows the new form). Weight: 0.8.
    Raises: DriftError if `target` names no collection.
    Source: docs/changesurf.md#operators (DOM).
    """
    plan = listing_at(world, target)
    return world.with_part("lists", plan, form=another(LIST_FORMS, plan.form, rng))


@operator(announcement="D0", weight=0.3, group="DOM", targets=SITE)
def menu_order(world: SiteWorld, rng: Generator) -> SiteWorld:
    """Put the entries of the menu in another order.

    Changes: the order of the menu.
    Leaves alone: its words and where they lead.
    Announcement: D0 (the words are the same). Weight: 0.3.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (DOM).
    """
    return world.with_plan(menu=reordered(world.plan.menu, rng))


@operator(announcement="D0", weight=0.5, group="DOM", targets=SITE, held_out=True)
def shadow_root(world: SiteWorld) -> SiteWorld:
    """Serve the content of every page in an open shadow root.

    Changes: where in the document the content lies.
    Leaves alone: words, controls, order, pages.
    Announcement: D0 (a reader sees the same page). Weight: 0.5.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (DOM).
    """
    return world.with_plan(root="shadow")


@operator(announcement="D0", weight=0.3, group="DOM", targets=SITE)
def wrapper_depth(world: SiteWorld, intensity: float) -> SiteWorld:
    """Wrap a page's content in more boxes.

    Changes: how many elements stand around a page's content.
    Leaves alone: words, controls, order, pages.
    Announcement: D0 (nothing a reader sees). Weight: 0.3.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (DOM).
    """
    return world.with_plan(depth=world.plan.depth + 1 + round(2 * intensity))


# --- layout: template, colours, spacing, menu side, window ----------------------------


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

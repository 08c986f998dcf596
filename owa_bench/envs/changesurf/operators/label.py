"""Operators on a site's words: labels, units and the form of dates."""

from numpy.random import Generator

from owa_bench.drift.operator import operator
from owa_bench.envs.changesurf.site_edits import (
    SITE,
    another,
    goal_labels,
    goal_slots,
    listing_at,
    lists_where,
    slot_at,
    slots_where,
)
from owa_bench.envs.changesurf.site_spec import DATE_FORMS, DateForm, Placement
from owa_bench.envs.changesurf.world import SiteWorld
from owa_bench.errors import DriftError

_BUTTONS = ("go:next", "go:search", "go:more", "go:later", "go:earlier", "go:confirm")
_TYPED_KINDS = ("text", "money", "number", "date")
_HIDDEN_PLACEMENTS: tuple[Placement, ...] = ("placeholder", "aria")
# A site begins with ISO dates, and no drift leads back to them.
_OTHER_DATE_FORMS = tuple(form for form in DATE_FORMS if form != "iso")
_SWAPPED_DATE_FORMS: tuple[DateForm, ...] = ("dmy", "mdy")


def _asks_date(world: SiteWorld) -> bool:
    """Return whether the goal asks for a date."""
    return any(slot.kind == "date" for slot in goal_slots(world))


def _has_money(world: SiteWorld, key: str) -> bool:
    """Return whether a collection has amounts."""
    return any(c.kind == "money" for c in world.spec.collection(key).columns)


def _has_dates(world: SiteWorld, key: str) -> bool:
    """Return whether a collection has dates."""
    return any(c.kind == "date" for c in world.spec.collection(key).columns)


def _labels_with_synonym(world: SiteWorld) -> tuple[str, ...]:
    """Return the keys of the goal's labels that have another word."""
    labels = {label.key: label for label in world.plan.labels}
    return tuple(key for key in goal_labels(world) if key in labels and labels[key].others)


@operator(announcement="D1", weight=0.7, group="Label", targets=SITE, where=_asks_date)
def date_form(world: SiteWorld, rng: Generator) -> SiteWorld:
    """Take and show dates in another form; fields say which.

    Together with `untold_date_form` the last one decides whether fields say it.

    Changes: the form of dates all over the site.
    Leaves alone: the days themselves, silent forms of single lists.
    Announcement: D1 (the field's hint says the form). Weight: 0.7.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (Label).
    """
    dates = another(_OTHER_DATE_FORMS, world.plan.dates, rng)
    return world.with_plan(dates=dates, hinted=True)


@operator(announcement="D0", weight=0.4, group="Label", targets=SITE)
def icon_label(world: SiteWorld) -> SiteWorld:
    """Show a sign in place of the words of the common buttons.

    Changes: what a button shows.
    Leaves alone: its accessible name, what it does.
    Announcement: D0 (the name stays). Weight: 0.4.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (Label).
    """
    return world.with_plan(icons=_BUTTONS)


@operator(
    announcement="D0",
    weight=0.5,
    group="Label",
    targets=slots_where(lambda slot: slot.kind in _TYPED_KINDS),
)
def label_placement(world: SiteWorld, target: str, rng: Generator) -> SiteWorld:
    """Name one field by its placeholder or by its accessible name alone.

    Changes: where a field's label stands.
    Leaves alone: the label's words, the control.
    Announcement: D0 (the name stays). Weight: 0.5.
    Raises: DriftError if `target` names no slot.
    Source: docs/changesurf.md#operators (Label).
    """
    plan, _ = slot_at(world, target)
    placement = another(_HIDDEN_PLACEMENTS, plan.placement, rng)
    return world.with_part("slots", plan, placement=placement)


@operator(announcement="D1", weight=1.0, group="Label", targets=_labels_with_synonym)
def label_synonym(world: SiteWorld, target: str, rng: Generator) -> SiteWorld:
    """Call one slot, button, menu entry or column by another word.

    Changes: one label, wherever it stands.
    Leaves alone: what it stands for, and every other word.
    Announcement: D1 (the page says the new word). Weight: 1.
    Raises: DriftError if `target` names no label with another word.
    Source: docs/changesurf.md#operators (Label).
    """
    labels = {label.key: label for label in world.plan.labels}
    if target not in labels or not labels[target].others:
        raise DriftError(f"`target` must name a label with another word, got {target!r}.")
    label = labels[target]
    text = another(label.others, label.text, rng)
    return world.with_part("labels", label, text=text)


@operator(announcement="D3", weight=0.5, group="Label", targets=lists_where(_has_dates))
def silent_dates(world: SiteWorld, target: str, rng: Generator) -> SiteWorld:
    """Show the dates of one list with day and month in another order.

    Changes: the form of dates in one list.
    Leaves alone: headers, rows, fields; the pages of single rows spell months.
    Announcement: D3 (only a row's own page lets it be seen). Weight: 0.5.
    Raises: DriftError if `target` names no collection.
    Source: docs/changesurf.md#operators (Label).
    """
    plan = listing_at(world, target)
    dates = another(_SWAPPED_DATE_FORMS, plan.dates or world.plan.dates, rng)
    return world.with_part("lists", plan, dates=dates)


@operator(announcement="D3", weight=0.7, group="Label", targets=lists_where(_has_money))
def silent_units(world: SiteWorld, target: str) -> SiteWorld:
    """Show the amounts of one list in cents; its headers keep quiet.

    Together with `units` the last one decides what the headers say; neither undoes the other.

    Changes: the unit of a list's money columns.
    Leaves alone: headers, rows, and the pages of single rows, which name the currency.
    Announcement: D3 (only a row's own page lets it be seen). Weight: 0.7.
    Raises: DriftError if `target` names no collection.
    Source: docs/changesurf.md#operators (Label).
    """
    return world.with_part("lists", listing_at(world, target), cents=True, told=False)


@operator(announcement="D1", weight=0.7, group="Label", targets=lists_where(_has_money))
def units(world: SiteWorld, target: str) -> SiteWorld:
    """Show the amounts of one list in cents; its headers say it.

    Together with `silent_units` the last one decides what the headers say; neither undoes the
    other.

    Changes: the unit of a list's money columns, and their headers.
    Leaves alone: the rows, and the pages of single rows.
    Announcement: D1 (the header says the unit). Weight: 0.7.
    Raises: DriftError if `target` names no collection.
    Source: docs/changesurf.md#operators (Label).
    """
    return world.with_part("lists", listing_at(world, target), cents=True, told=True)


@operator(announcement="D2", weight=0.5, group="Label", targets=SITE, where=_asks_date)
def untold_date_form(world: SiteWorld, rng: Generator) -> SiteWorld:
    """Take and show dates in another form; no field says which.

    Changes: the form of dates, and the hints at date fields.
    Leaves alone: the days themselves, silent forms of single lists.
    Announcement: D2 (the refusal names the form). Weight: 0.5.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (Label).
    """
    dates = another(_OTHER_DATE_FORMS, world.plan.dates, rng)
    return world.with_plan(dates=dates, hinted=False)

"""How far drift moves the controls of a site, as a real browser lays them out.

The part of realised magnitude that needs a browser: the oracle's way is played through
the site before and after, and every control that both have is looked for by what it
means, not by its name or id.
"""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from owa_bench.envs.changesurf.elements import Page, buttons, forms
from owa_bench.envs.changesurf.generate import generate
from owa_bench.envs.changesurf.pages import build
from owa_bench.envs.changesurf.session import SurfState
from owa_bench.interfaces import Suite
from owa_bench.records.events import fixed
from owa_bench.records.instance import Instance, Timeline
from owa_bench.shells.calls import call_text
from owa_bench.shells.episode import Episode, EpisodeTerms
from owa_bench.shells.sink import NullSink
from owa_bench.worlds.site import SiteWorld


class Centre(NamedTuple):
    """The middle of a control on the whole page, in CSS pixels."""

    x: float
    y: float


# Page -> what a control means -> where it stood when the page was seen first.
Places = Mapping[str, Mapping[str, Centre]]


def moved(suite: Suite, timeline: Timeline) -> float | None:
    """Return how far a timeline's whole drift moves the controls, None if none stayed.

    Formula: the mean distance between the centres of a control before and after, over
    the diagonal of the window before; over all controls of all pages that both have.
    """
    still = msgspec.structs.replace(timeline.instance, drift_step=0)
    before = generate(still)
    return displacement(
        places(suite, _alone(still, before)),
        places(suite, _alone(still, timeline.worlds[-1])),
        math.hypot(*before.plan.viewport),
    )


def displacement(before: Places, after: Places, diagonal: float) -> float | None:
    """Return the mean way of the controls that both have, in diagonals."""
    ways = [
        math.dist(there, after[page][ref])
        for page, centres in before.items()
        if page in after
        for ref, there in centres.items()
        if ref in after[page]
    ]
    return fixed(math.fsum(ways) / len(ways) / diagonal) if ways else None


def places(suite: Suite, timeline: Timeline) -> Places:
    """Return where the controls stand on the oracle's way through a site."""
    terms = EpisodeTerms(step_limit=suite.card.step_limit)
    episode = Episode(suite, timeline, sink=NullSink(), terms=terms)
    found: dict[str, dict[str, Centre]] = {}
    try:
        while episode.ending is None:
            state = episode.session.state
            if state.site.page not in found:
                found[state.site.page] = dict(_centres(state, timeline.instance))
            hint = suite.oracle.hint(timeline, state)
            episode.step(call_text(hint["tool"], hint["arguments"]))
    finally:
        episode.close()
    return found


def _centres(state: SurfState, instance: Instance) -> Iterator[tuple[str, Centre]]:
    """Yield what each control of the open page means, and where it stands."""
    site, page = state.site, state.page
    meant = {ident: ref for ref, ident in _named(build(site, instance))}
    for control in page.controls:
        if control.ident in meant:
            yield (
                meant[control.ident],
                Centre(
                    page.window.x + control.x + control.width / 2,
                    page.window.y + control.y + control.height / 2,
                ),
            )


def _named(page: Page) -> Iterator[tuple[str, str]]:
    """Yield reference and id of everything on a page that can be acted on."""
    for button in buttons(page):
        yield button.ref, button.ident
    for form in forms(page):
        for field in form.fields:
            yield field.ref, field.ident
            yield from ((part.ref, part.ident) for part in field.parts)
            yield from ((choice.ref, choice.ident) for choice in field.choices)


def _alone(still: Instance, world: SiteWorld) -> Timeline:
    """Return the timeline of one world, at drift step 0: decoys are no drift."""
    return Timeline(
        instance=still, starts=(0,), worlds=(world,), changes=((),), realised=0.0
    )

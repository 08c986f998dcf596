"""Realised magnitude of drift: rendered pages, page graph, steps and control positions.

Nominal magnitude is how much drift was drawn; these measure its effect, on the oracle's own path
through the site before and after. Changed ids alone leave all of them at 0. Control positions take
a browser; every control that both sites have is found by what it means, not by its name or id.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from owa_bench.envs.changesurf.browser import observation
from owa_bench.envs.changesurf.generate import generate
from owa_bench.envs.changesurf.oracle.walk import Walk, WalkPage, walk
from owa_bench.envs.changesurf.server.page_model import PageModel
from owa_bench.envs.changesurf.server.pages import build
from owa_bench.envs.changesurf.world import SiteWorld
from owa_bench.errors import DriftError
from owa_bench.interfaces import Suite
from owa_bench.records.events import fixed
from owa_bench.records.instance import Instance, Timeline
from owa_bench.shells.calls import call_text
from owa_bench.shells.episode import Episode, EpisodeTerms
from owa_bench.shells.episode_events import NullSink

_DEEP = ("option",)  # choices of a list stand for data, not for the page
_KEPT = 64  # walks, of about 0.1 s each: arms and replays meet the same worlds


class RoleTree(NamedTuple):
    """A tree of (role, name) with everything else left out."""

    label: tuple[str, str]
    children: tuple["RoleTree", ...]


class MagnitudeChange(NamedTuple):
    """The effect of a drift on the rendered site.

    tree      mean normalised edit distance of (role, name) trees, pages paired by key
    labels    share of the walk's control names that are new or gone
    graph     share of the walk's page-to-page steps that are new or gone
    steps     additional (or, negative, fewer) steps of the oracle's walk
    """

    tree: float
    labels: float
    graph: float
    steps: int


def magnitude_change(before: Walk, after: Walk) -> MagnitudeChange:
    """Compare two walks to the same goal.

    Formula: each share is |A xor B| / |A or B| over multisets of names and over sets of
    edges; tree distance is `tree_distance`, 1 for a page that only one walk has.

    Args:
        before: the walk without drift.
        after: the walk with it.
    Returns: The four measures.
    """
    return MagnitudeChange(
        tree=_tree_change(before.pages, after.pages),
        labels=label_change(_names(before.pages), _names(after.pages)),
        graph=_graph_change(before.pages, after.pages),
        steps=len(after.steps) - len(before.steps),
    )


def timeline_change(timeline: Timeline) -> MagnitudeChange | None:
    """Return the effect of a timeline's whole drift, None if the site was not walked.

    Both walks are those of drift step 0, so that names are those of one attempt.
    """
    still = replace(timeline.instance, drift_step=0)
    try:
        before = _cached_walk(still, generate(still))
        return magnitude_change(before, _cached_walk(still, timeline.worlds[-1]))
    except DriftError:
        return None


@lru_cache(maxsize=_KEPT)
def _cached_walk(still: Instance, world: SiteWorld) -> Walk:
    return walk(_one_world(still, world))


def _one_world(still: Instance, world: SiteWorld) -> Timeline:
    """Return the timeline of one world."""
    return Timeline(instance=still, starts=(0,), worlds=(world,), changes=((),), realised=0.0)


def role_tree(root: observation.HtmlNode) -> RoleTree:
    """Return the (role, name) tree of a document."""
    return RoleTree(("document", ""), _below(root))


def tree_distance(a: RoleTree, b: RoleTree) -> float:
    """Return the top-down edit distance of two trees over the sum of their sizes.

    Inserting or deleting a subtree costs its size, renaming a node 1; children keep their order
    (Selkow's distance).

    Args:
        a: a tree.
        b: another tree.
    Returns: 0 for equal trees, at most 1.
    """
    cost = _edit(a, b)
    return fixed(min(1.0, cost / (_size(a) + _size(b))))


def label_change(a: Sequence[str], b: Sequence[str]) -> float:
    """Return the share of names that only one of two collections has, with counts.

    Args:
        a: names.
        b: other names.
    Returns: 0 for equal collections, at most 1.
    """
    first, second = Counter(a), Counter(b)
    union = (first | second).total()
    return fixed(1.0 - (first & second).total() / union) if union else 0.0


def _below(node: observation.HtmlNode) -> tuple[RoleTree, ...]:
    made: list[RoleTree] = []
    for child in node.children:
        if not isinstance(child, observation.HtmlNode) or child.role in _DEEP:
            continue
        inner = _below(child)
        if child.role:
            made.append(RoleTree((child.role, child.name), inner))
        else:
            made.extend(inner)
    return tuple(made)


@cache
def _size(tree: RoleTree) -> int:
    return 1 + sum(_size(child) for child in tree.children)


def _edit(a: RoleTree, b: RoleTree) -> int:
    if a == b:
        return 0
    row = [0]
    for child in b.children:
        row.append(row[-1] + _size(child))
    for child in a.children:
        gone = _size(child)
        new = [row[0] + gone]
        for i, other in enumerate(b.children):
            renamed = row[i] + _edit(child, other)
            new.append(min(row[i + 1] + gone, new[i] + _size(other), renamed))
        row = new
    return row[-1] + int(a.label != b.label)


def _first_visits(pages: Sequence[WalkPage]) -> dict[str, observation.HtmlNode]:
    """Return each page as it was seen first, by what it is."""
    found: dict[str, observation.HtmlNode] = {}
    for page in pages:
        if page.page not in found:
            found[page.page] = observation.parse_html(page.html)
    return found


def _tree_change(before: Sequence[WalkPage], after: Sequence[WalkPage]) -> float:
    first, second = _first_visits(before), _first_visits(after)
    distances = [
        tree_distance(role_tree(first[page]), role_tree(second[page]))
        if page in first and page in second
        else 1.0
        for page in sorted({*first, *second})
    ]
    return fixed(sum(distances) / len(distances)) if distances else 0.0


def _names(pages: Sequence[WalkPage]) -> list[str]:
    return [
        f"{page}|{node.role}|{node.name}"
        for page, root in _first_visits(pages).items()
        for node in observation.html_controls(root)
    ]


def _graph_change(before: Sequence[WalkPage], after: Sequence[WalkPage]) -> float:
    a, b = (set(pairwise(page.page for page in pages)) for pages in (before, after))
    return fixed(len(a ^ b) / len(a | b)) if a | b else 0.0


# --- control positions ----------------------------------------------------------------


class Centre(NamedTuple):
    """The middle of a control on the whole page, in CSS pixels."""

    x: float
    y: float


# Page -> what a control means -> its position when the page was first visited.
Places = Mapping[str, Mapping[str, Centre]]


def mean_displacement(suite: Suite, timeline: Timeline) -> float | None:
    """Return how far a timeline's whole drift moves the controls.

    Formula: the mean distance between the centres of a control before and after, over
    the diagonal of the window before; over all controls of all pages that both have.

    Args:
        suite: plays the episodes, in a browser.
        timeline: the drifted worlds.
    Returns: The mean in diagonals, None if no control stayed.
    """
    still = replace(timeline.instance, drift_step=0)
    before = generate(still)
    return displacement(
        places(suite, _one_world(still, before)),
        places(suite, _one_world(still, timeline.worlds[-1])),
        math.hypot(*before.plan.viewport),
    )


def displacement(before: Places, after: Places, diagonal: float) -> float | None:
    """Return the mean distance of the controls that two sites have.

    Args:
        before: positions in one site.
        after: positions in the other one.
        diagonal: the unit of the distance, in CSS pixels.
    Returns: The mean in diagonals, None if they share no control.
    """
    distances = [
        math.dist(centre, after[page][ref])
        for page, centres in before.items()
        if page in after
        for ref, centre in centres.items()
        if ref in after[page]
    ]
    if not distances:
        return None
    return fixed(math.fsum(distances) / len(distances) / diagonal)


def places(suite: Suite, timeline: Timeline) -> Places:
    """Return the positions of controls on the oracle's way through a site.

    Args:
        suite: plays the episode, in a browser.
        timeline: the worlds of the episode.
    Returns: Positions by page and by what a control means.
    """
    terms = EpisodeTerms(step_limit=suite.card.step_limit)
    episode = Episode(suite, timeline, sink=NullSink(), terms=terms)
    found: dict[str, dict[str, Centre]] = {}
    try:
        while episode.ending is None:
            state = episode.session.state
            if state.site.page not in found:
                found[state.site.page] = _centres(state, timeline.instance)
            hint = suite.oracle.hint(timeline, state)
            episode.step(call_text(hint["tool"], hint["arguments"]))
    finally:
        episode.close()
    return found


def _centres(state: observation.SurfState, instance: Instance) -> dict[str, Centre]:
    """Return where the controls of the open page stand, by what they mean."""
    window = state.page.window
    refs = {ident: ref for ref, ident in _idents(build(state.site, instance))}
    return {
        refs[control.ident]: Centre(
            window.x + control.x + control.width / 2, window.y + control.y + control.height / 2
        )
        for control in state.controls
        if control.ident in refs
    }


def _idents(page: PageModel) -> Iterator[tuple[str, str]]:
    """Yield reference and id of every control of a page."""
    for button in page.buttons:
        yield button.ref, button.ident
    for form in page.forms:
        for field in form.fields:
            yield field.ref, field.ident
            yield from ((part.ref, part.ident) for part in field.parts)
            yield from ((choice.ref, choice.ident) for choice in field.choices)

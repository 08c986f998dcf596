"""Realised magnitude: how far a drifted site is from the one before, as it is rendered.

Nominal magnitude says how much was drawn; these say what came of it, from the oracle's
own walk through both. Alone the id churn leaves every one of them at 0. Where controls
stand on the page takes a browser: `displacement.py`.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

import msgspec

from owa_bench.envs.changesurf import accessible
from owa_bench.envs.changesurf.accessible import Node
from owa_bench.envs.changesurf.generate import generate
from owa_bench.envs.changesurf.walk import Sight, Walk, walk
from owa_bench.errors import DriftError
from owa_bench.records.events import fixed
from owa_bench.records.instance import Instance, Timeline
from owa_bench.worlds.site import SiteWorld

_DEEP = ("option",)  # choices of a list stand for data, not for the page
_KEPT = 64  # walks, of about 0.1 s each: arms and replays meet the same worlds


class Pruned(NamedTuple):
    """A tree of (role, name) with everything else left out."""

    label: tuple[str, str]
    children: tuple["Pruned", ...]


class Realised(NamedTuple):
    """What a drift came to on the rendered site.

    tree      mean normalised edit distance of (role, name) trees, pages paired by key
    labels    share of the walk's control names that are new or gone
    graph     share of the walk's page-to-page steps that are new or gone
    steps     deeds that the oracle's walk takes more (or, negative, fewer)
    """

    tree: float
    labels: float
    graph: float
    steps: int


def realised(before: Walk, after: Walk) -> Realised:
    """Return how far apart two walks to the same goal are.

    Formula: each share is |A xor B| / |A or B| over multisets of names and over sets of
    edges; tree distance is `tree_distance`, 1 for a page that only one walk has.
    """
    return Realised(
        tree=_trees(before.sights, after.sights),
        labels=label_change(_names(before.sights), _names(after.sights)),
        graph=_apart(_edges(before.sights), _edges(after.sights)),
        steps=len(after.deeds) - len(before.deeds),
    )


def measured(timeline: Timeline) -> Realised | None:
    """Return what a timeline's whole drift came to, None if the site was not walked.

    Both walks are those of drift step 0, so that no decoy is taken for drift.
    """
    still = msgspec.structs.replace(timeline.instance, drift_step=0)
    try:
        return realised(
            _walked(still, generate(still)), _walked(still, timeline.worlds[-1])
        )
    except DriftError:
        return None


@lru_cache(maxsize=_KEPT)
def _walked(still: Instance, world: SiteWorld) -> Walk:
    """Return the oracle's walk through one world of an instance."""
    return walk(
        Timeline(
            instance=still, starts=(0,), worlds=(world,), changes=((),), realised=0.0
        )
    )


def pruned(root: Node) -> Pruned:
    """Return the (role, name) tree of a document."""
    return Pruned(("document", ""), _below(root))


def tree_distance(a: Pruned, b: Pruned) -> float:
    """Return the top-down edit distance of two trees over the sum of their sizes.

    Inserting or deleting a subtree costs its size, renaming a node 1; children keep
    their order (Selkow's distance). 0 for equal trees, at most 1.
    """
    cost = _edit(a, b)
    return fixed(min(1.0, cost / (_size(a) + _size(b))))


def label_change(a: Sequence[str], b: Sequence[str]) -> float:
    """Return the share of names that only one of two collections has, with counts."""
    first, second = Counter(a), Counter(b)
    union = (first | second).total()
    return fixed(1.0 - (first & second).total() / union) if union else 0.0


def _below(node: Node) -> tuple[Pruned, ...]:
    made: list[Pruned] = []
    for child in node.children:
        if not isinstance(child, Node) or child.role in _DEEP:
            continue
        inner = _below(child)
        if child.role:
            made.append(Pruned((child.role, child.name), inner))
        else:
            made.extend(inner)
    return tuple(made)


@cache
def _size(tree: Pruned) -> int:
    return 1 + sum(_size(child) for child in tree.children)


def _edit(a: Pruned, b: Pruned) -> int:
    if a == b:
        return 0
    row = [0]
    for child in b.children:
        row.append(row[-1] + _size(child))
    for child in a.children:
        gone = _size(child)
        new = [row[0] + gone]
        for i, other in enumerate(b.children):
            new.append(
                min(
                    row[i + 1] + gone,
                    new[i] + _size(other),
                    row[i] + _edit(child, other),
                )
            )
        row = new
    return row[-1] + int(a.label != b.label)


def _first_sights(sights: Sequence[Sight]) -> dict[str, Node]:
    """Return each page as it was seen first, by what it is."""
    found: dict[str, Node] = {}
    for sight in sights:
        if sight.page not in found:
            found[sight.page] = accessible.read(sight.html)
    return found


def _trees(before: Sequence[Sight], after: Sequence[Sight]) -> float:
    first, second = _first_sights(before), _first_sights(after)
    distances = [
        tree_distance(pruned(first[page]), pruned(second[page]))
        if page in first and page in second
        else 1.0
        for page in sorted({*first, *second})
    ]
    return fixed(sum(distances) / len(distances)) if distances else 0.0


def _names(sights: Sequence[Sight]) -> list[str]:
    return [
        f"{page}|{node.role}|{node.name}"
        for page, root in _first_sights(sights).items()
        for node in accessible.controls(root)
    ]


def _edges(sights: Sequence[Sight]) -> set[tuple[str, str]]:
    pages = [sight.page for sight in sights]
    return set(pairwise(pages))


def _apart(a: set[tuple[str, str]], b: set[tuple[str, str]]) -> float:
    union = a | b
    return fixed(len(a ^ b) / len(union)) if union else 0.0

"""The continuous score of a campaign with its parts, and its table."""

from typing import NamedTuple

import numpy as np

from owa_bench.records.score import CellTable
from owa_bench.scoring.bootstrap import figure
from owa_bench.scoring.improvement.curvature import Curvature
from owa_bench.scoring.improvement.escape import normalised_rate
from owa_bench.scoring.improvement.levers import Milestones
from owa_bench.scoring.improvement.links import on_link
from owa_bench.scoring.improvement.score import acceleration, continuous, position, rate
from owa_bench.scoring.improvement.window import Window, said


class Parts(NamedTuple):
    """Parts of the continuous score; None where they cannot be told."""

    position: float | None = None
    rate: float | None = None
    acceleration: float | None = None
    k: float | None = None
    score: float | None = None
    shifted: float | None = None
    base: float | None = None


def parts(window: Window, bend: Curvature) -> Parts:
    """Return the continuous score's parts on the protocol's link.

    `base` is the score of position and rate alone; acceleration enters `score` as it
    is, `shifted` into [0, 1] where that range is demanded.
    """
    rules, link = window.protocol.telemetry, window.protocol.improvement
    g = on_link(window.daily.dynamic, link.link, link.link_clip)
    top = on_link(np.array([link.saturated]), link.link, link.link_clip)[0]
    place = None
    if not np.isnan(g).any() and top > g[0]:
        place = position(float(g[-1]), float(g[0]), float(top))
    if bend.slope is None or bend.curvature is None:
        return Parts(position=place)
    speed = rate(bend.slope, rules.rate_reference, rules.rate_sharpness)
    gain = acceleration(bend.curvature, rules.bend_reference, rules.bend_sharpness)
    k = normalised_rate(bend.slope, rules.rate_normaliser)
    if place is None:
        return Parts(None, speed, gain, k)
    return Parts(
        place,
        speed,
        gain,
        k,
        continuous(place, speed, gain, rules.weights, shifted=False),
        continuous(place, speed, gain, rules.weights),
        continuous(place, speed, None, rules.weights),
    )


def telemetry_table(
    found: Parts, pace: float | None, stone: Milestones, unit: float
) -> CellTable:
    """Return the continuous score and its parts; it changes no gate."""
    rows: list[tuple[str, str | float | None]] = [
        ("position", figure(found.position)),
        ("rate", figure(found.rate)),
        ("acceleration", figure(found.acceleration)),
        ("k", figure(found.k)),
        ("base score, position and rate", figure(found.base)),
        ("continuous score", figure(found.score)),
        ("continuous score, shifted into [0, 1]", figure(found.shifted)),
        ("innovation index", figure(pace)),
    ]
    rows += [(f"M{i}", said(mark)) for i, mark in enumerate(stone, start=1)]
    rows += [("kappa unit, USD", figure(unit / 1e6))]
    return CellTable(
        title="Continuous score",
        columns=("part", "value"),
        rows=tuple(rows),
        note="telemetry between levels: it changes no gate",
    )

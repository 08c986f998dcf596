"""Lines drawn straight from episodes: calibration, success under each class of drift.

Their bands are Wilson's over episodes as if these were independent; no gate reads them.
"""

from collections.abc import Iterable
from itertools import pairwise
from math import sqrt

import msgspec
import numpy as np

from owa_bench.records.instance import ANNOUNCEMENTS
from owa_bench.records.observables import NO_DAY, Flags, Observables
from owa_bench.records.score import CellTable, Curve
from owa_bench.scoring.bootstrap import figure
from owa_bench.scoring.tables import grouped

_TENTHS = tuple(i / 10 for i in range(11))
_NORMAL = 1.959964  # the 97.5 percent point of the normal law
_NOTE = "band: Wilson, over episodes"


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 percent interval of a rate.

    Formula:
        (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)
    Shapes: two counts. Units: a rate.
    Missing: no trial is [0, 1].
    Source: E. B. Wilson, J. Am. Stat. Assoc. 22 (1927).

    >>> [round(end, 3) for end in wilson(5, 10)]
    [0.237, 0.763]
    """
    if not trials:
        return 0.0, 1.0
    rate, spread = successes / trials, _NORMAL**2 / trials
    middle = rate + spread / 2
    half = sqrt(rate * (1 - rate) * spread + spread**2 / 4)
    return (middle - half) / (1 + spread), (middle + half) / (1 + spread)


def calibration(table: Observables) -> tuple[Curve, ...]:
    """Return how often episodes succeed at each stated p; nothing if none was stated.

    A point lies at the mean p of its tenth; on the diagonal forecasts come out.
    """
    masks = []
    for low, high in pairwise(_TENTHS):
        held = (table.stated >= low) & ((table.stated < high) | (high == 1.0))
        if held.any():
            masks.append((float(table.stated[held].mean()), held))
    words = ("calibration of own-success forecasts", "stated p")
    note = f"{_NOTE}; a perfect forecaster lies on the diagonal"
    lines = _line(table, words, masks, note)
    return tuple(msgspec.structs.replace(line, diagonal=True) for line in lines)


def by_class(table: Observables) -> tuple[Curve, ...]:
    """Return success over magnitude of the episodes that each class is hardest in.

    Episodes without drift stand in every line, at magnitude 0.
    """
    hardest = np.full(len(table), -1)
    for i in range(len(ANNOUNCEMENTS)):
        hardest[table.classes[:, i]] = i
    lines: tuple[Curve, ...] = ()
    for i, name in enumerate(ANNOUNCEMENTS):
        if not (hardest == i).any():
            continue
        own = (hardest == i) | (hardest == -1)
        deltas = np.unique(table.delta[own & ~np.isnan(table.delta)])
        masks = [(float(delta), own & (table.delta == delta)) for delta in deltas]
        words = (f"success where {name} is the hardest drift", "drift magnitude")
        lines += _line(table, words, masks, _NOTE)
    return lines


def by_day(table: Observables) -> CellTable | None:
    """Return the checkpoints of a campaign day by day, None for any other run."""
    held = (table.day != NO_DAY) & (table.phase == "checkpoint")
    if not held.any():
        return None
    days = np.unique(table.day[held]).tolist()
    groups = [(day, held & (table.day == day)) for day in days]
    note = "the same tasks under the same drift every day, with the memory of that day"
    return grouped("checkpoints by day", "day", table, groups, note)


def _line(
    table: Observables,
    words: tuple[str, str],
    masks: Iterable[tuple[float, Flags]],
    note: str,
) -> tuple[Curve, ...]:
    """Return the curve of success over `masks`, nothing when there are none."""
    points = [(x, table.u[mask]) for x, mask in masks]
    if not points:
        return ()
    bands = [wilson(int(won.sum()), len(won)) for _, won in points]
    return (
        Curve(
            name=words[0],
            x_label=words[1],
            y_label="share of episodes that succeed",
            x=tuple(figure(x) or 0.0 for x, _ in points),
            y=tuple(figure(float(won.mean())) for _, won in points),
            low=tuple(figure(low) for low, _ in bands),
            high=tuple(figure(high) for _, high in bands),
            used=tuple(len(won) for _, won in points),
            note=note,
        ),
    )

"""What answers to spending: each axis, each margin over experts, the frontier."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats
from owa_bench.scoring.improvement.escape import Measured
from owa_bench.scoring.improvement.slope import theil_sen
from owa_bench.scoring.superhuman import FamilyQuality, margin


class Response(NamedTuple):
    """How a series answers to resources; no slope comes with its reason.

    `last` is its value at the last checkpoint, `target` where it has to arrive.
    """

    name: str
    last: float
    target: float | None
    slope: Measured
    reason: str | None = None

    @property
    def below(self) -> bool:
        """Whether it still stands below its target."""
        return self.target is not None and self.last < self.target


def response(
    name: str,
    spent: Floats,
    values: Floats,
    target: float | None,
    *,
    least: int,
    level: float,
) -> Response:
    """Return the slope of a checkpoint series on agent-initiated resources.

    Formula:
        e = d value / dR, Theil-Sen over checkpoints that follow new spending
    Shapes: two arrays (checkpoints,). Units: as `values`, per kappa unit.
    Missing: no slope below `least` such checkpoints, nor where a value is unknown.
    Errors: ScoringError if the shapes differ.
    Source: [S] sections 3.11 and 3.12 (iii) of the AAI paper; the estimator [R].

    >>> found = response("P", np.arange(7.0), 0.1 * np.arange(7.0), 0.9, least=7,
    ...     level=0.95)
    >>> round(found.slope.value, 6), found.below
    (0.1, True)
    """
    if spent.shape != values.shape or spent.ndim != 1:
        raise ScoringError(
            f"A response needs equal series, got {spent.shape} and {values.shape}."
        )
    last = float(values[-1]) if len(values) else math.nan
    if not np.isfinite(values).all() or not np.isfinite(spent).all():
        why = "not measured at each checkpoint"
        return Response(name, last, target, Measured(), why)
    fresh = np.concatenate((spent[:1] >= 0, np.diff(spent) > 0))
    if int(fresh.sum()) < least:
        why = f"too few checkpoints with new spending: {int(fresh.sum())} of {least}"
        return Response(name, last, target, Measured(), why)
    found = theil_sen(spent[fresh], values[fresh], level)
    return Response(name, last, target, Measured(*found))


def weakest(found: Sequence[Response]) -> Measured:
    """Return the least response of those that still stand below their target.

    Formula:
        min over those below of the slope, with the least of the lower bounds and the
        least of the upper ones: above 0 only where every single one is
    Shapes: any number of responses. Units: per kappa unit.
    Missing: unknown where one below its target is not measured and no measured one
        fails, or where nothing stands below its target: nothing is assumed there.
    Errors: none. Source: [S] section 3.12 (iii) and (vi) of the AAI paper, rule [R].
    """
    below = [r.slope for r in found if r.below or math.isnan(r.last)]
    known = [s for s in below if s.value is not None]
    failing = any(s.value is not None and s.value <= 0 for s in known)
    if not known or (len(known) < len(below) and not failing):
        return Measured()
    return Measured(
        min(s.value for s in known if s.value is not None),
        min(s.low if s.low is not None else -math.inf for s in known),
        min(s.high if s.high is not None else math.inf for s in known),
    )


def margins(
    days: Sequence[Mapping[str, FamilyQuality]],
    experts: Mapping[str, tuple[float, float]],
) -> dict[str, Floats]:
    """Return each expert family's standardised margin day by day, NaN if not played.

    Errors: ScoringError for a family quality outside [0, 1].
    Source: [S] eq 19 of the AAI paper.

    >>> margins([{"f": FamilyQuality(0.9, 0.03)}], {"f": (0.8, 0.04), "g": (0.5, 0.1)})
    {'f': array([2.]), 'g': array([nan])}
    """
    return {
        name: np.array(
            [margin(*day[name], *norm) if name in day else math.nan for day in days]
        )
        for name, norm in experts.items()
    }

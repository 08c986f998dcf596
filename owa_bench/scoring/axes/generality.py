"""Axis G: generality, the share of families whose threshold is reached."""

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Floats
from owa_bench.scoring.axis import Axis, Diagnostics, FloatsByName
from owa_bench.scoring.observe.sample import Sample
from owa_bench.scoring.statistics.statistics_table import Totals


def generality(quality: Floats, threshold: Floats, decimals: int = 6) -> Floats:
    """Return the share of families whose mean quality reaches their threshold.

    Formula:
        G = (families k with mean quality_k >= theta_k) / K
    Shapes: quality (resamples, families), threshold (families,); result (resamples,).
    Units: quality Q in [0, 1]; result a share.
    Missing: NaN where a family holds no episode: it is neither covered nor not.
    Errors: ScoringError if the shapes do not fit or there is no family.
    Source: [S] eq 3 of the AAI paper; theta_k [D] in the protocol.

    >>> generality(np.array([[0.7, 0.5, 0.6, 0.1]]), np.full(4, 0.6))
    array([0.5])
    """
    if quality.ndim != 2 or threshold.shape != quality.shape[1:] or not threshold.size:
        raise ScoringError(
            "generality needs (resamples, families) and (families,), got "
            f"{quality.shape} and {threshold.shape}."
        )
    share: Floats = _covered(quality, threshold, decimals).mean(axis=1)
    return np.where(np.isnan(quality).any(axis=1), np.nan, share)


def _covered(quality: Floats, threshold: Floats, decimals: int) -> Flags:
    """Return which families reach their threshold, compared in fixed decimals."""
    covered: Flags = np.round(quality, decimals) >= np.round(threshold, decimals)
    return covered


def _empty_families(sample: Sample) -> str | None:
    played = set(sample.table.family[sample.base].tolist())
    empty = [name for name in _families(sample) if name not in played]
    if not played:
        return "no counted episode of a suite without a body"
    return f"no counted episode of {', '.join(empty)}" if empty else None


def _families(sample: Sample) -> tuple[str, ...]:
    """Return the families that are judged: a body's are E's alone."""
    return tuple(name for name in sample.families if name not in sample.body_families)


def _quality(totals: Totals, sample: Sample) -> Floats:
    """Return the mean quality of each judged family, (resamples, families)."""
    kept = [name not in sample.body_families for name in sample.families]
    found: Floats = totals.mean("G:quality")[:, kept]
    return found


def _thresholds(sample: Sample) -> Floats:
    of = sample.protocol.generality.of
    return np.array([of(family) for family in _families(sample)])


def _raw(totals: Totals, sample: Sample) -> Floats:
    decimals = sample.protocol.statistics.gate_decimals
    return generality(_quality(totals, sample), _thresholds(sample), decimals)


def _secondary(totals: Totals, sample: Sample) -> FloatsByName:
    """Return each family's mean quality, and whether it is covered."""
    quality, families = _quality(totals, sample), _families(sample)
    decimals = sample.protocol.statistics.gate_decimals
    covered = _covered(quality, _thresholds(sample), decimals).astype(np.float64)
    means = {f"quality of {f}": quality[:, i] for i, f in enumerate(families)}
    return means | {f"covered {f}": covered[:, i] for i, f in enumerate(families)}


def _diagnostics(sample: Sample) -> Diagnostics:
    limits = _thresholds(sample).tolist()
    return {"thresholds": dict(zip(_families(sample), limits, strict=True))}


AXIS = Axis(
    "G",
    "generality",
    formula=generality,
    columns={"quality": lambda sample: sample.table.q},
    missing=_empty_families,
    raw=_raw,
    secondary=_secondary,
    diagnostics=_diagnostics,
)

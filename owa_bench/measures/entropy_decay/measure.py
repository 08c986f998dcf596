"""Entropy decay curve of a language model, streamed over a corpus.

Source: the Contextual-uncertainty paper, equation 1, sections 2.2-4.4;
`docs/companions.md#entropy-decay`.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy import special

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Floats, Integers
from owa_bench.scoring.statistics import arrays
from owa_bench.scoring.statistics.distributions import t_quantile

LENGTHS = (3, 9, 30, 90, 300, 600)  # context lengths [S section 3.3]
SHORT = (3, 9)  # [R: these reproduce table 4]
LONG = (300, 600)
COLLAPSE = 0.02  # U_600 below it is likely memorised text [D]
_GROUPS = 20  # contiguous blocks of windows for the jackknife [D]


class NextTokenModel(Protocol):
    """A model of the next token after contexts of tokens."""

    def next_token_logits(self, contexts: Integers) -> Floats:
        """Return logits (windows, vocabulary) of what follows contexts (windows, k)."""
        ...


class CurvePoint(NamedTuple):
    """The curve at one context length.

    length: k. conditional: H_k, bits. marginal: H*_k, bits. uncertainty: U_k, a share. corrected:
    U_k less its jackknife bias. span: interval of U_k. windows: N; curves compare at equal N only.
    """

    length: int
    conditional: float
    marginal: float
    uncertainty: float
    corrected: float
    span: arrays.IntervalEstimate
    windows: int


class GroupSums(NamedTuple):
    """Per group: windows, sum of entropies (nats), sum of distributions (groups, V)."""

    windows: Floats
    entropy: Floats
    mass: Floats


class EntropyDecayResult(NamedTuple):
    """A model's curve with its summary on one corpus.

    gain: information gain span, NaN with a reason where a length is missing. collapsed: whether U
    at the longest of `LONG` lies below the threshold; None if not measured.
    """

    points: tuple[CurvePoint, ...]
    gain: float
    gain_span: arrays.IntervalEstimate
    collapsed: bool | None
    reason: str | None = None


def uncertainty_index(conditional: npt.ArrayLike, marginal: npt.ArrayLike) -> Floats:
    """Return the length-conditional uncertainty index.

    Formula: U_k = H_k / H*_k
    Shapes: (lengths,) each; (lengths,).
    Units: bits in; a share in [0, 1] out.
    Missing: NaN where H*_k is 0: the model says one token whatever it reads.
    Errors: ScoringError for lengths that differ, NaN, or H_k outside [0, H*_k].
    Source: Contextual-uncertainty paper, equation 1 [S].

    >>> uncertainty_index([11.2112, 0.0], [13.5514, 0.0]).round(4).tolist()
    [0.8273, nan]
    """
    inner = arrays.vector(conditional, "conditional")
    outer = arrays.vector(marginal, "marginal")
    arrays.check_lengths(inner, outer, "`conditional` and `marginal`")
    arrays.check_range(inner, "conditional", 0.0, math.inf)
    if np.any(inner > outer + 1e-9):
        place = int(np.argmax(inner > outer + 1e-9))
        raise ScoringError(
            "`conditional` cannot exceed `marginal` (entropy is concave), got "
            f"{inner[place]} above {outer[place]} at {place}."
        )
    shares = np.full(inner.size, np.nan)
    defined = outer > 0.0
    shares[defined] = inner[defined] / outer[defined]
    return shares


def information_gain(
    lengths: npt.ArrayLike,
    index: npt.ArrayLike,
    *,
    short: Sequence[int] = SHORT,
    long: Sequence[int] = LONG,
) -> float:
    """Return the information gain span (IGS) of a curve.

    Formula: IGS = mean(U over short) (1 - mean(U over long))
    Shapes: (lengths,) each; a scalar in [0, 1].
    Units: none.
    Missing: NaN if U is NaN at a length it needs.
    Errors: ScoringError if a length it needs is not in `lengths`, or U leaves [0, 1].
    Source: Contextual-uncertainty paper, section 4.4 [R: gives table 4's nine cells].

    >>> u = [0.8669, 0.5058, 0.1662, 0.0220, 0.0141, 0.0150]
    >>> round(information_gain(LENGTHS, u), 4)
    0.6764
    """
    ks = arrays.vector(lengths, "lengths")
    shares = np.asarray(index, dtype=np.float64)
    arrays.check_lengths(ks, shares, "`lengths` and `index`")
    arrays.check_range(shares, "index", 0.0, 1.0)
    lacking = sorted({*short, *long} - set(ks.astype(np.int64).tolist()))
    if lacking:
        raise ScoringError(f"`lengths` must hold {lacking} for the IGS, got {ks.tolist()}.")
    near, far = (float(np.mean([shares[ks == k][0] for k in chosen])) for chosen in (short, long))
    return near * (1.0 - far)


def measure(
    model: NextTokenModel,
    tokens: npt.ArrayLike,
    *,
    windows: int,
    lengths: Sequence[int] = LENGTHS,
    groups: int = _GROUPS,
    batch: int = 32,
    threshold: float = COLLAPSE,
    level: float = 0.95,
) -> EntropyDecayResult:
    """Return the entropy decay curve of a model on a corpus.

    Formula:
        window i of length k = tokens[i : i + k], i = 0 .. N - 1
        H_k = mean of H(p_i); H*_k = H(mean of p_i); U_k = H_k / H*_k
        intervals: delete-one-group jackknife over contiguous groups of windows, t with
        groups - 1 degrees of freedom; corrected U = G U - (G - 1) mean(U without g)
    Shapes: tokens (T,), T >= N + longest; only `groups` sums of (vocabulary,) are kept.
    Units: bits; U without unit.
    Missing: U is NaN where H* is 0; the IGS is NaN with a reason if a length lacks.
    Errors: ScoringError for too few tokens, windows or groups, or logits of a wrong
        shape or with NaN.
    Source: Contextual-uncertainty paper, sections 2.2 and 3.3 [S]; jackknife [D].

    >>> class Even:
    ...     def next_token_logits(self, contexts):
    ...         return np.zeros((len(contexts), 8))
    >>> curve = measure(Even(), np.arange(30), windows=20, lengths=(3, 9))
    >>> round(curve.points[0].conditional, 9), round(curve.points[0].uncertainty, 9)
    (3.0, 1.0)
    """
    corpus = _corpus(tokens, windows, lengths, groups)
    replicates, points = [], []
    for k in lengths:
        sums = _group_sums(model, corpus, k, windows, groups, batch)
        point = _point(sums)._replace(length=k, windows=windows)
        u = point.uncertainty
        left = np.array([_point(sums, leave=g).uncertainty for g in range(groups)])
        corrected = groups * u - (groups - 1) * float(left.mean())
        span = _jackknife(u, left, level)
        replicates.append(left)
        points.append(point._replace(corrected=corrected, span=span))
    return _summary(tuple(points), np.array(replicates), threshold, level)


def from_entropies(
    lengths: npt.ArrayLike,
    conditional: npt.ArrayLike,
    marginal: npt.ArrayLike,
    *,
    threshold: float = COLLAPSE,
) -> EntropyDecayResult:
    """Return the curve of entropies that were measured elsewhere.

    Formula: `uncertainty_index` and `information_gain`
    Shapes: (lengths,) each.
    Units: tokens and bits.
    Missing: intervals are NaN with a reason: no windows are known.
    Errors: as `uncertainty_index`; ScoringError for lengths below 1 or named twice.
    Source: Contextual-uncertainty paper, tables 1-4 [S].

    >>> from_entropies([3, 9], [11.2112, 5.4613], [13.5514, 10.5765]).reason
    'the IGS needs context lengths [300, 600] too'
    """
    ks = arrays.vector(lengths, "lengths")
    shares = uncertainty_index(conditional, marginal)
    arrays.check_lengths(ks, shares, "`lengths` and `conditional`")
    arrays.check_range(ks, "lengths", 1.0, math.inf)
    if np.unique(ks).size != ks.size:
        raise ScoringError(f"`lengths` must name each context length once, got {ks.tolist()}.")
    nowhere = arrays.no_interval("entropies only: no windows to resample")
    columns = (np.asarray(part, dtype=np.float64) for part in (conditional, marginal))
    points = tuple(
        CurvePoint(int(k), float(h), float(outer), float(u), float(u), nowhere, 0)
        for k, h, outer, u in zip(ks, *columns, shares, strict=True)
    )
    curve = _summary(points, np.zeros((len(points), 0)), threshold, 0.95)
    return curve if curve.reason else curve._replace(gain_span=nowhere)


def _corpus(tokens: npt.ArrayLike, windows: int, lengths: Sequence[int], groups: int) -> Integers:
    """Return the tokens, or say how many lack."""
    corpus = np.asarray(tokens)
    if corpus.ndim != 1 or not np.issubdtype(corpus.dtype, np.integer):
        raise ScoringError(
            f"`tokens` must be one row of integers, got {corpus.dtype} {corpus.shape}."
        )
    if not lengths or min(lengths) < 1 or not 2 <= groups <= windows:
        got = (tuple(lengths), groups, windows)
        raise ScoringError(
            "`lengths` must be at least 1 and 2 <= `groups` <= `windows`, got "
            f"(lengths, groups, windows) = {got}."
        )
    needed = windows + max(lengths)
    if corpus.size < needed:
        raise ScoringError(
            f"`tokens` needs {needed} for {windows} windows of up to {max(lengths)}, "
            f"got {corpus.size}: use fewer windows or shorter lengths."
        )
    return corpus.astype(np.int64)


def _group_sums(
    model: NextTokenModel, corpus: Integers, k: int, windows: int, groups: int, batch: int
) -> GroupSums:
    """Return the sums of every group over its windows."""
    entropies, counts = np.zeros((2, groups))
    masses: Floats | None = None
    view = np.lib.stride_tricks.sliding_window_view(corpus, k)
    for group, first, last in _batches(windows, groups, batch):
        logs = _log_softmax(model, np.ascontiguousarray(view[first:last]))
        shares = np.exp(logs)
        if masses is None:
            masses = np.zeros((groups, logs.shape[1]))
        if logs.shape[1] != masses.shape[1]:
            sizes = (logs.shape[1], masses.shape[1])
            raise ScoringError(f"`next_token_logits` must keep one vocabulary, got sizes {sizes}.")
        counts[group] += last - first
        entropies[group] += float(special.entr(shares).sum())
        masses[group] += shares.sum(axis=0)
    if masses is None:
        raise ScoringError(f"`windows` must be at least 1, got {windows}.")
    return GroupSums(counts, entropies, masses)


def _batches(windows: int, groups: int, batch: int) -> Iterator[tuple[int, int, int]]:
    """Yield (group, first window, end), groups contiguous, a batch at a time."""
    edges = np.linspace(0, windows, groups + 1).round().astype(int).tolist()
    for group in range(groups):
        for first in range(edges[group], edges[group + 1], batch):
            yield group, first, min(first + batch, edges[group + 1])


def _log_softmax(model: NextTokenModel, contexts: Integers) -> Floats:
    """Return log probabilities in double precision, or say what is wrong with them."""
    logits = np.asarray(model.next_token_logits(contexts), dtype=np.float64)
    if logits.ndim != 2 or logits.shape[0] != contexts.shape[0] or not logits.shape[1]:
        raise ScoringError(
            f"`next_token_logits` must return ({contexts.shape[0]}, vocabulary), got "
            f"shape {logits.shape}."
        )
    if np.isnan(logits).any() or np.isinf(logits.max(axis=1)).any():
        raise ScoringError("`next_token_logits` must be numbers, -inf allowed, one finite a row.")
    return np.asarray(special.log_softmax(logits, axis=1), dtype=np.float64)


def _point(sums: GroupSums, *, leave: int | None = None) -> CurvePoint:
    """Return H, H* and U of sums over groups of windows, without one if named."""
    rest = np.arange(sums.windows.size) != leave
    count = float(sums.windows[rest].sum())
    inner = float(sums.entropy[rest].sum()) / count / math.log(2.0)
    mean = sums.mass[rest].sum(axis=0) / count
    outer = float(special.entr(mean).sum()) / math.log(2.0)
    share = min(inner / outer, 1.0) if outer > 0.0 else math.nan
    return CurvePoint(0, inner, outer, share, share, arrays.no_interval(), 0)


def _jackknife(value: float, left: Floats, level: float) -> arrays.IntervalEstimate:
    """Return the t interval around a value from its delete-one-group replicates."""
    if left.size < 2 or not np.isfinite([*left, value]).all():
        return arrays.no_interval("H* is 0: the model says one token only")
    groups = left.size
    error = math.sqrt((groups - 1) / groups * float(((left - left.mean()) ** 2).sum()))
    reach = t_quantile((1.0 + level) / 2.0, groups - 1) * error
    return arrays.IntervalEstimate(max(value - reach, 0.0), min(value + reach, 1.0))


def _summary(
    points: tuple[CurvePoint, ...], replicates: Floats, threshold: float, level: float
) -> EntropyDecayResult:
    """Return the curve with its IGS and collapse flag."""
    lengths = [point.length for point in points]
    shares = np.array([point.uncertainty for point in points])
    longest = next((p.uncertainty for p in points if p.length == max(LONG)), math.nan)
    collapsed = longest < threshold if math.isfinite(longest) else None
    lacking = sorted({*SHORT, *LONG} - set(lengths))
    gain = math.nan if lacking else information_gain(lengths, shares)
    if not math.isfinite(gain):
        reason = "U is undefined at a length it needs"
        if lacking:
            reason = f"the IGS needs context lengths {lacking} too"
        span = arrays.no_interval(reason)
        return EntropyDecayResult(points, math.nan, span, collapsed, reason)
    left = np.array([information_gain(lengths, column) for column in replicates.T])
    span = _jackknife(gain, left, level)
    return EntropyDecayResult(points, gain, span, collapsed)

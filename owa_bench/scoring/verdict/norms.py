"""Human norms: figures over persons, thresholds and anchors that follow from them.

Anchors of the human view: a is a baseline agent's raw statistic, b the persons' median.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import scipy

from owa_bench.canonical import key_id
from owa_bench.errors import ScoringError
from owa_bench.records.people import HumanNorms, NormFigure, unattended, watchers_of
from owa_bench.records.plan import Plan
from owa_bench.records.price_card import PriceCard
from owa_bench.records.protocol import Protocol
from owa_bench.records.registry import Registry
from owa_bench.records.score import CellTable
from owa_bench.records.trace import Trace
from owa_bench.scoring.axis import all_axes
from owa_bench.scoring.estimate.estimates import ArmEstimates, estimate
from owa_bench.scoring.estimate.gate_statistics import DELAYED
from owa_bench.scoring.estimate.statistic_key import StatisticKey
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.observe.sample import sample_of
from owa_bench.scoring.statistics.bootstrap import figure, rounded
from owa_bench.scoring.statistics.distributions import t_quantile

_COLUMNS = (
    *("persons", "mean", "sd", "low", "high"),
    *("median", "median low", "median high", "coverage"),
)
SPAN, DELAYED_RECALL, CORE = "span", "delayed_recall", "core"


def median_interval(values: Sequence[float], level: float) -> tuple[float, float, float]:
    """Return the shortest symmetric pair of order statistics that holds the median.

    Formula:
        [x_(k), x_(n + 1 - k)], the greatest k with P(k <= B <= n - k) >= level,
        B ~ Binomial(n, 1/2); k = 1 where none has it
    Shapes: values (n,); result (low, high, coverage). Units: those of the values.
    Missing: none. Errors: ScoringError without a value.
    Source: David and Nagaraja, Order Statistics, 2003, section 7.1.

    >>> median_interval([3.0, 1.0, 2.0, 5.0, 4.0], 0.95)
    (1.0, 5.0, 0.9375)
    """
    if not values:
        raise ScoringError("A median needs at least one value, got none.")
    ordered, n = sorted(values), len(values)
    k, coverage = 1, 1.0 - 2.0 * float(scipy.special.bdtr(0, n, 0.5))
    while 2 * (k + 1) <= n + 1:
        narrower = 1.0 - 2.0 * float(scipy.special.bdtr(k, n, 0.5))
        if narrower < level:
            break
        k, coverage = k + 1, narrower
    return ordered[k - 1], ordered[n - k], max(coverage, 0.0)


def norm_figure(values: Sequence[float], level: float) -> NormFigure:
    """Return the figure of a quantity over persons.

    Args:
        values: (persons,) one number a person.
        level: Of the intervals, a share.
    Returns: The figure; one person has no spread.
    """
    n, mean = len(values), rounded(float(np.mean(values)))
    sd = rounded(float(np.std(values, ddof=1))) if n > 1 else None
    half = None
    if sd is not None:
        half = t_quantile((1 + level) / 2, n - 1) * sd / n**0.5
    low, high, coverage = median_interval(values, level)
    return NormFigure(
        persons=n,
        mean=mean,
        sd=sd,
        low=None if half is None else rounded(mean - half),
        high=None if half is None else rounded(mean + half),
        median=rounded(float(np.median(values))),
        median_low=rounded(low),
        median_high=rounded(high),
        coverage=coverage,
    )


class ArmFigures(NamedTuple):
    """One arm's mean quality by family, raw axes with bounds, and thresholds."""

    families: Mapping[str, float]
    axes: Mapping[str, tuple[float, float | None, float | None]]
    thresholds: Mapping[str, float]


def arm_figures(
    plan: Plan, traces: Iterable[Trace], protocol: Protocol, prices: PriceCard
) -> ArmFigures:
    """Return the figures of a run's only arm that norms rest on.

    Args:
        plan: The run's plan.
        traces: Counted attempts.
        protocol: Published numbers.
        prices: Price card.
    Returns: The figures; what has no evidence is left out.
    """
    sample = sample_of(plan, observe(traces, prices), protocol, prices)
    estimates = estimate(sample, all_axes())
    point, level = estimates.point, protocol.statistics.level
    table, families = sample.table, {}
    for family in sample.families:
        rows = sample.base & (table.family == family)
        if rows.any():
            families[family] = float(table.q[rows].mean())
    axes = {}
    for symbol in protocol.index.weights:
        key = StatisticKey(symbol, "raw")
        raw = point.get(key, np.nan)
        if np.isfinite(raw):
            share = bool(0.0 <= raw <= 1.0)
            interval = estimates.over_tasks(key, share=share).interval(level)
            axes[str(symbol)] = (float(raw), interval.low, interval.high)
    found_thresholds = {
        SPAN: estimates.cognition.span,
        DELAYED_RECALL: point.get(DELAYED),
        CORE: point.get(StatisticKey("core")),
    }
    thresholds = {
        name: float(value)
        for name, value in found_thresholds.items()
        if value is not None and np.isfinite(value)
    }
    return ArmFigures(families, axes, thresholds)


def with_norms(protocol: Protocol, norms: HumanNorms | None) -> Protocol:
    """Return a protocol whose thresholds are the persons' medians.

    A figure of fewer than `norms.persons_min` persons replaces nothing. Experts also give what
    AAI-5 and the norms gate compare with; programs are no experts.

    Args:
        protocol: Published numbers.
        norms: Norms whose terms are those of the run; None changes nothing.
    Returns: The protocol that gates read.
    """
    fewest = protocol.norms.persons_min
    if norms is None or fewest is None:
        return protocol
    enough = {n: f for n, f in norms.thresholds.items() if f.persons >= fewest}
    section = msgspec.structs.replace(
        protocol.norms,
        **{name: norm.median for name, norm in enough.items()},
        measured=tuple(sorted(enough)),
        synthetic=norms.synthetic,
    )
    if norms.group == "experts" and not norms.synthetic:
        spread = {
            name: norm
            for name, norm in norms.families.items()
            if norm.persons >= fewest and norm.sd
        }
        section = msgspec.structs.replace(
            section,
            measured=(*section.measured, "experts"),
            experts={
                name: (norm.mean, (norm.sd or 0.0) / norm.persons**0.5)
                for name, norm in spread.items()
            },
            expert_counts={name: norm.persons for name, norm in spread.items()},
        )
    return msgspec.structs.replace(protocol, norms=section)


def norm_tables(norms: HumanNorms, registry: Registry | None = None) -> tuple[CellTable, ...]:
    """Return the norms for reading: who played, who watched, and every figure.

    Args:
        norms: The norms.
        registry: Whose watchers count; None: nobody's.
    Returns: The table of figures, and that of persons.
    """
    mark = "synthetic norms: programs played" if norms.synthetic else f"{norms.group}"
    if unattended(norms, registry):
        mark += (
            "; unattended: they enter no gate until a watcher of the registry has "
            "signed for each person (`owa-bench attend`)"
        )
    signer = key_id(bytes.fromhex(norms.public_key)) if norms.public_key else "nobody"
    rows = [
        (name, *(figure(v) if isinstance(v, float) else v for v in _row(norm)))
        for kind in (norms.families, norms.axes, norms.thresholds)
        for name, norm in kind.items()
    ]
    persons = [
        (
            *(run.person, "program" if run.scripted else "person", run.episodes),
            *(figure(run.step_s), run.evidence_root[:16], run.key_id),
            ", ".join(watchers_of(run, registry)) or "nobody",
        )
        for run in norms.runs
    ]
    columns = (
        *("person", "played by", "episodes", "s a step", "evidence root", "key"),
        "watched by",
    )
    return (
        CellTable(
            "norms",
            ("figure", *_COLUMNS),
            tuple(rows),
            f"{mark}; signed by {signer}. Raw axes by symbol, quality by family",
        ),
        CellTable("persons of the norms", columns, tuple(persons), mark),
    )


def _row(norm: NormFigure) -> tuple[float | int | None, ...]:
    return (
        *(norm.persons, norm.mean, norm.sd, norm.low, norm.high, norm.median),
        *(norm.median_low, norm.median_high, norm.coverage),
    )


# --- the human view -------------------------------------------------------------------


class HumanAnchors(NamedTuple):
    """a and b of one axis, each with the ends of its interval."""

    a: tuple[float, float, float]
    b: tuple[float, float, float]


def human_anchors(norms: HumanNorms, protocol: Protocol) -> dict[str, HumanAnchors]:
    """Return the anchors of every axis that the persons have.

    Args:
        norms: The norms.
        protocol: Published numbers; its lower anchor is a where no baseline played.
    Returns: By symbol; only where b lies above a.
    """
    anchors = {}
    for symbol, norm in norms.axes.items():
        low = float(next(v.low for s, v in protocol.anchors.items() if s == symbol))
        value, *ends = norms.baseline.get(symbol, (low, low, low))
        below, above = (value if end is None else end for end in ends)
        if norm.median > value:
            b = (norm.median, norm.median_low, norm.median_high)
            anchors[symbol] = HumanAnchors((value, below, above), b)
    return anchors


def human_position(raw: float, a: float, b: float) -> float:
    """Return where a raw statistic lies between a baseline agent and an adult.

    Formula:
        clip((x - a) / (b - a), 0, 1); where b <= a: 1 for x >= b, else 0
    Shapes: scalars. Units: those of the axis; the result a share.
    Missing: none. Errors: none.
    Source: [S] eq 32 of the AAI paper.

    >>> human_position(0.5, 0.25, 0.75)
    0.5
    """
    if b <= a:
        return float(raw >= b)
    return min(max((raw - a) / (b - a), 0.0), 1.0)


def human_table(
    norms: HumanNorms | None, estimates: ArmEstimates, protocol: Protocol
) -> CellTable | None:
    """Return an agent's axes between a baseline and the persons' median.

    Each row moves one anchor to the ends of its interval; the composite is the weighted geometric
    mean over the rows' axes.

    Args:
        norms: The norms, if there are any.
        estimates: The agent's statistics.
        protocol: Published numbers.
    Returns: A row per axis and one for the composite; None without a common axis.
    """
    if norms is None:
        return None
    anchors = human_anchors(norms, protocol)
    weights = {str(s): w for s, w in protocol.index.weights.items() if w > 0}
    raws = {
        symbol: estimates.point.get(StatisticKey(symbol, "raw"), math.nan)
        for symbol in anchors
        if symbol in weights
    }
    raws = {symbol: raw for symbol, raw in raws.items() if math.isfinite(raw)}
    if not raws:
        return None

    def composite(symbol: str = "", a: float = 0.0, b: float = 0.0) -> float:
        ends = {s: (anchors[s].a[0], anchors[s].b[0]) for s in raws} | (
            {symbol: (a, b)} if symbol else {}
        )
        places = [human_position(raws[s], *ends[s]) for s in raws]
        shares = np.array([weights[s] for s in raws])
        if min(places) <= 0:
            return 0.0
        return float(np.exp(np.dot(shares, np.log(places)) / shares.sum()))

    rows: list[tuple[str | float | None, ...]] = []
    for symbol, raw in raws.items():
        a, b = anchors[symbol]
        moved = [(a[1], b[0]), (a[2], b[0]), (a[0], b[1]), (a[0], b[2])]
        values = [raw, a[0], b[0], human_position(raw, a[0], b[0])]
        values += [composite(symbol, *ends) for ends in moved]
        rows.append((symbol, *map(figure, values)))
    rows.append(("composite", None, None, None, figure(composite()), *[None] * 4))
    columns = ("axis", "raw", "a", "b", "value", "a low", "a high", "b low", "b high")
    mark = "; synthetic norms: programs played" if norms.synthetic else ""
    return CellTable(
        "Human anchors",
        columns,
        tuple(rows),
        "a: baseline agent, b: median person. The last four columns are the composite "
        f"with that anchor at the end of its interval{mark}",
    )

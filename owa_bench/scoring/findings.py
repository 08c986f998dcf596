"""What the gates read of one arm, gathered from everything measured."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from owa_bench.records.observables import Floats, Observables
from owa_bench.records.plan import Plan
from owa_bench.records.price_card import PriceCard
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import AxisScore, ClosureResult
from owa_bench.scoring.axis import Axis, Sample
from owa_bench.scoring.closures.expansion import expansion
from owa_bench.scoring.closures.maintenance import maintenance
from owa_bench.scoring.gate import Findings, Reading
from owa_bench.scoring.improvement.days import Days
from owa_bench.scoring.improvement.kappa import kappas, series
from owa_bench.scoring.improvement.report import Dynamics, dynamics
from owa_bench.scoring.index import needed
from owa_bench.scoring.measure import Measured
from owa_bench.scoring.projects import DELIVERED
from owa_bench.scoring.selection import sample_of
from owa_bench.scoring.spread import figure
from owa_bench.scoring.verdict import axis_scores, index_scores


class Terms(NamedTuple):
    """What holds for every arm of a run."""

    plan: Plan
    protocol: Protocol
    prices: PriceCard
    axes: list[Axis]
    root: str
    assurance: int | None
    faults: tuple[str, ...]


def gather(
    terms: Terms,
    sample: Sample,
    found: Measured | None,
    table: Observables,
    whole: Observables,
) -> tuple[Findings, Dynamics]:
    """Return what the gates read, and the dynamics printed beside."""
    protocol, spec, rules = terms.protocol, terms.plan.bootstrap, terms.protocol
    axes = {score.symbol: score for score in axis_scores(terms.axes, sample, found)}
    lacking = _lacking(axes, protocol)
    counted = table.take(~table.honeypot)
    days = Days(
        counted,
        terms.axes,
        lambda held: sample_of(terms.plan, held, protocol, terms.prices),
        spec,
        terms.root,
    )
    closures = _closures(terms, counted, whole, lacking, days)
    level, gate_level = rules.statistics.level, rules.statistics.gate_level
    points = series(counted, sample.families, gate_level)
    dynamic: Floats = np.full(len(points.days), np.nan)
    if points.days and not lacking:
        dynamic = days.points(points.days).dynamic
    slopes = kappas(
        points, dynamic, rules.improvement, lacking, level=level, root=terms.root
    )
    moving = dynamics(
        points,
        dynamic,
        counted,
        closures,
        protocol,
        resamples=spec.resamples,
        root=terms.root,
    )
    lower = {symbol: score.lower for symbol, score in axes.items()}
    if found is not None:
        lower["core"] = found.like_these("core").lower(gate_level)
    findings = Findings(
        axes=axes,
        lower=lower,
        indices={score.name: score for score in index_scores(axes, sample, found)},
        kappas=slopes,
        closures=closures,
        assurance=terms.assurance,
        evidence=_evidence(sample),
        protocol=protocol,
        **_readings(found, protocol),
    )
    return findings, moving


def _closures(
    terms: Terms,
    table: Observables,
    whole: Observables,
    lacking: tuple[str, ...],
    days: Days,
) -> Mapping[str, ClosureResult]:
    """Return both closures by name."""
    rules, statistics = terms.protocol.closures, terms.protocol.statistics
    found = (
        maintenance(table, lacking, rules, statistics.gate_level, days.day),
        expansion(
            table,
            whole,
            rules,
            level=statistics.level,
            gate_level=statistics.gate_level,
            resamples=terms.plan.bootstrap.resamples,
            root=terms.root,
        ),
    )
    return {closure.name: closure for closure in found}


def _readings(found: Measured | None, protocol: Protocol) -> dict[str, Any]:
    """Return what the cognitive and project gates read."""
    if found is None:
        return {}
    level = protocol.statistics.gate_level

    def reading(name: str) -> Reading:
        spread = found.like_these(name)
        upper = spread.upper(level)
        return Reading(figure(spread.point), spread.lower(level), upper)

    cognition = {name.partition("/")[2]: reading(name) for name in found.cognition.laid}
    span = found.cognition.span
    if span is not None:
        cognition["span"] = Reading(span, span, span)
    delivered = reading(DELIVERED) if found.projects.played else Reading()
    return {
        "cognition": cognition,
        "projects": found.projects,
        "delivered": delivered,
    }


def _lacking(axes: dict[str, AxisScore], protocol: Protocol) -> tuple[str, ...]:
    """Return the axes for whose sake AAI_dyn is not computable."""
    symbols = needed(protocol.index)["AAI_dyn"]
    return tuple(s for s in symbols if axes[s].value is None)


def _evidence(sample: Sample) -> tuple[str, ...]:
    """Return the attempts the axes rest on, as a range."""
    names = sample.table.attempt[sample.base].tolist()
    return (f"{names[0]} to {names[-1]}, {len(names)} attempts",) if names else ()

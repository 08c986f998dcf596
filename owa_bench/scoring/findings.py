"""What the gates read of one arm, gathered from everything measured."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from owa_bench.records.observables import Observables
from owa_bench.records.plan import Arm, Plan
from owa_bench.records.price_card import PriceCard
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import AxisScore, ClosureResult
from owa_bench.scoring.axis import Axis
from owa_bench.scoring.bootstrap import figure
from owa_bench.scoring.composites import needed
from owa_bench.scoring.estimates import ArmEstimates
from owa_bench.scoring.expansion import Rules, expansion
from owa_bench.scoring.gate import Findings, GateReading
from owa_bench.scoring.gate_statistics import DELIVERED
from owa_bench.scoring.improvement.checkpoints import (
    CampaignWindow,
    CheckpointSeries,
    DayEstimator,
    Dynamics,
    FrozenControl,
    checkpoint_series,
)
from owa_bench.scoring.improvement.dynamics import dynamics
from owa_bench.scoring.improvement.kappa import kappas
from owa_bench.scoring.maintenance import maintenance
from owa_bench.scoring.sample import Sample, sample_of
from owa_bench.scoring.scores import axis_scores, index_scores


class Terms(NamedTuple):
    """What holds for every arm of a run."""

    plan: Plan
    protocol: Protocol
    prices: PriceCard
    axes: tuple[Axis, ...]
    root: str
    assurance: int | None
    faults: tuple[str, ...]


class Played(NamedTuple):
    """One arm's counted episodes beside those of every arm."""

    arm: Arm
    table: Observables
    whole: Observables

    @property
    def counted(self) -> Observables:
        """The arm's episodes without honeypots."""
        return self.table.take(~self.table.honeypot)


def gather(
    terms: Terms, sample: Sample, found: ArmEstimates | None, played: Played
) -> tuple[Findings, Dynamics]:
    """Return what the gates read, and the dynamics printed beside."""
    protocol, gate_level = terms.protocol, terms.protocol.statistics.gate_level
    axes = {score.symbol: score for score in axis_scores(terms.axes, sample, found)}
    window = _window(terms, sample, axes, played)
    lower = {symbol: score.lower for symbol, score in axes.items()}
    if found is not None:
        lower["core"] = found.over_tasks("core").lower(gate_level)
    findings = Findings(
        axes=axes,
        lower=lower,
        indices={score.name: score for score in index_scores(axes, sample, found)},
        kappas=window.kappas,
        closures=window.closures,
        assurance=terms.assurance,
        evidence=_evidence(sample),
        protocol=protocol,
        **_readings(found, protocol),
    )
    return findings, dynamics(window)


def _window(
    terms: Terms, sample: Sample, axes: Mapping[str, AxisScore], played: Played
) -> CampaignWindow:
    """Return the arm's checkpoints with closures and kappas."""
    protocol, statistics = terms.protocol, terms.protocol.statistics
    lacking, counted = _lacking(axes, protocol), played.counted
    days, control = _days(terms, counted), _control(terms, played)
    points = checkpoint_series(counted, sample.families, statistics.gate_level)
    daily = days.points(points.days)
    return CampaignWindow(
        points=points,
        daily=daily,
        frozen=_frozen(terms, sample, control, points),
        table=counted,
        closures=_closures(terms, played, control, lacking, days),
        kappas=kappas(
            points,
            daily.dynamic,
            protocol.improvement,
            lacking,
            level=statistics.level,
            root=terms.root,
        ),
        flow=axes["R"].value,
        protocol=protocol,
        resamples=terms.plan.bootstrap.resamples,
        root=terms.root,
    )


def _days(terms: Terms, table: Observables) -> DayEstimator:
    return DayEstimator(
        table,
        terms.axes,
        lambda held: sample_of(terms.plan, held, terms.protocol, terms.prices),
        terms.plan.bootstrap,
        terms.root,
    )


def _frozen(
    terms: Terms, sample: Sample, control: Observables | None, points: CheckpointSeries
) -> FrozenControl | None:
    """Return the checkpoints of the arm's frozen control, None without one."""
    if control is None or not points.days:
        return None
    level = terms.protocol.statistics.gate_level
    held = checkpoint_series(control, sample.families, level)
    return FrozenControl(held, _days(terms, control).points(held.days))


def _control(terms: Terms, played: Played) -> Observables | None:
    """Return the episodes of the arm's frozen control, None without one."""
    control = frozen_arm(terms.plan, played.arm)
    if control is None:
        return None
    table = played.whole.take(played.whole.arm == control.name)
    return table.take(~table.honeypot)


def frozen_arm(plan: Plan, arm: Arm) -> Arm | None:
    """Return the control of a learner: the same agent with its memory thrown away."""
    if arm.frozen:
        return None
    same = (
        other
        for other in plan.arms
        if other.frozen and other.fingerprint == arm.fingerprint
    )
    return next((other for other in same if other.agent == arm.agent), None)


def _closures(
    terms: Terms,
    played: Played,
    control: Observables | None,
    lacking: tuple[str, ...],
    days: DayEstimator,
) -> Mapping[str, ClosureResult]:
    """Return both closures by name."""
    closures, statistics = terms.protocol.closures, terms.protocol.statistics
    rules = Rules(
        closures=closures,
        level=statistics.level,
        gate_level=statistics.gate_level,
        resamples=terms.plan.bootstrap.resamples,
        root=terms.root,
    )
    table = played.counted
    found = (
        maintenance(table, lacking, closures, statistics.gate_level, days.resampled),
        expansion(table, played.whole, control, rules),
    )
    return {closure.name: closure for closure in found}


def _readings(found: ArmEstimates | None, protocol: Protocol) -> dict[str, Any]:
    """Return what the cognitive and project gates read."""
    if found is None:
        return {}
    level = protocol.statistics.gate_level

    def reading(name: str) -> GateReading:
        spread = found.over_tasks(name)
        upper = spread.upper(level)
        return GateReading(figure(spread.point), spread.lower(level), upper)

    cognition = {
        name.partition("/")[2]: reading(name) for name in found.cognition.names
    }
    span = found.cognition.span
    if span is not None:
        cognition["span"] = GateReading(span, span, span)
    delivered = reading(DELIVERED) if found.projects.number else GateReading()
    return {"cognition": cognition, "projects": found.projects, "delivered": delivered}


def _lacking(axes: Mapping[str, AxisScore], protocol: Protocol) -> tuple[str, ...]:
    """Return the axes for whose sake AAI_dyn is not computable."""
    symbols = needed(protocol.index)["AAI_dyn"]
    return tuple(s for s in symbols if axes[s].value is None)


def _evidence(sample: Sample) -> tuple[str, ...]:
    """Return the attempts the axes rest on, as a range."""
    names = sample.table.attempt[sample.base].tolist()
    return (f"{names[0]} to {names[-1]}, {len(names)} attempts",) if names else ()

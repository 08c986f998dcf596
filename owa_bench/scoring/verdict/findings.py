"""Findings: everything that the gates of one arm read, and the report's warnings."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from owa_bench.discovery import find
from owa_bench.records.observables import NO_DAY, Observables
from owa_bench.records.people import HumanNorms
from owa_bench.records.plan import Arm, Plan
from owa_bench.records.price_card import PriceCard
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import AxisScore, ClosureResult
from owa_bench.scoring.axes.embodiment import device_rows
from owa_bench.scoring.axis import Axis
from owa_bench.scoring.closures.expansion import expansion
from owa_bench.scoring.closures.maintenance import maintenance
from owa_bench.scoring.estimate.composites import needed
from owa_bench.scoring.estimate.drift_response import DriftExposure
from owa_bench.scoring.estimate.estimates import ArmEstimates
from owa_bench.scoring.estimate.gate_statistics import DELIVERED
from owa_bench.scoring.estimate.statistic_key import StatisticKey
from owa_bench.scoring.gate import Findings, GateReading
from owa_bench.scoring.improvement import checkpoints
from owa_bench.scoring.improvement.dynamics import dynamics
from owa_bench.scoring.improvement.kappa import kappas
from owa_bench.scoring.observe.sample import (
    NOT_APART,
    OF_APART,
    SURROGATE,
    Sample,
    daily_families,
    daily_plan,
    sample_of,
)
from owa_bench.scoring.statistics.bootstrap import figure
from owa_bench.scoring.verdict.scores import (
    axis_scores,
    index_scores,
    with_body_bounds,
    with_revision_bounds,
)

_MICRO = 1e6  # micro-USD a USD
ONE_NUMBER = "toolquest"  # its tasks do not tell A and P from the mean quality


class JudgingContext(NamedTuple):
    """The inputs of a judgement that all arms of a run share.

    `faults` say why the battery is not admissible, `exposures` the drift of each episode and `lost`
    the agent's cost in micro-USD of attempts that do not count, both by index of the plan entry;
    `norms` are figures of persons; `own_terms` is what of the terms is the submitter's own.
    """

    plan: Plan
    protocol: Protocol
    prices: PriceCard
    axes: tuple[Axis, ...]
    root: str
    assurance: int | None
    faults: tuple[str, ...]
    exposures: Mapping[int, DriftExposure]
    lost: Mapping[int, float] = {}
    norms: HumanNorms | None = None
    own_terms: str = ""


class ArmEpisodes(NamedTuple):
    """One arm's counted episodes, and those of every arm."""

    arm: Arm
    table: Observables
    every_arm: Observables

    @property
    def without_honeypots(self) -> Observables:
        """The arm's episodes without honeypots."""
        return self.table.take(~self.table.honeypot)


def gather_findings(
    context: JudgingContext, sample: Sample, estimates: ArmEstimates | None, episodes: ArmEpisodes
) -> tuple[Findings, checkpoints.Dynamics]:
    """Return everything that the gates of one arm read.

    Args:
        context: Inputs that all arms share.
        sample: Counted episodes that the axes rest on.
        estimates: Estimates, None without a counted episode.
        episodes: The arm's episodes, and those of every arm.
    Returns: The findings, and the dynamics that are printed beside them.
    """
    protocol = context.protocol
    scores = axis_scores(context.axes, sample, estimates)
    axes = {score.symbol: score for score in scores}
    axes["R"] = with_revision_bounds(axes["R"], sample)
    axes["E"] = with_body_bounds(axes["E"], sample, estimates)
    window = _window(context, sample, axes, episodes)
    findings = Findings(
        axes=axes,
        indices={score.name: score for score in index_scores(axes, sample, estimates)},
        kappas=window.kappas,
        closures=window.closures,
        assurance=context.assurance,
        evidence=_evidence(sample),
        protocol=protocol,
        shared_root=sample.shared_root,
        **_readings(estimates, protocol),
    )
    return findings, dynamics(window)


def _window(
    context: JudgingContext, sample: Sample, axes: Mapping[str, AxisScore], episodes: ArmEpisodes
) -> checkpoints.CampaignWindow:
    """Return the arm's checkpoints with closures and kappas."""
    protocol = context.protocol
    lacking, counted = _lacking(axes, protocol), episodes.without_honeypots
    days, control = (_days(context, counted, sample.shared_root), _control(context, episodes))
    lost = _lost_by_day(context, episodes.arm)
    families = daily_families(context.plan)
    points = checkpoints.checkpoint_series(counted, families, protocol, context.prices, lost)
    daily = days.points(points.days)
    frozen = _frozen(context, families, control, points)
    still = None if frozen is None else frozen.points
    return checkpoints.CampaignWindow(
        points=points,
        daily=daily,
        frozen=frozen,
        table=counted,
        closures=_closures(context, sample, episodes, days),
        kappas=kappas(points, daily.dynamic, protocol, lacking, context.root, still),
        flow=axes["R"].value,
        protocol=protocol,
        practised=sample.practised,
    )


def _days(
    context: JudgingContext, table: Observables, shared_root: str = ""
) -> checkpoints.DayEstimator:
    plan = daily_plan(context.plan)
    return checkpoints.DayEstimator(
        table,
        context.axes,
        lambda rows: sample_of(plan, rows, context.protocol, context.prices, shared_root),
    )


def _frozen(
    context: JudgingContext,
    families: tuple[str, ...],
    control: Observables | None,
    points: checkpoints.CheckpointSeries,
) -> checkpoints.FrozenControl | None:
    """Return the checkpoints of the arm's frozen control, None without one."""
    if control is None or not points.days:
        return None
    series = checkpoints.checkpoint_series(control, families, context.protocol, context.prices)
    daily = _days(context, control).points(series.days)
    return checkpoints.FrozenControl(series, daily)


def _control(context: JudgingContext, episodes: ArmEpisodes) -> Observables | None:
    """Return the episodes of a learner's frozen control, None without one.

    The control is the same agent, its memory discarded.
    """
    arm, table = episodes.arm, episodes.every_arm
    for other in context.plan.arms:
        same = (other.agent, other.fingerprint) == (arm.agent, arm.fingerprint)
        if same and other.frozen and not arm.frozen:
            return table.take((table.arm == other.name) & ~table.honeypot)
    return None


def _lost_by_day(context: JudgingContext, arm: Arm) -> Mapping[int, float]:
    """Return what an arm's lost attempts in its lane cost, by day."""
    days: dict[int, float] = {}
    for index, cost in context.lost.items():
        entry = context.plan.entries[index]
        if entry.arm == arm.name and entry.keeps_memory and entry.day is not None:
            days[entry.day] = days.get(entry.day, 0.0) + cost
    return days


def _closures(
    context: JudgingContext, sample: Sample, episodes: ArmEpisodes, days: checkpoints.DayEstimator
) -> Mapping[str, ClosureResult]:
    """Return both closures by name."""
    protocol, table = context.protocol, episodes.without_honeypots
    names = [arm.name for arm in context.plan.arms if arm.baseline]
    every_arm = episodes.every_arm
    blind = every_arm.take(np.isin(every_arm.arm, names)) if names else None
    closures = (
        maintenance(table, blind, sample.table.take(sample.base), protocol, days.lane_ratios()),
        expansion(sample.practised.sets if sample.practised else (), table, protocol),
    )
    return {closure.name: closure for closure in closures}


def _readings(estimates: ArmEstimates | None, protocol: Protocol) -> dict[str, Any]:
    """Return the statistics of the core, cognitive and project gates."""
    if estimates is None:
        return {}
    rules = protocol.statistics

    def reading(key: StatisticKey) -> GateReading:
        one = estimates.over_tasks(key)
        lower, highest = one.lower(rules.gate_level), one.upper(rules.below_level)
        return GateReading(figure(one.point), lower, highest)

    cognition = {key.name: reading(key) for key in estimates.cognition.keys}
    span = estimates.cognition.span
    if span is not None:
        cognition["span"] = GateReading(span, span, math.inf)
    projects = estimates.projects
    return {
        "core": reading(StatisticKey("core")),
        "cognition": cognition,
        "projects": projects,
        "delivered": reading(DELIVERED) if projects.number else GateReading(),
    }


def _lacking(axes: Mapping[str, AxisScore], protocol: Protocol) -> tuple[str, ...]:
    """Return the axes for lack of which AAI_dyn is not computable."""
    symbols = needed(protocol.index)["AAI_dyn"]
    return tuple(s for s in symbols if axes[s].value is None)


def _evidence(sample: Sample) -> tuple[str, ...]:
    """Return the attempts the axes rest on, as a range."""
    names = sample.table.attempt[sample.base].tolist()
    return (f"{names[0]} to {names[-1]}, {len(names)} attempts",) if names else ()


def report_warnings(
    plan: Plan, sample: Sample, estimates: ArmEstimates | None, table: Observables
) -> tuple[str, ...]:
    """Return the warnings of one agent's verdict.

    Args:
        plan: The run's plan.
        sample: Counted episodes that the axes rest on.
        estimates: Estimates, None without a counted episode.
        table: All counted episodes of the agent.
    Returns: Sentences.
    """
    voided = int(sample.table.disqualified.sum())
    return (
        *_on_surrogate(sample),
        *_small_families(sample, estimates),
        *_one_number(sample, estimates),
        *_small_checkpoints(sample, table, daily_families(plan)),
        *_no_drift(table),
        *_human_help(table),
        *_empty_adoptions(sample, table),
        *((f"{voided} episodes were disqualified and score 0",) if voided else ()),
        *(
            f"axis {name} comes from package {item.package}"
            for name, item in find("axes").items()
            if item.package
        ),
        *(("days are simulated",) if plan.simulated_days and _has_days(table) else ()),
        *_waived(plan, sample),
        *_not_apart(sample),
    )


def _on_surrogate(sample: Sample) -> Iterator[str]:
    """Say that a surrogate stood in for a robot, and how much was played on it."""
    table, rows = sample.table, device_rows(sample)
    if not (table.side[rows] == "surrogate").any():
        return
    hours, units = table.exposure_s[rows].sum() / 3600.0, len(np.unique(table.unit[rows]))
    critical = int(table.incidents[rows, -1].sum())
    yield (
        f"{SURROGATE.capitalize()}, not hardware: a guarded process with hidden units stood in for "
        "a robot. E is evidence of transfer between models, not of safety near people; the guard's "
        "limits are numbers of a game, and nothing here is conformity with ISO 10218 or "
        "ISO/TS 15066. "
        f"{hours:.1f} exposure hours, {units} units, {critical} critical incidents"
    )


def _not_apart(sample: Sample) -> Iterator[str]:
    """Warn where bits could pass between sittings, seats and lanes."""
    if sample.shared_root:
        axes = ", ".join(OF_APART)
        yield f"{NOT_APART} ({sample.shared_root}): no evidence on {axes} and controls"


def _waived(plan: Plan, sample: Sample) -> Iterator[str]:
    """Warn of a battery that is too small to place an agent, and what it waives."""
    if plan.underpowered:
        rules = sample.protocol
        yield (
            f"under-powered battery: the least {rules.admissibility.family_min} "
            "instances a family and the power of "
            f"{rules.statistics.power:g} a gate are waived, so its level line is no "
            "placement"
        )


def _small_families(sample: Sample, estimates: ArmEstimates | None) -> Iterator[str]:
    """Warn of families with few tasks, with the resulting half-widths."""
    rules = sample.protocol.statistics
    if estimates is None or estimates.smallest >= rules.warn_family:
        return
    widths = ", ".join(
        f"{symbol} +/- {_half_width(estimates, symbol, rules.level)}"
        for symbol in estimates.coverage
        if StatisticKey(symbol) in estimates.point
    )
    tasks = "1 task" if estimates.smallest == 1 else f"{estimates.smallest} tasks"
    yield f"a family holds {tasks}, fewer than {rules.warn_family}: {widths}"


def _one_number(sample: Sample, estimates: ArmEstimates | None) -> Iterator[str]:
    """Warn where A and P rest on tasks that do not tell them from the mean quality."""
    suites = set(sample.table.suite[sample.base].tolist())
    points = estimates.point if estimates else {}
    if suites == {ONE_NUMBER} and {StatisticKey("A"), StatisticKey("P")} <= points.keys():
        yield (
            "A and P rest on ToolQuest alone, where who solves a task does so unaided and to its "
            "whole depth: A, P and mean quality are one finding there, not three"
        )


def _no_drift(table: Observables) -> Iterator[str]:
    """Warn where drift was asked for and no operator had anything to change."""
    asked = table.delta > 0
    if asked.any() and not table.realised[asked].any():
        yield (
            f"nothing drifted in any of {int(asked.sum())} episodes with a magnitude "
            "above 0: the calendar's operators had no target, or too little magnitude"
        )


def _half_width(estimates: ArmEstimates, symbol: str, level: float) -> str:
    band = estimates.over_tasks(StatisticKey(symbol)).interval(level)
    if band.low is None or band.high is None:
        return "unknown"
    return f"{(band.high - band.low) / 2:.2f}"


def _has_days(table: Observables) -> bool:
    """Return whether the run holds checkpoints of days."""
    return bool(((table.phase == "checkpoint") & (table.day != NO_DAY)).any())


def _human_help(table: Observables) -> Iterator[str]:
    """Warn of human help that an adopted revision could have learnt from.

    The human stream is no agent-initiated cost, so kappa does not count it, although a gain may
    rest on it.
    """
    events = table.revisions
    adopted = np.unique(events.row[events.decision == "adopted"])
    before = np.zeros(len(table), dtype=np.bool_)
    for row in adopted.tolist():
        same = np.arange(len(table)) == row
        earlier = (table.phase == "practice") & (table.day != NO_DAY)
        before |= same | (earlier & (table.day <= table.day[row]))
    helped = before & ((table.cost_human != 0) | (table.patched > 0))
    if not helped.any():
        return
    cost = float(table.cost_human[helped].sum()) / _MICRO
    size = "of unknown size" if math.isnan(cost) else f"of {cost:.4g} USD"
    yield (
        f"human costs {size} in {int(helped.sum())} episodes feed {len(adopted)} "
        f"episodes with adopted revisions, {int(table.patched[helped].sum())} patches: "
        "kappa leaves them out, kappa_total holds them"
    )


def _empty_adoptions(sample: Sample, table: Observables) -> Iterator[str]:
    """Warn of revisions that were declared as adopted and changed nothing."""
    declared = int((table.revisions.decision == "adopted").sum())
    sets = sample.practised.sets if sample.practised else ()
    if declared and sets and not any(one.lines for one in sets):
        yield (
            f"{declared} revisions were declared as adopted, and no line of the memory "
            "folder changed: none counts"
        )


def _small_checkpoints(sample: Sample, table: Observables, daily: tuple[str, ...]) -> Iterator[str]:
    """Warn of checkpoints that hold few instances of a family."""
    if not _has_days(table):
        return
    families, pairs = sample.table.family, sample.table.pair
    counts = [len(set(pairs[families == f].tolist())) for f in daily]
    fewest, least = min(counts, default=0), sample.protocol.improvement.family_min
    if fewest < least:
        yield (f"a family kappa rests on {fewest} instances a checkpoint, fewer than {least}")

"""Dose-response matrix of a validation: the effect of every knob on every axis."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import msgspec
import numpy as np

from owa_bench.records.observables import Floats, Observables
from owa_bench.records.plan import Plan
from owa_bench.records.price_card import PriceCard
from owa_bench.records.protocol import Protocol, Symbol
from owa_bench.records.validation import AXES, KnobDesign, ValidationDesign, knob_arms
from owa_bench.records.validation_result import (
    Bounded,
    CellVerdict,
    DoseReading,
    KnobResponse,
    MatrixCell,
)
from owa_bench.scoring.axes.self_revision import revision_evidence
from owa_bench.scoring.axis import Axis
from owa_bench.scoring.closures.expansion import holm
from owa_bench.scoring.estimate.estimates import ArmEstimates, estimate, point_estimates
from owa_bench.scoring.estimate.statistic_key import StatisticKey
from owa_bench.scoring.observe.attempt_sets import RevisionEvidence
from owa_bench.scoring.observe.inner_attempts import CampaignEvidence, campaign_sets
from owa_bench.scoring.observe.sample import Sample, sample_of
from owa_bench.scoring.statistics.bootstrap import figure
from owa_bench.scoring.validation import discriminance
from owa_bench.scoring.validation.discriminance import Reading
from owa_bench.scoring.validation.power import equivalence_tasks

_UNPLAYED = "this knob was not played"


class ValidationContext(NamedTuple):
    """The inputs that every comparison shares.

    R rests on the campaigns inside episodes, where there are any.
    """

    plan: Plan
    table: Observables
    protocol: Protocol
    prices: PriceCard
    axes: tuple[Axis, ...]
    design: ValidationDesign
    campaigns: tuple[CampaignEvidence, ...] = ()

    def names(self) -> set[str]:
        """Return the names of the arms that were played."""
        return {arm.name for arm in self.plan.arms}

    def sample(self, rows: Observables) -> Sample:
        """Return the sample of some of an arm's episodes."""
        sample = sample_of(self.plan, rows, self.protocol, self.prices)
        revisions = self._revisions(sample, self._campaigns(sample))
        return replace(sample, revision=revisions) if revisions.sets else sample

    def estimates(self, rows: Observables) -> ArmEstimates:
        """Return the estimates of some of an arm's episodes.

        Those of R without a task are made of the campaigns of the other tasks.
        """
        sample = self.sample(rows)
        estimates, key = estimate(sample, self.axes), StatisticKey("R")
        point = estimates.point
        if sample.revision is None or not math.isfinite(point.get(key, math.nan)):
            return estimates
        own = self._campaigns(sample)
        low, high = point[StatisticKey("R", "low")], point[StatisticKey("R", "high")]
        tasks = sorted(set(zip(sample.table.family, sample.table.pair, strict=True)))
        raw = [self._revisions(sample, [c for c in own if c.pair != pair]).raw for _, pair in tasks]
        left = estimates.tasks
        values = {**left.values, key: np.clip((np.array(raw) - low) / (high - low), 0, 1)}
        played = {campaign.pair for campaign in own}
        read = {**left.read, key: np.array([pair in played for _, pair in tasks])}
        return replace(estimates, tasks=left._replace(values=values, read=read))

    def _campaigns(self, sample: Sample) -> list[CampaignEvidence]:
        here = set(zip(sample.table.arm, sample.table.pair, strict=True))
        return [c for c in self.campaigns if (c.arm, c.pair) in here]

    def _revisions(self, sample: Sample, campaigns: Sequence[CampaignEvidence]) -> RevisionEvidence:
        sets = campaign_sets(campaigns, sample.families)
        return revision_evidence(sets, sample.weights, self.protocol)


def axis_value(estimates: ArmEstimates | None, axis: Symbol) -> float | None:
    """Return the value of an axis of an arm.

    Args:
        estimates: Of the arm; None without a counted episode.
        axis: Symbol of the axis.
    """
    return None if estimates is None else figure(estimates.point.get(StatisticKey(axis), math.nan))


def response_matrix(context: ValidationContext) -> tuple[KnobResponse, ...]:
    """Return every knob's effects on every axis, with verdicts."""
    return _with_verdicts(context, [_knob(context, k) for k in context.design.knobs])


# --- one knob -------------------------------------------------------------------------


class _Doses(NamedTuple):
    """The doses of a knob that were played, on the episodes that all of them have."""

    doses: tuple[str, ...]
    arms: tuple[str, ...]
    rows: tuple[Observables, ...]
    estimates: tuple[ArmEstimates, ...]

    def reading(self, place: int, axis: str) -> Reading | None:
        """Return an axis under one dose, None where it has no evidence."""
        return axis_reading(self.estimates[place], axis)


def axis_reading(estimates: ArmEstimates, axis: str) -> Reading | None:
    """Return an axis of an arm with its values without one task each.

    Args:
        estimates: Of the arm.
        axis: Symbol of the axis.
    Returns: The reading, None where the axis has no evidence.
    """
    key = StatisticKey(axis)
    values = estimates.tasks.values.get(key)
    if values is None or not math.isfinite(estimates.point.get(key, math.nan)):
        return None
    return Reading(estimates.point[key], values, estimates.tasks.clusters.stratum)


def shared_rows(context: ValidationContext, arms: Sequence[str]) -> tuple[Observables, ...]:
    """Return each arm's rows of the episodes that all of the arms have.

    Args:
        context: Inputs of the comparison.
        arms: Names of the arms.
    Returns: A table an arm, in order of the names.
    """
    tables = [context.table.take(context.table.arm == name) for name in arms]
    keys = [_keys(rows) for rows in tables]
    common = reduce(set.intersection, map(set, keys))
    return tuple(
        rows.take(np.array([key in common for key in own], dtype=np.bool_))
        for rows, own in zip(tables, keys, strict=True)
    )


def _keys(rows: Observables) -> list[tuple[str, int, float, int]]:
    return list(
        zip(
            rows.pair.tolist(),
            rows.repeat.tolist(),
            rows.delta.tolist(),
            rows.interventions.tolist(),
            strict=True,
        )
    )


def _doses(context: ValidationContext, knob: KnobDesign) -> _Doses | None:
    """Return the doses of a knob that were played, None without the ends."""
    names, arms = context.names(), knob_arms(knob)
    if not {arms[0].name, arms[-1].name} <= names:
        return None
    both = zip(knob.doses, arms, strict=True)
    played = [(dose, arm.name) for dose, arm in both if arm.name in names]
    rows = shared_rows(context, [name for _, name in played])
    if not all(len(table) for table in rows):
        return None
    return _Doses(
        tuple(dose for dose, _ in played),
        tuple(name for _, name in played),
        rows,
        tuple(map(context.estimates, rows)),
    )


def _knob(context: ValidationContext, knob: KnobDesign) -> KnobResponse:
    """Return a row of the matrix, the Page tests before Holm."""
    doses = _doses(context, knob)
    if doses is None:
        cells = tuple(
            MatrixCell(axis=axis, sign=knob.signs[axis], verdict="NO EVIDENCE", reason=_UNPLAYED)
            for axis in AXES
        )
        return KnobResponse(
            name=knob.name,
            axis=knob.axis,
            agent=knob.agent,
            tasks=0,
            cells=cells,
            verdict="NO EVIDENCE",
            reason=_UNPLAYED,
        )
    families = _family_values(context, doses)
    cells = tuple(_cell(context, knob, axis, doses, families[axis]) for axis in AXES)
    response = KnobResponse(
        name=knob.name,
        axis=knob.axis,
        agent=knob.agent,
        tasks=len(set(doses.rows[0].pair.tolist())),
        cells=cells,
        verdict="NO EVIDENCE",
    )
    return _with_lead(context, response, doses)


def _family_values(context: ValidationContext, doses: _Doses) -> Mapping[str, Floats]:
    """Return each axis of each family alone (families, doses), NaN where missing.

    A family alone is read without the least number of propositions a class.
    """
    rules = context.protocol
    world = msgspec.structs.replace(rules.world_model, class_min=1)
    small = context._replace(protocol=msgspec.structs.replace(rules, world_model=world))
    families = sorted(set(doses.rows[0].family.tolist()))
    shape = (len(families), len(doses.rows))
    values: dict[str, Floats] = {axis: np.full(shape, np.nan) for axis in AXES}
    for j, rows in enumerate(doses.rows):
        for i, family in enumerate(families):
            own = rows.take(rows.family == family)
            points = point_estimates(small.sample(own), context.axes)
            for axis in AXES:
                values[axis][i, j] = points.get(StatisticKey(axis), math.nan)
    return values


def _cell(
    context: ValidationContext, knob: KnobDesign, axis: Symbol, doses: _Doses, families: Floats
) -> MatrixCell:
    sign, numbers = knob.signs[axis], context.design.numbers
    first, last = doses.reading(0, axis), doses.reading(-1, axis)
    if first is None or last is None:
        reasons = (estimates.coverage[axis].reason for estimates in doses.estimates)
        why = next(filter(None, reasons), "the statistic is not computable")
        return MatrixCell(axis=axis, sign=sign, verdict="NO EVIDENCE", reason=why)
    change = discriminance.combination([(1.0, last), (-1.0, first)])
    effect = bounded(change, numbers.level)
    curve = tuple(
        DoseReading(
            dose=dose,
            arm=arm,
            value=axis_value(estimates, axis),
            interval=estimates.over_tasks(StatisticKey(axis)).interval(numbers.level),
        )
        for dose, arm, estimates in zip(doses.doses, doses.arms, doses.estimates, strict=True)
    )
    if sign == "0":
        p = discriminance.equivalence(change, numbers.margin)
        width = discriminance.spread(change)
        needed = None
        if math.isfinite(width):
            power = context.protocol.statistics.power
            needed = equivalence_tasks(width, numbers.margin, numbers.alpha, power)
    else:
        p, needed = discriminance.falling_trend(families), None
    return MatrixCell(
        axis=axis,
        sign=sign,
        verdict="not shown",
        effect=effect,
        p=figure(p),
        tasks_needed=needed,
        doses=curve,
    )


def bounded(change: Reading, level: float) -> Bounded:
    """Return a change with its interval.

    Args:
        change: The change.
        level: Two-sided level.
    Returns: The number; without bounds where there is no interval.
    """
    span = discriminance.interval(change, level)
    return Bounded(value=figure(change.value), low=figure(span.low), high=figure(span.high))


def _with_lead(context: ValidationContext, response: KnobResponse, doses: _Doses) -> KnobResponse:
    """Return the row with the own axis' effect held against the second largest."""
    changes: dict[str, Reading] = {}
    for axis in AXES:
        first, last = doses.reading(0, axis), doses.reading(-1, axis)
        if first is not None and last is not None:
            changes[axis] = discriminance.combination([(1.0, last), (-1.0, first)])
    own = changes.pop(response.axis, None)
    if own is None or not changes:
        cell = next(c for c in response.cells if c.axis == response.axis)
        why = cell.reason or "no other axis has evidence"
        return msgspec.structs.replace(response, reason=why)
    second = max(changes, key=lambda axis: abs(changes[axis].value))
    lead = bounded(discriminance.excess(own, changes[second], 1.0), context.design.numbers.level)
    return msgspec.structs.replace(response, second=second, lead=lead, verdict=above_zero(lead))


def above_zero(number: Bounded) -> CellVerdict:
    """Return the verdict on a number that is to lie above 0."""
    if number.low is None or number.high is None:
        return "NO EVIDENCE"
    if number.high < 0:
        return "contrary"
    return "as declared" if number.low > 0 else "not shown"


def _with_verdicts(
    context: ValidationContext, rows: Iterable[KnobResponse]
) -> tuple[KnobResponse, ...]:
    """Return the rows with verdicts: Holm over every trend test, TOST cell by cell."""
    responses, numbers = tuple(rows), context.design.numbers
    trends = [
        cell for row in responses for cell in row.cells if cell.sign == "-" and cell.p is not None
    ]
    rejected = holm([cell.p or 0.0 for cell in trends], numbers.alpha)
    falling = {id(cell) for cell, shown in zip(trends, rejected, strict=True) if shown}
    return tuple(
        msgspec.structs.replace(
            row, cells=tuple(_judged(cell, id(cell) in falling, context) for cell in row.cells)
        )
        for row in responses
    )


def _judged(cell: MatrixCell, falling: bool, context: ValidationContext) -> MatrixCell:
    """Return a cell with its verdict."""
    numbers, effect = context.design.numbers, cell.effect
    if effect.value is None:
        return cell
    if cell.sign == "-":
        contrary = effect.low is not None and effect.low > 0
        shown = falling and effect.value < 0
        why = "" if cell.p is not None else "a trend needs three doses and two families"
    else:
        outside = [b for b in (effect.low, effect.high) if b is not None]
        contrary = bool(outside) and (
            min(outside) > numbers.margin or max(outside) < -numbers.margin
        )
        shown = cell.p is not None and cell.p <= numbers.alpha
        why = "" if cell.p is not None else "no error: a family holds one task"
    verdict: CellVerdict = "contrary" if contrary else "as declared" if shown else "not shown"
    return msgspec.structs.replace(cell, verdict=verdict, reason=why)

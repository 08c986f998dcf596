"""Validation: the matrix of knobs by axes, correlations of axes, crossed knobs.

A pure function of a plan, its counted episodes and the declared signs.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from owa_bench.records.observables import Observables
from owa_bench.records.plan import Plan
from owa_bench.records.price_card import PriceCard
from owa_bench.records.protocol import Protocol, Symbol
from owa_bench.records.validation import AXES, ValidationDesign, crossed_arms
from owa_bench.records.validation_result import (
    ArmValues,
    AxisCorrelation,
    Bounded,
    CrossedEffect,
    Validation,
)
from owa_bench.scoring.axis import AXIS_NAMES, all_axes
from owa_bench.scoring.estimate.estimates import ArmEstimates
from owa_bench.scoring.estimate.statistic_key import StatisticKey
from owa_bench.scoring.observe.inner_attempts import CampaignEvidence
from owa_bench.scoring.statistics.bootstrap import figure
from owa_bench.scoring.validation import discriminance
from owa_bench.scoring.validation.discriminance import Reading
from owa_bench.scoring.validation.validation_matrix import (
    ValidationContext,
    above_zero,
    axis_reading,
    axis_value,
    bounded,
    response_matrix,
    shared_rows,
)


def validate(
    plan: Plan,
    table: Observables,
    protocol: Protocol,
    prices: PriceCard,
    design: ValidationDesign,
    campaigns: Sequence[CampaignEvidence] = (),
) -> Validation:
    """Return the matrix, the correlations and the crossed effects of a validation.

    Args:
        plan: The run's plan, with the arms of `records.validation`.
        table: Counted episodes of every arm.
        protocol: Published numbers.
        prices: The run's price card.
        design: The declared signs.
        campaigns: What the campaigns inside episodes show, which R rests on.
    Returns: What was found; a knob whose arms were not played is NO EVIDENCE.
    """
    axes = tuple(axis for axis in all_axes() if axis.symbol in AXES)
    context = ValidationContext(plan, table, protocol, prices, axes, design, tuple(campaigns))
    whole = {
        arm.name: context.estimates(rows)
        for arm in plan.arms
        if len(rows := table.take(table.arm == arm.name))
    }
    numbers = design.numbers
    axis_pairs = [(a, b) for i, a in enumerate(AXES) for b in AXES[i + 1 :]]
    own = [name for name in design.agents.names if name in whole]
    return Validation(
        protocol_name=protocol.name,
        margin=numbers.margin,
        alpha=numbers.alpha,
        level=numbers.level,
        ratio=numbers.ratio,
        tasks=len(set(table.pair.tolist())),
        families=tuple(sorted(set(table.family.tolist()))),
        missing=_missing_axes(whole),
        knobs=response_matrix(context),
        correlations=tuple(_correlation(whole, list(whole), p, numbers.level) for p in axis_pairs),
        unhandicapped=tuple(_correlation(whole, own, p, numbers.level) for p in axis_pairs),
        variants=sum(arm.name in whole for row in crossed_arms(design.crossed) for arm in row),
        crossed=_crossed(context),
        arms=tuple(
            ArmValues(
                arm=arm.name,
                agent=arm.agent,
                episodes=int((table.arm == arm.name).sum()),
                values=tuple(axis_value(whole.get(arm.name), axis) for axis in AXES),
            )
            for arm in plan.arms
        ),
    )


def _missing_axes(arms: Mapping[str, ArmEstimates]) -> tuple[tuple[str, str], ...]:
    """Return the axes that no arm has, with the reason of the first arm."""
    missing = []
    for axis in AXES:
        if all(axis_value(estimates, axis) is None for estimates in arms.values()):
            reasons = (estimates.coverage[axis].reason for estimates in arms.values())
            missing.append((f"{axis}", next(filter(None, reasons), "not computable")))
    return tuple(missing)


# --- correlations and the crossed design ----------------------------------------------


def _correlation(
    arms: Mapping[str, ArmEstimates],
    names: Sequence[str],
    axes: tuple[Symbol, Symbol],
    level: float,
) -> AxisCorrelation:
    """Return the correlation of two axes over some of the arms."""
    one, other = (
        np.array([arms[name].point.get(StatisticKey(axis), math.nan) for name in names])
        for axis in axes
    )
    r = discriminance.correlation(one, other, level)
    known = ~(np.isnan(one) | np.isnan(other))
    return AxisCorrelation(
        axes=axes,
        agents=tuple(name for name, inside in zip(names, known, strict=True) if inside),
        r=Bounded(value=figure(r.value), low=figure(r.low), high=figure(r.high)),
    )


def _crossed(context: ValidationContext) -> tuple[CrossedEffect, ...]:
    """Return both knobs' effects on both axes; none where a pair was not played."""
    crossed = context.design.crossed
    grid = crossed_arms(crossed)
    names = [arm.name for row in grid for arm in row]
    if crossed is None or not set(names) <= context.names():
        return ()
    rows = shared_rows(context, names)
    if not all(len(table) for table in rows):
        return ()
    arms = [context.estimates(table) for table in rows]
    width = len(grid[0])
    knobs = (crossed.autonomy, crossed.depth)
    effects: dict[tuple[str, str], Reading] = {}
    for axis in (knob.axis for knob in knobs):
        cells = [axis_reading(estimates, axis) for estimates in arms]
        readings = [cell for cell in cells if cell is not None]
        if len(readings) < len(cells):
            return tuple(_without_effect(knob.knob, knob.axis, axis) for knob in knobs)
        lines = [readings[i : i + width] for i in range(0, len(readings), width)]
        turned = [list(column) for column in zip(*lines, strict=True)]
        effects[knobs[0].knob, axis] = discriminance.main_effect(lines)
        effects[knobs[1].knob, axis] = discriminance.main_effect(turned)
    return tuple(
        _crossed_effect(context, one.knob, (one.axis, other.axis), effects)
        for one, other in (knobs, knobs[::-1])
    )


def _without_effect(knob: str, axis: Symbol, lacking: str) -> CrossedEffect:
    return CrossedEffect(
        knob=knob,
        axis=axis,
        own=Bounded(),
        other=Bounded(),
        ratio=None,
        excess=Bounded(),
        verdict="NO EVIDENCE",
        reason=f"axis {lacking} ({AXIS_NAMES[lacking]}) has no evidence in every arm",
    )


def _crossed_effect(
    context: ValidationContext,
    knob: str,
    axes: tuple[Symbol, Symbol],
    effects: Mapping[tuple[str, str], Reading],
) -> CrossedEffect:
    numbers = context.design.numbers
    own, other = effects[knob, axes[0]], effects[knob, axes[1]]
    excess = bounded(discriminance.excess(own, other, numbers.ratio), numbers.level)
    ratio = abs(own.value) / abs(other.value) if other.value else math.inf
    return CrossedEffect(
        knob=knob,
        axis=axes[0],
        own=bounded(own, numbers.level),
        other=bounded(other, numbers.level),
        ratio=figure(ratio),
        excess=excess,
        verdict=above_zero(excess),
    )

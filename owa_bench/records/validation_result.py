"""Result of a validation: the dose-response matrix, correlations, crossed effects."""

from typing import Literal

import msgspec

from owa_bench.records.protocol import Symbol
from owa_bench.records.score import Interval
from owa_bench.records.validation import Sign

CellVerdict = Literal["as declared", "not shown", "contrary", "NO EVIDENCE"]


class Bounded(msgspec.Struct, frozen=True, kw_only=True):
    """A number with its two-sided interval; None where there is none."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


class DoseReading(msgspec.Struct, frozen=True, kw_only=True):
    """An axis under one dose, with the interval over tasks like these."""

    dose: str
    arm: str
    value: float | None
    interval: Interval


class MatrixCell(msgspec.Struct, frozen=True, kw_only=True):
    """A knob's effect on an axis: its change from the first to the last dose.

    `p` is Page's where the sign is "-", TOST's where it is "0"; `tasks_needed` how many tasks a
    declared zero needs for the protocol's power, at the spread that was seen.
    """

    axis: Symbol
    sign: Sign
    verdict: CellVerdict
    effect: Bounded = Bounded()
    p: float | None = None
    tasks_needed: int | None = None
    doses: tuple[DoseReading, ...] = ()
    reason: str = ""


class KnobResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the matrix, and whether the knob moves its own axis most.

    `lead` is by how much the own axis' effect exceeds that of `second` in size.
    """

    name: str
    axis: Symbol
    agent: str
    tasks: int
    cells: tuple[MatrixCell, ...]
    verdict: CellVerdict
    second: str = ""
    lead: Bounded = Bounded()
    reason: str = ""


class AxisCorrelation(msgspec.Struct, frozen=True, kw_only=True):
    """Pearson's r of two axes over agents, with Fisher's interval."""

    axes: tuple[Symbol, Symbol]
    agents: tuple[str, ...]
    r: Bounded


class CrossedEffect(msgspec.Struct, frozen=True, kw_only=True):
    """A crossed knob's effects on the two axes, and own less ratio times other."""

    knob: str
    axis: Symbol
    own: Bounded
    other: Bounded
    ratio: float | None
    excess: Bounded
    verdict: CellVerdict
    reason: str = ""


class ArmValues(msgspec.Struct, frozen=True, kw_only=True):
    """An arm of the validation and its nine axes, None where there is no evidence."""

    arm: str
    agent: str
    episodes: int
    values: tuple[float | None, ...]


class Validation(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a validation found."""

    schema: str = "owa-validation-1"
    version: str = ""
    protocol_name: str
    plan_digest: str = ""
    signs_digest: str = ""
    margin: float
    alpha: float
    level: float
    ratio: float
    tasks: int
    families: tuple[str, ...]
    missing: tuple[tuple[str, str], ...]
    knobs: tuple[KnobResponse, ...]
    correlations: tuple[AxisCorrelation, ...]
    unhandicapped: tuple[AxisCorrelation, ...]
    variants: int
    crossed: tuple[CrossedEffect, ...]
    arms: tuple[ArmValues, ...]

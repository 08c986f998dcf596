"""The results of judging: axes, index, gates and the whole judgement, ready for JSON.

Nothing here holds NaN: a missing number is None and its `reason` says why.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

GateStatus = Literal["PASS", "BELOW", "UNDECIDED", "NO EVIDENCE"]
ClosureStatus = Literal["PASS", "FAIL", "NOT TESTED", "NO EVIDENCE"]


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A confidence interval and how it was drawn; None bounds carry a reason."""

    low: float | None = None
    high: float | None = None
    method: str
    reason: str | None = None


class AxisScore(msgspec.Struct, frozen=True, kw_only=True):
    """One axis of one agent: raw statistic, anchors, value and what it rests on.

    `lower` and `highest` are the one-sided bounds over *tasks like these* that gates read, at the
    protocol's `gate_level` and `below_level`. `gated` names the statistic in details["beside"] that
    gates read in its place. `iqr` are the quartiles of the law of *tasks like these*, whose median
    is the value.
    """

    name: str
    symbol: str
    raw: float | None = None
    value: float | None = None
    low_anchor: float | None = None
    high_anchor: float | None = None
    used: int
    cells: int
    reason: str | None
    same_tasks: Interval
    tasks_like_these: Interval
    lower: float | None = None
    highest: float | None = None
    iqr: tuple[float, float] | None = None
    surrogate: bool = False
    gated: str | None = None
    details: Mapping[str, Any] = {}


class IndexScore(msgspec.Struct, frozen=True, kw_only=True):
    """A composite; not computable when an axis in use is missing."""

    name: str
    value: float | None
    missing: tuple[str, ...]
    tasks_like_these: Interval
    same_tasks: Interval
    reason: str | None = None
    details: Mapping[str, Any] = {}


class GateResult(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a level: required, measured, interval, evidence, status.

    `reason` says why there is no evidence, or holds the bounds of what does not pass against what
    is required.
    """

    level: int
    gate: str
    required: str
    measured: str = "nothing"
    interval: Interval | None = None
    status: GateStatus
    evidence: tuple[str, ...] = ()
    reason: str = ""


class ClosureResult(msgspec.Struct, frozen=True, kw_only=True):
    """Maintenance or expansion closure with its evidence by episode id.

    `days` is on how many days it was tested, or sustained. `below` says of one that fails whether
    what is asked for was tested to lie above what the agent has.
    """

    name: str
    status: ClosureStatus
    reason: str
    evidence: tuple[str, ...] = ()
    days: int = 0
    below: bool = False
    details: Mapping[str, Any] = {}


class TotalGain(msgspec.Struct, frozen=True, kw_only=True):
    """What a family gained over its frozen control by the last mornings; gates of kappa read it.

    `value` is the mean difference of both over `tasks` and `days`, `low` its one-sided lower bound,
    `p` that of "there is no gain". `usd` were spent by then, `units` of `unit_usd` each; `per_unit`
    and `logit_per_unit` are the gain, plain and on the logit link, over `units`.
    """

    value: float | None = None
    low: float | None = None
    p: float | None = None
    units: float | None = None
    usd: float | None = None
    unit_usd: float | None = None
    per_unit: float | None = None
    logit_per_unit: float | None = None
    days: int = 0
    tasks: int = 0
    reason: str | None = None

    @property
    def words(self) -> str:
        """The gain and what it cost, as a sentence, or why there is none."""
        if self.value is None:
            return self.reason or "no gain was measured"
        return (
            f"gained {self.value:.4f} (at least {self.low:.4f}) over its frozen control on the "
            f"last {self.days} mornings of {self.tasks} tasks, having spent {self.usd:.4g} USD, "
            f"{self.units:.4g} units of {self.unit_usd:.4g} USD"
        )


class KappaScore(msgspec.Struct, frozen=True, kw_only=True):
    """Self-improvement per resource of the agent (family None) or of one family.

    `slope` is the paper's kappa, `logit` the slope on the logit link; gates read `gain`, and
    `floor`, the lower bound of the capability at the last checkpoint. `checkpoints` counts the days
    of the window, `p` and `logit_p` are one-sided, `human` says which part humans had.
    """

    family: str | None
    slope: float | None
    interval: Interval
    checkpoints: int
    reason: str | None
    points: tuple[tuple[float, float], ...] = ()
    logit: float | None = None
    logit_interval: Interval | None = None
    p: float | None = None
    logit_p: float | None = None
    human: str = ""
    floor: float | None = None
    gain: TotalGain | None = None
    details: Mapping[str, Any] = {}


class FrontierScore(msgspec.Struct, frozen=True, kw_only=True):
    """Delegability: share of successes against autonomy demand, non-increasing.

    `observed`, `fitted`, `low` and `high` are shares of episodes with q_state >= q*, `quality` the
    fitted mean q_state, of which `auf` is the area; `target` is s of deleg(s). Bounds hold for
    every non-increasing frontier through the fitted points.
    """

    demand: tuple[float, ...] = ()
    observed: tuple[float, ...] = ()
    fitted: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    quality: tuple[float, ...] = ()
    auf: float | None = None
    auf_bounds: tuple[float, ...] = ()
    deleg: float | None = None
    deleg_bounds: tuple[float, ...] = ()
    deleg_cert: float | None = None
    target: float
    reason: str | None = None


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """A statistic over drift magnitude with its band; None where nothing was played.

    `diagonal`: x and y are alike, and y = x is where the line ought to be. `panel` names the figure
    that this curve is one panel of. `beside` is a second quantity at each x, `beside_label` says
    which.
    """

    name: str
    x_label: str
    y_label: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    used: tuple[int, ...]
    note: str = ""
    diagonal: bool = False
    panel: str = ""
    beside: tuple[float | None, ...] = ()
    beside_label: str = ""


class CellTable(msgspec.Struct, frozen=True):
    """A small table for the report: a title, column names and rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | int | None, ...], ...]
    note: str = ""


class AgentVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Everything judged about one arm. `level` None reads 'not placed'."""

    arm: str
    agent: str
    level: int | None
    level_text: str
    provisional: bool
    inadmissible: tuple[str, ...] = ()
    axes: tuple[AxisScore, ...]
    indices: tuple[IndexScore, ...]
    kappas: tuple[KappaScore, ...]
    closures: tuple[ClosureResult, ...]
    gates: tuple[GateResult, ...]
    frontier: FrontierScore
    tables: tuple[CellTable, ...]
    curves: tuple[Curve, ...] = ()
    cost_micro_usd: Mapping[str, int | None]
    violations: tuple[str, ...]
    episodes: int
    counted: int
    infrastructure: int
    warnings: tuple[str, ...] = ()


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The judging half's whole output over one run, a pure function of the traces."""

    schema: str = "owa-judgement-1"
    evidence_root: str
    replay_root: str
    plan_digest: str
    protocol_digest: str
    protocol_name: str
    price_digest: str
    verdicts: tuple[AgentVerdict, ...]
    limits: tuple[str, ...]

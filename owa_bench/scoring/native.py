"""What a report says of native suites: their own tables, and no axis.

A native suite (CartPole3D) has no tools, no finish and no stated p, so it stands
outside the AAI battery: its episodes enter no axis, gate or level. Its performance by
level is shown, and over trials the SAIL-ON metrics against the plan's first arm.
"""

from dataclasses import dataclass

import msgspec
import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Observables
from owa_bench.records.plan import Plan
from owa_bench.records.score import AgentVerdict, CellTable, Curve
from owa_bench.scoring.companions import trials
from owa_bench.scoring.companions.trials import Lane
from owa_bench.scoring.levels import unlevelled
from owa_bench.scoring.spread import figure

REASON = "outside the AAI battery: read novelty and AIQ instead of axes"


@dataclass(frozen=True)
class Stand:
    """What all arms share: the plan, every episode, the whole trials."""

    plan: Plan
    whole: Observables
    lanes: tuple[Lane, ...]

    @property
    def suites(self) -> tuple[str, ...]:
        """The plan's native suites."""
        return tuple(suite.name for suite in self.plan.suites if suite.native)

    @property
    def rows(self) -> Flags:
        """Which episodes are of native suites."""
        native: Flags = np.isin(self.whole.suite, self.suites)
        return native

    @property
    def alone(self) -> bool:
        """Whether the plan holds nothing else."""
        return all(suite.native for suite in self.plan.suites)


def with_own(verdict: AgentVerdict, stand: Stand) -> AgentVerdict:
    """Return a verdict with what its native episodes say; alone, without axes.

    Formula: none. Shapes: a verdict. Units: quality in [0, 1].
    Missing: a run without native suites is left as it is. Errors: none.
    Source: `design.md`, Env: CartPole3D stands outside the AAI battery.
    """
    if not stand.suites:
        return verdict
    names = ", ".join(stand.suites)
    own = stand.whole.take(stand.rows & (stand.whole.arm == verdict.arm))
    made = msgspec.structs.replace(
        verdict,
        tables=(*verdict.tables, by_level(own), *_novelty(stand)),
        curves=(*verdict.curves, *_curves(stand, verdict.arm)),
        warnings=(*verdict.warnings, f"{names}: {REASON}"),
        counted=verdict.counted + len(own),
        infrastructure=verdict.infrastructure - len(own),
    )
    if not stand.alone:
        return made
    placement = unlevelled(f"{names}: {REASON}")
    return msgspec.structs.replace(
        made,
        level=None,
        level_text=placement.text,
        provisional=False,
        axes=(),
        indices=(),
        kappas=(),
        closures=(),
        gates=(),
        tables=(by_level(own), *_novelty(stand)),
        curves=_curves(stand, verdict.arm),
        warnings=(f"{names}: {REASON}",),
    )


def by_level(table: Observables) -> CellTable:
    """Return performance by family, tier and drift: mean, standard error, steps.

    Formula: mean of q_state; standard error s / sqrt(n)
    Shapes: episodes; a row per group. Units: quality in [0, 1], steps.
    Missing: the error of one episode is blank. Errors: none.
    Source: `cartpole3d.md` section 4.
    """
    keys = sorted(
        set(
            zip(
                table.family.tolist(),
                table.tier.tolist(),
                table.delta.tolist(),
                strict=True,
            )
        )
    )
    rows = []
    for family, tier, delta in keys:
        held = (table.family == family) & (table.tier == tier) & (table.delta == delta)
        values = table.q_state[held]
        error = (
            float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else None
        )
        rows.append(
            (
                family,
                tier,
                delta,
                len(values),
                figure(float(values.mean())),
                figure(error),
                figure(float(table.steps[held].mean())),
            )
        )
    columns = ("level", "tier", "drift", "episodes", "performance", "s.e.", "steps")
    return CellTable(
        title="performance by level",
        columns=columns,
        rows=tuple(rows),
        note="performance: the sum of an episode's rewards; drift 0 is before novelty",
    )


def _novelty(stand: Stand) -> tuple[CellTable, ...]:
    """Return the SAIL-ON table where trials were played, the first arm the baseline."""
    if not stand.lanes:
        return ()
    try:
        return (trials.table(stand.lanes, stand.plan.arms[0].name),)
    except ScoringError as error:
        columns = ("why there are no novelty metrics",)
        rows = ((str(error),),)
        return (CellTable(title="novelty (SAIL-ON)", columns=columns, rows=rows),)


def _curves(stand: Stand, arm: str) -> tuple[Curve, ...]:
    """Return an arm's quality around the introduction of novelty."""
    return tuple(
        Curve(
            name="performance around the novelty",
            x_label="episodes since the novelty came in",
            y_label="mean performance",
            x=tuple(float(offset) for offset in one.offsets),
            y=tuple(map(figure, one.mean)),
            low=tuple(map(figure, one.low)),
            high=tuple(map(figure, one.high)),
            used=tuple(0 for _ in one.offsets),
            note="band: 1.96 standard errors over trials",
        )
        for one in trials.curves(stand.lanes)
        if one.arm == arm
    )

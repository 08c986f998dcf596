"""Native suites: their own tables and curves in a verdict, outside the axes.

A native suite (CartPole3D) has no tools, no finish and no stated p: its episodes enter no axis,
gate or level. Its performance by level is shown, and over trials the SAIL-ON metrics against the
plan's first arm.
"""

from dataclasses import dataclass

import msgspec
import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Observables
from owa_bench.records.plan import Plan
from owa_bench.records.score import AgentVerdict, CellTable, Curve
from owa_bench.scoring.gate import no_level
from owa_bench.scoring.novelty import trials
from owa_bench.scoring.novelty.trials import ArmTrial
from owa_bench.scoring.statistics.bootstrap import figure
from owa_bench.scoring.statistics.jackknife import standard_error
from owa_bench.scoring.statistics.task_means import task_of, without_each_task
from owa_bench.scoring.verdict.descriptive import money_totals

REASON = "outside the AAI battery: read novelty and AIQ instead of axes"


@dataclass(frozen=True)
class NativeResults:
    """The plan, the episodes of every arm, and the complete trials."""

    plan: Plan
    episodes: Observables
    trials: tuple[ArmTrial, ...]

    @property
    def suites(self) -> tuple[str, ...]:
        """The plan's native suites."""
        return tuple(suite.name for suite in self.plan.suites if suite.apart)

    @property
    def rows(self) -> Flags:
        """Which episodes are of native suites."""
        rows: Flags = np.isin(self.episodes.suite, self.suites)
        return rows

    @property
    def alone(self) -> bool:
        """Whether the plan holds nothing else."""
        return all(suite.apart for suite in self.plan.suites)


def with_native(verdict: AgentVerdict, native: NativeResults) -> AgentVerdict:
    """Return a verdict with its native results; without axes where it has no others.

    Formula: none. Shapes: a verdict. Units: quality in [0, 1].
    Missing: a run without native suites is left as it is. Errors: none.
    Source: [D] docs/cartpole3d.md: outside the AAI battery.
    """
    if not native.suites:
        return verdict
    names = ", ".join(native.suites)
    own = native.episodes.take(native.rows & (native.episodes.arm == verdict.arm))
    baseline = native.plan.arms[0].name
    first = native.episodes.take(native.rows & (native.episodes.arm == baseline))
    tables = (_by_level(own, first), *_novelty(native))
    curves = _curves(native, verdict.arm)
    extended = msgspec.structs.replace(
        verdict,
        tables=(*verdict.tables, *tables),
        curves=(*verdict.curves, *curves),
        warnings=(*verdict.warnings, f"{names}: {REASON}"),
        cost_micro_usd=money_totals(native.episodes.take(native.episodes.arm == verdict.arm)),
        counted=verdict.counted + len(own),
        infrastructure=verdict.infrastructure - len(own),
    )
    if not native.alone:
        return extended
    return msgspec.structs.replace(
        extended,
        level=None,
        level_text=no_level(f"{names}: {REASON}").text,
        provisional=False,
        **dict.fromkeys(("axes", "indices", "kappas", "closures", "gates"), ()),
        tables=tables,
        curves=curves,
        warnings=(f"{names}: {REASON}",),
    )


def _by_level(table: Observables, first: Observables) -> CellTable:
    """Return performance by family, tier and drift, and beside the plan's first arm.

    Formula: mean of q_state, its jackknife error over tasks, a trial being one task
        (s / sqrt(n) where each has one episode); the same of the differences of pairs
    Shapes: episodes of an arm and of the first; a row per group.
    Units: quality in [0, 1], steps.
    Missing: the error of one task is blank; pairs that an arm lacks are left out.
    Errors: none. Source: docs/cartpole3d.md.
    """
    beside = dict(zip(_keys(first), first.q_state.tolist(), strict=True))
    groups: dict[tuple[str, int, float], list[int]] = {}
    columns = (table.family.tolist(), table.tier.tolist(), table.delta.tolist())
    for i, group in enumerate(zip(*columns, strict=True)):
        groups.setdefault(group, []).append(i)
    keys, tasks = _keys(table), [task_of(pair) for pair in table.pair.tolist()]
    rows = []
    for group, places in sorted(groups.items()):
        values = table.q_state[places]
        paired = [i for i in places if keys[i] in beside]
        gaps = [float(table.q_state[i]) - beside[keys[i]] for i in paired]
        means = (
            *_mean(values.tolist(), [tasks[i] for i in places]),
            *_mean(gaps, [tasks[i] for i in paired]),
        )
        steps = figure(float(table.steps[places].mean()))
        rows.append((*group, len(values), *means, steps))
    note = (
        "performance: the sum of an episode's rewards; drift 0 is before novelty; "
        "difference: to the plan's first agent on the same pairs"
    )
    return CellTable("performance by level", COLUMNS, tuple(rows), note)


COLUMNS = (
    *("level", "tier", "drift", "episodes", "performance", "s.e."),
    *("difference", "s.e. of it", "steps"),
)


def _keys(table: Observables) -> list[tuple[str, float, int]]:
    """Return what makes two arms' episodes a pair."""
    columns = (table.pair.tolist(), table.delta.tolist(), table.repeat.tolist())
    return list(zip(*columns, strict=True))


def _mean(values: list[float], tasks: list[str]) -> tuple[float | None, float | None]:
    """Return mean and standard error, None where they cannot be had."""
    if not values:
        return None, None
    mean, without = figure(float(np.mean(values))), without_each_task(values, tasks)
    if len(without) < 2:
        return mean, None
    return mean, figure(standard_error(without, np.zeros(len(without), dtype=int)))


def _novelty(native: NativeResults) -> tuple[CellTable, ...]:
    """Return the SAIL-ON table where trials were played, the first arm the baseline."""
    if not native.trials:
        return ()
    try:
        return (trials.novelty_table(native.trials, native.plan.arms[0].name),)
    except ScoringError as error:
        columns = ("why there are no novelty metrics",)
        rows = ((str(error),),)
        return (CellTable(title="novelty (SAIL-ON)", columns=columns, rows=rows),)


def _curves(native: NativeResults, arm: str) -> tuple[Curve, ...]:
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
        for one in trials.quality_curves(native.trials)
        if one.arm == arm
    )

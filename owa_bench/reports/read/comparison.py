"""Comparison of two agents of one run or of two: which pairs they share, on what terms.

    from owa_bench.reports.read.comparison import compare

    for row in compare("runs/a:agentic", "runs/a:fixed").figures:
        print(row.measure, row.group, row.name, row.difference, row.interval)

A pair is an instance that both played under the same day, budget and limits. Source:
docs/read-a-run.md#compare
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from owa_bench.errors import FieldError, OwaError, UsageError
from owa_bench.records.events import EpisodeStart
from owa_bench.records.plan import Plan, arm_role
from owa_bench.records.score import CellTable
from owa_bench.records.trace import Trace
from owa_bench.reports.read.bundle import Bundle, read
from owa_bench.scoring.estimate.comparison import (
    COST,
    QUALITY,
    SUCCESS,
    PairedFigure,
    outcomes_of,
    paired_figures,
)
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.observe.sample import Sample, sample_of

_NOTE = (
    "Both on the same instances. Q: 0.9 of the quality and 0.1 of the forecast's."
    " Difference: second minus first; of the agent's own cost (USD"
    " an episode) the second over the first. Help: share of episodes in which it was given; a"
    " supervisor is simulated and in no cost. 95 percent, tasks like these. Each row stands"
    " alone: of twenty rows without a difference about one excludes it by chance."
)
OWN_COST = "own cost"  # what a table calls the measure COST
# `run` and `view` call q_state quality, and what is compared holds the forecast, too.
_NAMES = {COST: OWN_COST, QUALITY: "Q"}
_LEAST = 0.1  # [D] the smallest difference of success that a verdict looks for


class ArmComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two agents over their shared pairs; `unshared` counts what each played alone."""

    first: str
    second: str
    pairs: int
    unshared: tuple[int, int]
    figures: tuple[PairedFigure, ...]


class ComparedArm(NamedTuple):
    """An arm of a run: what it is called here, and where it stands."""

    label: str
    bundle: Bundle
    arm: str


class _Episodes(NamedTuple):
    """The episodes of an arm that are compared: sample, and row and terms by pair."""

    sample: Sample
    rows: dict[bytes, int]
    terms: dict[bytes, dict[str, Any]]


def compare(first: str, second: str) -> ArmComparison:
    """Return two agents compared pair by pair.

    Args:
        first: "RUN" or "RUN:ARM"; the arm may be left out where the run has one.
        second: The same, of the same run or of another.
    Raises:
        FieldError: There is no such arm.
        RunDirectoryError: There is no such run.
        UsageError: They were played on different terms, or share no pair.
    """
    one, other = arm_of(first), arm_of(second)
    wrong = different_terms(plan_terms(one.bundle.plan), plan_terms(other.bundle.plan))
    if wrong:
        raise UsageError(
            f"{first} and {second} must be played on the same terms to be compared, "
            f"these differ: {'; '.join(wrong)}."
        )
    return compare_arms(one, other)


def arm_of(text: str) -> ComparedArm:
    """Return the arm that "RUN" or "RUN:ARM" names; FieldError if there is none."""
    folder, arm = _run_and_arm(text)
    bundle = read(Path(folder))
    names = [one.name for one in bundle.plan.arms]
    if not arm and len(names) == 1:
        arm = names[0]
    _require_arm(arm, names, folder)
    return ComparedArm(text, bundle, arm)


def arms_of(text: str) -> list[ComparedArm]:
    """Return the arm that "RUN:ARM" names, or of "RUN" all that are no control of another.

    Raises: FieldError: There is no such arm.
    """
    folder, arm = _run_and_arm(text)
    bundle = read(Path(folder))
    own = [one.name for one in bundle.plan.arms if arm_role(one) in ("learner", "reference")]
    if arm:
        _require_arm(arm, [one.name for one in bundle.plan.arms], folder)
        own = [arm]
    return [ComparedArm(folder, bundle, name) for name in own]


def _run_and_arm(text: str) -> tuple[str, str]:
    """Return the folder and the arm of "RUN:ARM"; the arm is "" where none is named."""
    folder, colon, arm = text.rpartition(":")
    return (text, "") if not colon or Path(text).is_dir() else (folder, arm)


def _require_arm(arm: str, names: Sequence[str], folder: str) -> None:
    if arm not in names:
        rule = f"must name one of the arms of {folder}: {', '.join(names)}"
        raise FieldError("ARM", arm, rule)


def compare_arms(one: ComparedArm, other: ComparedArm) -> ArmComparison:
    """Return two arms compared pair by pair, whatever the terms of their plans.

    Args:
        one: The first.
        other: The second.
    Raises: UsageError: They share no pair, or a pair was played on different terms.
    """
    first, second = _episodes(one), _episodes(other)
    shared = sorted(first.rows.keys() & second.rows.keys(), key=first.rows.__getitem__)
    if not shared:
        raise UsageError(
            f"{one.label} and {other.label} must share at least one pair, got none: "
            f"{_why_none(one, other)}."
        )
    for key in shared:
        wrong = [k for k, v in first.terms[key].items() if second.terms[key][k] != v]
        if wrong:
            index = int(first.sample.table.index[first.rows[key]])
            raise UsageError(
                f"{one.label} and {other.label} must play their pairs on the same "
                f"terms; of entry {index} of the first these differ: "
                f"{', '.join(wrong)}."
            )
    table = first.sample.table
    # An episode copied over another has the key of both: rows are not keys.
    mask = np.isin(np.arange(len(table.attempt)), [first.rows[key] for key in shared])
    sample = replace(first.sample, table=table.take(mask))
    others = np.array([second.rows[key] for key in shared], dtype=np.int64)
    return ArmComparison(
        first=one.label,
        second=other.label,
        pairs=len(shared),
        unshared=(len(first.rows) - len(shared), len(second.rows) - len(shared)),
        figures=paired_figures(sample, outcomes_of(second.sample.table, others)),
    )


def comparison_table(comparison: ArmComparison) -> CellTable:
    """Return a comparison as a table."""
    suites = {r.name.partition("/")[0] for r in comparison.figures if "/" in r.name}
    rows = [
        (
            _NAMES.get(row.measure, row.measure),
            _words(row, one_suite=len(suites) < 2),
            *(row.pairs, row.tasks, row.first, row.second, row.difference),
            *(row.interval.low, row.interval.high),
        )
        for row in comparison.figures
    ]
    left = ""
    if any(comparison.unshared):
        left = " Played by one of them alone, and left out: {} and {}.".format(*comparison.unshared)
    bare = [row.interval for row in comparison.figures if row.interval.low is None]
    why = f" Missing intervals: {bare[0].reason}." if bare else ""
    columns = ("measure", "pairs of", "pairs", "tasks", "first", "second")
    return CellTable(
        f"{comparison.first} against {comparison.second}, pair by pair",
        (*columns, "difference", "low", "high"),
        tuple(rows),
        f"First: {comparison.first}. Second: {comparison.second}. {_NOTE}{left}{why}",
    )


def verdict_words(comparison: ArmComparison) -> str:
    """Return which agent succeeds more often, or how many tasks would tell.

    Formula:
        n (h / max(|d|, least))^2 tasks, at least n + 1: h the part of the interval over n
        tasks between the difference d and its end on the side of 0, least the smallest
        difference that is looked for
    Missing: nothing is said to be told where there is no interval.
    Source: [D] docs/read-a-run.md#compare.
    """
    row = next(r for r in comparison.figures if (r.measure, r.name) == (SUCCESS, ""))
    low, high, tasks = row.interval.low, row.interval.high, f"{row.tasks} tasks"
    if low is None or high is None or row.difference is None:
        return f"Cannot tell: {row.interval.reason or 'no interval'}."
    ends = f"{row.difference:+.3f} [{low:+.3f}, {high:+.3f}] over {tasks}"
    if low > 0 or high < 0:
        better = comparison.second if low > 0 else comparison.first
        return f"{better} succeeds more often: {ends}."
    looked_for = max(abs(row.difference), _LEAST)
    reach = row.difference - low if row.difference >= 0 else high - row.difference
    enough = max(row.tasks + 1, math.ceil(round(row.tasks * (reach / looked_for) ** 2, 6)))
    return (
        f"Cannot tell who succeeds more often: {ends}; about {enough:,} tasks would tell a "
        f"difference of {looked_for:.2f}."
    )


def _words(row: PairedFigure, *, one_suite: bool) -> str:
    """Return which pairs a row is of."""
    name = row.name.partition("/")[2] if one_suite and "/" in row.name else row.name
    return f"{row.group} {name}" if name else "all"


def report_comparison(bundle: Bundle) -> CellTable | None:
    """Return the comparison of a run's two agents, None where it has not two."""
    arms = [a.name for a in bundle.plan.arms if not (a.placebo or a.baseline)]
    if len(arms) != 2:
        return None
    one, other = (ComparedArm(arm, bundle, arm) for arm in arms)
    try:
        return comparison_table(compare_arms(one, other))
    except OwaError as error:
        title = f"{arms[0]} against {arms[1]}, pair by pair"
        return CellTable(title, (), (), str(error))


def _episodes(side: ComparedArm) -> _Episodes:
    """Return the scored episodes of an arm; controls of a crew are left out."""
    starts: dict[str, EpisodeStart] = {}
    bundle = side.bundle
    table = observe(_started(bundle.traces(), side.arm, starts), bundle.prices)
    sample = sample_of(bundle.plan, table, bundle.protocol, bundle.prices)
    inside = np.isin(sample.table.family, sample.families)
    scored = sample.table.take(inside & ~sample.table.crew.control)
    rows: dict[bytes, int] = {}
    terms: dict[bytes, dict[str, Any]] = {}
    for row, attempt in enumerate(scored.attempt.tolist()):
        start = starts[attempt]
        key = pair_key(start)
        rows[key], terms[key] = row, {k: getattr(start, k) for k in _PAIR_TERMS}
    return _Episodes(replace(sample, table=scored), rows, terms)


def _started(traces: Iterable[Trace], arm: str, starts: dict[str, EpisodeStart]) -> Iterator[Trace]:
    """Yield the traces of an arm; keep the first event of each."""
    for trace in traces:
        if trace.start.arm == arm:
            starts[trace.leaf.attempt_id] = trace.start
            yield trace


def pair_key(start: EpisodeStart) -> bytes:
    """Return what makes two episodes a pair: instance, day, budget and limits."""
    budget = "protocol" if start.priced else start.interventions
    parts = [start.instance, start.delta, start.day, start.session, budget]
    limits = [start.role_cap, start.muted, start.tools_off, start.calendar]
    return msgspec.json.encode([*parts, *limits])


# Of an episode's first event: what must be equal in both episodes of a pair.
_PAIR_TERMS = (
    *("world", "horizon", "horizon_cap", "depth_cap", "theta", "step_limit"),
    *("side", "phase", "honeypot", "needs_tools"),
)


def different_terms(first: Mapping[str, object], second: Mapping[str, object]) -> list[str]:
    """Return the terms in which two differ, by name, with both values.

    Args:
        first: Terms by name.
        second: Others; what has a name in one of them alone does not count.
    """
    return [
        f"{name} ({value} against {second[name]})"
        for name, value in first.items()
        if name in second and value != second[name]
    ]


def plan_terms(plan: Plan) -> dict[str, object]:
    """Return the terms of a plan that every episode is played under, by name."""
    budget = msgspec.structs.asdict(plan.budget)
    return {
        "protocol": plan.protocol_digest[:12],
        "price card": plan.price_digest[:12],
        "calendar": plan.calendar,
        "share of help": plan.help_share,
        **{f"budget {name}": value for name, value in budget.items()},
        **{
            f"suite {suite.name}": f"v{suite.version} {suite.source_digest[:12]}"
            for suite in plan.suites
        },
    }


def _why_none(one: ComparedArm, other: ComparedArm) -> str:
    if one.bundle.plan.commitment == other.bundle.plan.commitment:
        return "no instance was played by both under the same budget and limits"
    return (
        "the runs drew their worlds from different masters. Play both agents in one "
        "run, or the second run with `owa-bench run --worlds-of RUN`"
    )

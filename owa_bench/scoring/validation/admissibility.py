"""Admissibility: the requirements on a battery before a level can rest on it.

Six checks (a) to (f), each with its own error; `check` returns every one that fails.

Source: [S] docs/scoring.md#admissibility.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from owa_bench import errors
from owa_bench.interfaces import stated_quality
from owa_bench.records.plan import Plan
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import AxisScore
from owa_bench.scoring.observe.sample import daily_plan

QualityRule = Callable[[float, float, bool], float]  # (q_state, stated p, success) -> Q
_GRID = np.linspace(0.0, 1.0, 21)
_TIE = 1e-9
_CEILING, _FLOOR = "oracle", "noop"  # agents whose axes are known beforehand
_CONTROLLED = ("A", "G", "P", "M", "T")


def check_proper(quality: QualityRule, theta: float = 0.95) -> None:
    """(a) Raise ImproperQuality unless honesty about p maximises expected Q.

    Over a grid of true probabilities of success the expected Q of every other stated p is lower
    than that of the true one.

    Args:
        quality: Quality of an episode, from q_state, stated p and success.
        theta: Threshold of success.
    Raises: ImproperQuality: Another p is as good as the true one.
    """
    for truth in _GRID:
        expected = [
            truth * quality(1.0, p, True) + (1 - truth) * quality(theta / 2, p, False)
            for p in _GRID
        ]
        best = float(_GRID[int(np.argmax(expected))])
        honest = expected[int(np.argmin(np.abs(_GRID - truth)))]
        if sum(value >= honest - _TIE for value in expected) != 1:
            raise errors.ImproperQuality(
                "(a) Every quality rule must be strictly proper: at a true "
                f"probability of {truth:.2f} expected quality peaks at p = {best:.2f}."
            )


def check_family_sizes(plan: Plan, protocol: Protocol) -> None:
    """(b) Raise SmallFamily unless every arm plays enough pairs of every family.

    A battery that is under-powered by its own word needs one. A control plays the suites of the
    days alone.

    Args:
        plan: The run's plan.
        protocol: Published numbers.
    Raises: SmallFamily: A family has fewer pairs than `family_min`.
    """
    least = 1 if plan.underpowered else protocol.admissibility.family_min
    pairs: dict[tuple[str, str], set[str]] = defaultdict(set)
    for entry in plan.entries:
        if entry.phase != "practice":
            pairs[entry.arm, f"{entry.suite}/{entry.family}"].add(entry.pair)
    daily = daily_plan(plan).suites
    for arm in plan.arms:
        control = arm.frozen or arm.placebo or arm.baseline
        for suite in daily if control else plan.suites:
            for family in suite.families:
                played = len(pairs[arm.name, f"{suite.name}/{family}"])
                if played < least:
                    raise errors.SmallFamily(
                        f"(b) Every family needs at least {least} instances: arm "
                        f"`{arm.name}` has {played} of {suite.name}/{family}."
                    )


def check_drift_support(plan: Plan, protocol: Protocol) -> None:
    """(c) Raise DriftSupport unless each family meets each magnitude of the grid.

    Families of native suites need not: they have no tools, so T does not read them.

    Args:
        plan: The run's plan.
        protocol: Published numbers.
    Raises: DriftSupport: A family is never played at a magnitude that T reads.
    """
    grid = set(protocol.drift.magnitudes)
    native = {suite.name for suite in plan.suites if suite.native}
    played: dict[str, set[float | None]] = defaultdict(set)
    for entry in plan.entries:
        if entry.phase != "practice" and entry.suite not in native:
            played[f"{entry.suite}/{entry.family}"].add(entry.delta)
    if not played:
        raise errors.DriftSupport("(c) A battery must play at least one family, got none.")
    for family, deltas in sorted(played.items()):
        absent = sorted(grid - {delta for delta in deltas if delta is not None})
        if absent:
            raise errors.DriftSupport(
                "(c) The drift law needs full support on the magnitudes that T reads: "
                f"{family} is never played at {', '.join(f'{d:g}' for d in absent)}."
            )


def check_cost_schema(plan: Plan, protocol: Protocol) -> None:
    """(d) Raise CostSchema unless plan and protocol name the same price card.

    Args:
        plan: The run's plan.
        protocol: Published numbers.
    Raises: CostSchema: They name different ones.
    """
    if plan.price_digest != protocol.price_card:
        raise errors.CostSchema(
            "(d) The cost schema must be frozen for the window: the protocol names "
            f"price card {protocol.price_card[:16]}, the plan "
            f"{plan.price_digest[:16] or 'none'}."
        )


def check_seeds(plan: Plan) -> None:
    """(e) Raise SeedCommitment unless seeds are committed and artefacts kept."""
    if not plan.commitment:
        raise errors.SeedCommitment(
            "(e) Seeds must be committed in the plan; it holds no commitment."
        )
    if not plan.transcripts:
        raise errors.SeedCommitment(
            "(e) Artefacts must be escrowed; the plan keeps no transcripts."
        )


def check_budgets(plan: Plan) -> None:
    """(f) Raise HelpBudgets unless each task without help is played with priced help.

    Args:
        plan: The run's plan.
    Raises: HelpBudgets: A family's tasks under the two budgets are not the same.
    """
    tasks: dict[tuple[str, str], set[object]] = defaultdict(set)
    for entry in plan.entries:
        enters = not entry.calendar and not entry.condition
        if entry.phase != "practice" and enters and not entry.control:
            task = (entry.pair, entry.repeat, entry.delta, entry.day, entry.arm)
            family = f"{entry.suite}/{entry.family}"
            tasks[family, str(entry.interventions)].add(task)
    scored = {
        f"{suite.name}/{name}"
        for suite in plan.suites
        if suite.embodied is not True
        for name in suite.families
    }
    for family in sorted(scored & {family for family, _ in tasks}):
        alone, priced = tasks[family, "0"], tasks[family, "protocol"]
        if not alone or alone != priced:
            raise errors.HelpBudgets(
                "(f) Every task must be played at interventions 0 and at `protocol`: "
                f"{family} has {len(alone)} and {len(priced)}, {len(alone & priced)} "
                "of them the same."
            )


def check(plan: Plan, protocol: Protocol) -> tuple[errors.AdmissibilityError, ...]:
    """Return every reason why no level can rest on this plan's battery.

    Args:
        plan: The run's plan.
        protocol: Published numbers.
    Returns: The errors of the checks that fail.
    """
    share = protocol.quality.forecast_share

    def quality(q_state: float, p: float, success: bool) -> float:
        return stated_quality(q_state, p, success, share)

    checks: tuple[Callable[[], None], ...] = (
        lambda: check_proper(quality),
        lambda: check_family_sizes(plan, protocol),
        lambda: check_drift_support(plan, protocol),
        lambda: check_cost_schema(plan, protocol),
        lambda: check_seeds(plan),
        lambda: check_budgets(plan),
    )
    faults: list[errors.AdmissibilityError] = []
    for one in checks:
        try:
            one()
        except errors.AdmissibilityError as fault:
            faults.append(fault)
    return tuple(faults)


def check_controls(axes: Mapping[str, Sequence[AxisScore]], protocol: Protocol) -> tuple[str, ...]:
    """Return why the controls of a run do not fit the anchors; nothing if they do.

    Args:
        axes: Scores of every arm by the name of its agent; the oracle policy and the no-op are read
            where the run played them.
        protocol: Published numbers.
    Returns: At most one sentence.
    """
    try:
        check_anchors(axes.get(_CEILING, ()), axes.get(_FLOOR, ()), protocol)
    except errors.AnchorError as fault:
        return (str(fault),)
    return ()


def unchecked_anchors(agents: Collection[str]) -> tuple[str, ...]:
    """Return a warning where a run did not play both controls, by agents' names."""
    absent = [name for name in (_CEILING, _FLOOR) if name not in agents]
    words = f"the anchors are not checked: {' and '.join(absent)} did not play"
    return (words,) if absent else ()


def check_anchors(
    oracle: Sequence[AxisScore], floor: Sequence[AxisScore], protocol: Protocol
) -> None:
    """Raise AnchorError unless the oracle reads 1 and the floor policy near 0.

    Read on A, G, P, M and T where they have evidence.

    Args:
        oracle: Axes of the oracle policy.
        floor: Axes of a floor policy.
        protocol: Published numbers.
    Raises: AnchorError: The anchors of the protocol do not fit the suites.
    Source: [D] docs/scoring.md#admissibility.
    """
    rules = protocol.admissibility
    for symbol, value in _controlled(oracle):
        if value < rules.oracle_min:
            raise errors.AnchorError(
                f"The oracle policy must read {rules.oracle_min:g} on {symbol}, "
                f"got {value:.4f}: the anchors do not fit the suites."
            )
    for symbol, value in _controlled(floor):
        if value > rules.floor_max:
            raise errors.AnchorError(
                f"A floor policy must read at most {rules.floor_max:g} on {symbol}, "
                f"got {value:.4f}: the anchors do not fit the suites."
            )


def _controlled(scores: Sequence[AxisScore]) -> list[tuple[str, float]]:
    """Return the axes that a control policy has a value on."""
    return [
        (score.symbol, round(score.value, 6))
        for score in scores
        if score.symbol in _CONTROLLED and score.value is not None
    ]

"""Outcomes of a run per agent: how planned episodes ended, and the first error of each.

Every planned episode is counted once: by the attempt that counts, else by its last
attempt that failed through the harness, else as not played.
"""

from collections import defaultdict
from typing import NamedTuple

import msgspec
import scipy.stats

from owa_bench.records.events import EpisodeEnd
from owa_bench.records.score import Interval
from owa_bench.records.trace import Trace
from owa_bench.report.bundle import Bundle

BROKEN_SHARE = 0.05  # of planned episodes: above it the page says so first [D]
_NAMES = {
    "finished": "finished",
    "infeasible": "declared infeasible",
    "agent_raised": "crashed",
    "agent_timeout": "timed out",
    "infrastructure": "failed through harness or provider",
}
NOT_PLAYED = "not played"
_BROKEN = frozenset({*list(_NAMES.values())[2:], NOT_PLAYED})


class OutcomeCount(msgspec.Struct, frozen=True):
    """Planned episodes of an agent that ended in one way; `first` is the attempt."""

    kind: str
    episodes: int
    first: str = ""
    reason: str = ""


class ArmOutcomes(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes of one arm; `success` is a share of its counted episodes.

    `cost_micro_usd` is the cost of a success by agent and human stream, None where
    there is no success or no known cost.
    """

    arm: str
    planned: int
    counted: int
    successes: int
    success: Interval
    cost_micro_usd: int | None
    kinds: tuple[OutcomeCount, ...]

    @property
    def broken(self) -> tuple[OutcomeCount, ...]:
        """The kinds in which the episode itself did not take place as planned."""
        return tuple(kind for kind in self.kinds if kind.kind in _BROKEN)

    @property
    def broken_share(self) -> float:
        """Their share of the planned episodes, in [0, 1]."""
        return sum(kind.episodes for kind in self.broken) / max(self.planned, 1)

    @property
    def alarming(self) -> bool:
        """Whether that is more than the page lets pass without a banner."""
        return self.broken_share > BROKEN_SHARE


class _Ending(NamedTuple):
    attempt: str
    kind: str
    reason: str


def arm_outcomes(
    bundle: Bundle, costs: dict[str, int | None]
) -> tuple[ArmOutcomes, ...]:
    """Return the outcomes of every arm.

    Args:
        bundle: The run directory.
        costs: Micro-USD of the agent and human streams by arm, None where unknown.
    Returns: One record an arm, in the plan's order.
    """
    endings = {trace.leaf.index: _ending(trace) for trace in bundle.traces()}
    failed: dict[int, _Ending] = {}
    for attempt in bundle.attempts():
        last = attempt.events[-1] if attempt.events else None
        if isinstance(last, EpisodeEnd) and last.outcome == "infrastructure":
            kind = _NAMES["infrastructure"]
            failed[attempt.leaf.index] = _Ending(attempt.attempt_id, kind, last.reason)
    won = {t.leaf.index for t in bundle.traces() if t.end.success}
    indices: dict[str, list[int]] = {arm.name: [] for arm in bundle.plan.arms}
    for entry in bundle.plan.entries:
        indices[entry.arm].append(entry.index)
    nothing = _Ending("", NOT_PLAYED, "")
    return tuple(
        _of_arm(
            arm,
            [endings.get(i) or failed.get(i) or nothing for i in planned],
            counted=sum(i in endings for i in planned),
            successes=sum(i in won for i in planned),
            cost=costs.get(arm),
        )
        for arm, planned in indices.items()
    )


def _ending(trace: Trace) -> _Ending:
    """Return how a counted episode ended, in words."""
    end = trace.end
    if end.outcome == "truncated":
        meter = end.reason.removeprefix("budget:")
        kind = "out of steps" if meter == "steps" else f"out of budget ({meter})"
    else:
        kind = _NAMES[end.outcome]
    reason = end.reason if kind in _BROKEN else ""
    return _Ending(trace.leaf.attempt_id, kind, reason)


def _of_arm(
    arm: str,
    endings: list[_Ending],
    *,
    counted: int,
    successes: int,
    cost: int | None,
) -> ArmOutcomes:
    """Return the record of an arm from the endings of its planned episodes."""
    by_kind: dict[str, list[_Ending]] = defaultdict(list)
    for ending in endings:
        by_kind[ending.kind].append(ending)
    kinds = tuple(
        OutcomeCount(kind, len(found), found[0].attempt, found[0].reason)
        for kind, found in sorted(by_kind.items(), key=lambda it: (-len(it[1]), it[0]))
    )
    return ArmOutcomes(
        arm=arm,
        planned=len(endings),
        counted=counted,
        successes=successes,
        success=_share(successes, counted),
        cost_micro_usd=None if cost is None or not successes else cost // successes,
        kinds=kinds,
    )


def _share(successes: int, counted: int) -> Interval:
    """Return Wilson's 95 percent interval of a share."""
    method = "Wilson, over episodes"
    if not counted:
        return Interval(method=method, reason="no counted episode")
    found = scipy.stats.binomtest(successes, counted).proportion_ci(method="wilson")
    return Interval(
        method=method, low=round(float(found.low), 6), high=round(float(found.high), 6)
    )

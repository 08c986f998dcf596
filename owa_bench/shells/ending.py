"""The judgement at an episode's end: what the world's state is worth."""

from collections.abc import Sequence
from typing import NamedTuple

from owa_bench.interfaces import Ending, State, Suite, stated_quality
from owa_bench.records.events import Event, Outcome, Resolution, Violation, fixed
from owa_bench.records.instance import Timeline
from owa_bench.shells.standard_tools import OWN_SUCCESS

ERROR_SHARE = 0.1  # l, the share of Q that the stated probability decides [S]


class Finding(NamedTuple):
    """How an episode ended and the events that say so."""

    ending: Ending
    events: tuple[Event, ...]


def judge(
    suite: Suite,
    timeline: Timeline,
    state: State,
    *,
    outcome: Outcome,
    reason: str,
    stated: float | None,
    step: int,
    log: Sequence[Event],
) -> Finding:
    """Return the ending: detectors first, then the oracle on the state.

    A disqualifying violation makes q_state and Q 0. Propositions resolve by the
    timeline's first world, the one they were listed for.
    """
    violations = [
        Violation(
            step=step,
            rule=detector.rule.name,
            severity=detector.rule.severity,
            evidence=evidence,
        )
        for detector in suite.detectors
        for evidence in detector.inspect(timeline, state, log)
    ]
    barred = any(violation.severity == "disqualify" for violation in violations)
    q_state = 0.0 if barred else fixed(suite.oracle.quality(timeline, state))
    success = q_state >= suite.card.theta
    quality = stated_quality(q_state, stated, success, ERROR_SHARE)
    ending = Ending(
        outcome=outcome,
        reason=reason,
        q_state=q_state,
        quality=0.0 if barred else quality,
        success=success,
        stated=stated,
    )
    truths = suite.oracle.propositions(timeline.worlds[0])
    resolved = [Resolution(proposition=n, kind=k, y=y) for n, k, y in truths]
    own = Resolution(proposition=OWN_SUCCESS, kind=OWN_SUCCESS, y=success)
    return Finding(ending, (*violations, *resolved, own))

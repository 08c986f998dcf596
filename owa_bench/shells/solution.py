"""The oracle's own solution of a timeline: its actions and the horizon H_t."""

from typing import NamedTuple

from owa_bench.interfaces import HasHorizon, Suite
from owa_bench.records.instance import Timeline
from owa_bench.shells.calls import CallParser, call_text
from owa_bench.shells.episode import Episode, Terms
from owa_bench.shells.sink import NullSink


class Solution(NamedTuple):
    """What the oracle did: action texts, how many were verified, and q_state.

    The last action ends the episode, unless the step limit did.
    """

    actions: tuple[str, ...]
    accepted: int
    q_state: float


def horizon(
    suite: Suite, timeline: Timeline, *, parser: CallParser | None = None
) -> int:
    """Return H_t: what the suite foresees or, where it cannot, what playing gives."""
    known = suite.horizon(timeline) if isinstance(suite, HasHorizon) else None
    return solve(suite, timeline, parser=parser).accepted if known is None else known


def solve(
    suite: Suite, timeline: Timeline, *, parser: CallParser | None = None
) -> Solution:
    """Return the solution that following the oracle's hints gives; pure."""
    terms = Terms(step_limit=suite.card.step_limit)
    episode = Episode(suite, timeline, sink=NullSink(), terms=terms, parser=parser)
    actions: list[str] = []
    try:
        while episode.ending is None:
            hint = suite.oracle.hint(timeline, episode.session.state)
            actions.append(call_text(hint["tool"], hint["arguments"]))
            episode.step(actions[-1])
        return Solution(tuple(actions), episode.verified, episode.ending.q_state)
    finally:
        episode.close()

"""The oracle's own solution of an instance: its actions, and the horizon H_t."""

from typing import NamedTuple

from owa_bench import interfaces
from owa_bench.records.instance import Timeline
from owa_bench.shells.calls import CallParser, call_text
from owa_bench.shells.episode import Episode, EpisodeTerms
from owa_bench.shells.sink import NullSink


class OracleSolution(NamedTuple):
    """The oracle's action texts, how many were verified, and q_state.

    The last action ends the episode, unless the step limit did.
    """

    actions: tuple[str, ...]
    accepted: int
    q_state: float


def horizon(
    suite: interfaces.Suite, timeline: Timeline, *, parser: CallParser | None = None
) -> int:
    """Return H_t, from the suite if it can tell, else by playing the episode.

    Args:
        suite: A tool suite.
        timeline: The episode's.
        parser: Of the suite's tools, where there is one already.
    Returns: The oracle's number of verified actions.
    """
    known = (
        suite.horizon(timeline) if isinstance(suite, interfaces.HasHorizon) else None
    )
    return solve(suite, timeline, parser=parser).accepted if known is None else known


def solve(
    suite: interfaces.Suite,
    timeline: Timeline,
    *,
    parser: CallParser | None = None,
    laboratory: interfaces.Laboratory | None = None,
) -> OracleSolution:
    """Return the result of following the oracle's hints; pure.

    Args:
        suite: A tool suite.
        timeline: The episode's.
        parser: Of the suite's tools, where there is one already.
        laboratory: For a suite that plays attempts inside an episode.
    Returns: The actions and their result.
    """
    episode = Episode(
        suite,
        timeline,
        sink=NullSink(),
        terms=EpisodeTerms(),
        parser=parser,
        laboratory=laboratory,
    )
    actions: list[str] = []
    try:
        while episode.ending is None:
            hint = suite.oracle.hint(timeline, episode.session.state)
            actions.append(call_text(hint["tool"], hint["arguments"]))
            episode.step(actions[-1])
        return OracleSolution(tuple(actions), episode.verified, episode.ending.q_state)
    finally:
        episode.close()

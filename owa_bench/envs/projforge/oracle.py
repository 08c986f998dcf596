"""The part of the answer key that both suites share: marks, features, releases.

Source: docs/projforge.md#marks
"""

from collections.abc import Mapping
from typing import Any

from owa_bench.envs.projforge import forecasts
from owa_bench.envs.projforge.marks import quality
from owa_bench.interfaces import PropositionTruth, State, SubgoalNode
from owa_bench.records.instance import Timeline
from owa_bench.worlds.project import ProjectWorld

_Call = Mapping[str, Any]


class ProjectKey:
    """What both suites judge by: the marks; a node of the DAG is a feature."""

    def quality(self, timeline: Timeline, state: State) -> float:
        """Return q_state by docs/projforge.md#marks.

        Args:
            timeline: Plays no part.
            state: The last state.
        Returns: q_state.
        """
        return quality(state.world, state.marks)

    def subgoals(self, world: ProjectWorld) -> tuple[SubgoalNode, ...]:
        """Return a node a feature; an edge is a feature whose answer enters another."""
        return tuple(
            SubgoalNode(f.name, f.depth, (f.prerequisite,) if f.prerequisite else ())
            for f in world.features
        )

    def solved(self, world: ProjectWorld, state: State) -> frozenset[str]:
        """Return the features that were ever accepted.

        Args:
            world: Plays no part.
            state: The session's.
        Returns: Names of features.
        """
        ever: frozenset[str] = state.marks.ever
        return ever

    def gained(self, before: State, action: _Call, after: State) -> frozenset[str]:
        """Return features accepted for the first time, and a week's release.

        Args:
            before: The state before the action.
            action: Plays no part.
            after: The state after it.
        Returns: Names.
        """
        weeks = range(len(before.marks.releases), len(after.marks.releases))
        releases = {f"release/{w}" for w in weeks if after.marks.releases[w] > 0}
        new: frozenset[str] = after.marks.ever - before.marks.ever
        return new | releases

    def propositions(self, timeline: Timeline) -> tuple[PropositionTruth, ...]:
        """Return what becomes of each proposition on the project's weeks."""
        return forecasts.proposition_truths(timeline)

    def forecast(self, timeline: Timeline) -> _Call:
        """Return the call that states every truth before it is known to others."""
        truths = forecasts.proposition_truths(timeline)
        beliefs = {truth.name: float(truth.truth) for truth in truths}
        return {"tool": "forecast", "arguments": {"beliefs": beliefs}}

    def categories(self, world: ProjectWorld) -> tuple[str, ...]:
        """Return none: tools are not grouped."""
        return ()

"""The answer key: scores of the answers, a node an item, the next right answer.

Source: docs/recall.md#marks
"""

from collections.abc import Mapping
from typing import Any

from owa_bench.envs.recall.marking import given_as
from owa_bench.envs.recall.script import Card
from owa_bench.envs.recall.state import RecallState
from owa_bench.envs.recall.wording import SLOTS
from owa_bench.interfaces import PropositionTruth, SubgoalNode
from owa_bench.records.instance import Timeline
from owa_bench.worlds.recall import RecallWorld, Register


class RecallOracle:
    """Knows every key; q_state is the mean score of all items."""

    def quality(self, timeline: Timeline, state: RecallState) -> float:
        """Return the mean score of all items, unanswered ones 0.

        Args:
            timeline: Plays no part: answers were marked when they were given.
            state: The last state.
        Returns: q_state.
        """
        return min(sum(state.scores.values()) / state.script.world.items, 1.0)

    def subgoals(self, world: RecallWorld) -> tuple[SubgoalNode, ...]:
        """Return a node a link of a composition; other items are no plan."""
        nodes = []
        before = ""
        for exercise in world.exercises:
            needs = (before,) if exercise.chain > 1 else ()
            if exercise.chain:
                nodes.append(SubgoalNode(exercise.name, exercise.chain, needs))
            before = exercise.name
        return tuple(nodes)

    def solved(self, world: RecallWorld, state: RecallState) -> frozenset[str]:
        """Return the links that were answered in full.

        Args:
            world: Plays no part.
            state: The session's.
        Returns: Names of nodes.
        """
        return state.linked

    def gained(
        self, before: RecallState, action: Mapping[str, Any], after: RecallState
    ) -> frozenset[str]:
        """Return the nodes that an answer solved.

        Args:
            before: The state before the action.
            action: Plays no part.
            after: The state after it.
        Returns: Names of nodes.
        """
        return after.right - before.right

    def hint(self, timeline: Timeline, state: RecallState) -> Mapping[str, Any]:
        """Return the right answer to the present card.

        Args:
            timeline: Plays no part.
            state: The session's.
        Returns: "tool" and "arguments".
        """
        if state.over:
            return {"tool": "finish", "arguments": {"p": 1.0}}
        card = state.card
        if card.kind != "item":
            return {"tool": "go_on", "arguments": {}}
        return {"tool": "answer", "arguments": key_of(state, card)}

    def propositions(self, timeline: Timeline) -> tuple[PropositionTruth, ...]:
        """Return the claims of the first world, as they hold in the last one."""
        claims = timeline.worlds[0].claims
        if not claims:
            return ()
        register = Register(timeline.worlds[-1])
        return tuple(
            PropositionTruth(claim.name, claim.kind, register.truth(claim))
            for claim in claims
        )

    def categories(self, world: RecallWorld) -> tuple[str, ...]:
        """Return none: no item needs a tool."""
        return ()


def key_of(state: RecallState, card: Card) -> dict[str, Any]:
    """Return the arguments of the right answer.

    Args:
        state: The session's.
        card: An item.
    Returns: `values`, and `sources` for entries.
    """
    world, register = state.script.world, state.script.register
    if card.exercise is not None:
        exercise, form = card.exercise, world.answer_form
        plain = exercise.options
        key = [v if plain else given_as(v, form) for v in exercise.key]
        return {"values": key}
    question = card.question
    assert question is not None  # noqa: S101  an item is one of the two
    if question.kind in ("retrieve", "assisted"):
        moved = dict(world.moved)
        holding = register.in_force(question.subject, question.relation, question.day)
        return {
            "values": [given_as(n.value, world.answer_form) for n in holding[:SLOTS]],
            "sources": [moved.get(n.number, n.number) for n in holding[:SLOTS]],
        }
    return {"values": [given_as(register.value(question), world.answer_form)]}

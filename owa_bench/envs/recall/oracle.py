"""The answer key: marks by exact keys, a node an item, the next right answer.

Items with options are scored together by kind, so that an answer that is given blindly earns
nothing, however frequent the key is that it happens to name.

Source: docs/recall.md#marks
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from typing_extensions import override

from owa_bench.envs.recall.answers import comparable, given_as, is_key
from owa_bench.envs.recall.state import Card, RecallState
from owa_bench.envs.recall.wording import SLOTS
from owa_bench.envs.recall.world import AnswerForm, Exercise, Question, RecallWorld, Register
from owa_bench.interfaces import Oracle, PropositionTruth, SubgoalNode
from owa_bench.records.instance import Timeline


class Mark(NamedTuple):
    """The score of one answer in [0, 1], and what a retrieval returned.

    `entries` are its entries in order, each with whether it is verified; `contrary` counts those
    whose notice does not exist or does not say so.
    """

    score: float
    entries: tuple[tuple[str, bool], ...] = ()
    contrary: int | None = None
    relevant: int = 1


def mark(
    world: RecallWorld,
    register: Register,
    card: Card,
    values: Sequence[str],
    sources: Sequence[int],
) -> Mark:
    """Return the mark of an answer.

    Args:
        world: For its answer form.
        register: Of the same world.
        card: The item.
        values: The answer, in order.
        sources: Numbers of notices, one a value, for retrieval.
    """
    if card.exercise is not None:
        return Mark(float(_fits(card.exercise, values, world.answer_form)))
    question = card.question
    if question is None:
        return Mark(0.0)
    if question.kind in ("retrieve", "assisted"):
        return _mark_entries(world, register, question, values, sources)
    key = given_as(register.value(question), world.answer_form)
    return Mark(float(len(values) == 1 and is_key(values[0], key, world.answer_form)))


def _fits(exercise: Exercise, values: Sequence[str], form: AnswerForm) -> bool:
    key: Sequence[str] = exercise.key
    if not exercise.options:
        key = [given_as(value, form) for value in key]
    else:
        form = "plain"
    if len(values) != len(key):
        return False
    if exercise.unordered:
        values, key = (sorted(comparable(v, form) for v in it) for it in (values, key))
    return all(is_key(a, b, form) for a, b in zip(values, key, strict=True))


def _mark_entries(
    world: RecallWorld,
    register: Register,
    question: Question,
    values: Sequence[str],
    sources: Sequence[int],
) -> Mark:
    """Return the mark of a retrieval: verified slots times the share that is verified.

    An entry counts once: a value that was given before is not verified again, nor is the same value
    in other letter case or with quote marks.
    """

    def as_compared(value: str) -> str:
        return comparable(value, world.answer_form)

    holding = register.in_force(question.subject, question.relation, question.day)
    cited = dict(world.moved)
    right = {
        (as_compared(given_as(n.value, world.answer_form)), cited.get(n.number, n.number))
        for n in holding
    }
    first_number = {new: old for old, new in world.moved}
    entries: list[tuple[str, bool]] = []
    contrary = 0
    open_ = set(right)
    for place, value in enumerate(values):
        source = sources[place] if place < len(sources) else 0
        entry = (as_compared(value), source)
        entries.append((f"{' '.join(value.split())} [{source}]", entry in open_))
        open_.discard(entry)
        if entry in right:
            continue
        number = 0 if source in cited else first_number.get(source, source)
        notice = register.by_number.get(number)
        contrary += not (
            notice is not None
            and not notice.inverse
            and (notice.subject, notice.relation) == (question.subject, question.relation)
            and as_compared(given_as(notice.value, world.answer_form)) == entry[0]
        )
    verified = sum(is_right for _, is_right in entries)
    first = sum(is_right for _, is_right in entries[:SLOTS])
    score = first / SLOTS * (verified / len(entries)) if entries else 0.0
    return Mark(score, tuple(entries), contrary, len(holding))


def informedness(keys: Sequence[str], scores: Sequence[float | None]) -> float:
    """Return how far answers among options are above those of a blind agent.

    The mean over the m keys that occur of the share of their items that was answered rightly, from
    1/m (any constant answer) to 1. For "yes" and "no" this is the hit rate less the false-alarm
    rate, at least 0.

    Args:
        keys: The key of each item.
        scores: 1 for a right answer, 0 for another; None where there is no answer, which counts as
            a guess does.
    Returns: In [0, 1].
    Source: Youden 1950, Index for rating diagnostic tests; Powers 2011 for m keys.

    >>> informedness(["yes", "no", "no", "no"], [0, 1, 1, 1])  # always "no"
    0.0
    >>> round(informedness(["yes", "no", "no", "no"], [1, 1, 1, 0]), 6)  # 1 - 1/3
    0.666667
    """
    of_key: dict[str, list[float]] = {key: [] for key in keys}
    guess = 1 / len(of_key)
    for key, score in zip(keys, scores, strict=True):
        of_key[key].append(guess if score is None else score)
    mean = sum(sum(of) / len(of) for of in of_key.values()) / len(of_key)
    return max(0.0, (mean - guess) / (1 - guess)) if len(of_key) > 1 else mean


class RecallOracle(Oracle):
    """Knows every key; q_state is the mean score of all marked items."""

    @override
    def quality(self, timeline: Timeline, state: RecallState) -> float:
        """Return the mean score of all marked items, 0 where there is no answer.

        Items with options count with the informedness of all answers of their kind.
        """
        world, scores = state.script.world, state.scores
        chosen = [exercise for exercise in world.exercises if exercise.options]
        apart = {exercise.name for exercise in chosen}
        total = sum(score or 0.0 for n, score in scores.items() if n not in apart)
        of_kind = defaultdict[str, list[Exercise]](list)
        for exercise in chosen:
            if not exercise.unmarked:
                of_kind[exercise.kind].append(exercise)
        for of in of_kind.values():
            marks = [scores.get(exercise.name) for exercise in of]
            total += len(of) * informedness([e.key[0] for e in of], marks)
        return min(total / world.items, 1.0)

    @override
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

    @override
    def solved(self, world: RecallWorld, state: RecallState) -> frozenset[str]:
        """Return the links that were answered in full."""
        return state.linked

    @override
    def gained(
        self, before: RecallState, action: Mapping[str, Any], after: RecallState
    ) -> frozenset[str]:
        """Return the nodes that an answer solved."""
        return after.right - before.right

    @override
    def hint(self, timeline: Timeline, state: RecallState) -> Mapping[str, Any]:
        """Return the right answer to the present card."""
        if state.over:
            return {"tool": "finish", "arguments": {"p": 1.0}}
        card = state.card
        if card.kind != "item":
            return {"tool": "go_on", "arguments": {}}
        return {"tool": "answer", "arguments": key_of(state, card)}

    @override
    def propositions(self, timeline: Timeline) -> tuple[PropositionTruth, ...]:
        """Return the claims of the first world, as they hold in the last one."""
        claims = timeline.worlds[0].claims
        if not claims:
            return ()
        register = Register(timeline.worlds[-1])
        return tuple(
            PropositionTruth(claim.name, claim.kind, register.truth(claim)) for claim in claims
        )

    @override
    def categories(self, world: RecallWorld) -> tuple[str, ...]:
        """Return none: every item can be answered from what was shown before."""
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

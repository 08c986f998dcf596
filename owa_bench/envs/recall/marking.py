"""Marks of answers: exact keys, no model judges.

Source: docs/recall.md#marks
"""

from collections.abc import Sequence
from typing import NamedTuple

from owa_bench.envs.recall.script import Card
from owa_bench.envs.recall.wording import SLOTS, UNITS
from owa_bench.worlds.recall import (
    AnswerForm,
    Exercise,
    Question,
    RecallWorld,
    Register,
)


class Mark(NamedTuple):
    """The score of one answer in [0, 1], and what a retrieval returned.

    `entries` are its entries in order, each with whether it is verified; `contrary`
    counts those whose notice does not exist or does not say so.
    """

    score: float
    entries: tuple[tuple[str, bool], ...] = ()
    contrary: int | None = None
    relevant: int = 1


def given_as(value: str, form: AnswerForm) -> str:
    """Return a value as an answer of this form writes it; amounts stay.

    >>> given_as("brusk", "reversed"), given_as("24 pell", "reversed")
    ('ksurb', '24 pell')

    Args:
        value: A value of a key.
        form: How answers are written in this world.
    Returns: The text.
    """
    if form == "plain" or value.endswith(UNITS[1]):
        return value
    return value.upper() if form == "capitals" else value[::-1]


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
    Returns: The mark.
    """
    if card.exercise is not None:
        return Mark(float(_fits(card.exercise, values, world.answer_form)))
    question = card.question
    if question is None:
        return Mark(0.0)
    if question.kind in ("retrieve", "assisted"):
        return _mark_entries(world, register, question, values, sources)
    key = given_as(register.value(question), world.answer_form)
    return Mark(float(len(values) == 1 and _same(values[0], key, world.answer_form)))


def _fits(exercise: Exercise, values: Sequence[str], form: AnswerForm) -> bool:
    key: Sequence[str] = exercise.key
    if not exercise.options:
        key = [given_as(value, form) for value in key]
    else:
        form = "plain"
    if len(values) != len(key):
        return False
    if exercise.unordered:
        values, key = sorted(values), sorted(key)
    return all(_same(a, b, form) for a, b in zip(values, key, strict=True))


def _same(given: str, key: str, form: AnswerForm) -> bool:
    """Return whether an answer is the key; letter case counts for capitals alone."""
    given = " ".join(given.split())
    if key.endswith(UNITS[1]) and given.isdecimal():
        given = f"{given} {UNITS[1]}"
    if form == "capitals":
        return given == key
    return given.casefold() == key.casefold()


def _mark_entries(
    world: RecallWorld,
    register: Register,
    question: Question,
    values: Sequence[str],
    sources: Sequence[int],
) -> Mark:
    """Return the mark of a retrieval: verified slots times the share that is verified.

    An entry counts once: a value that was given before is not verified again.
    """
    holding = register.in_force(question.subject, question.relation, question.day)
    cited = dict(world.moved)
    right = {
        (given_as(n.value, world.answer_form), cited.get(n.number, n.number))
        for n in holding
    }
    first_number = {new: old for old, new in world.moved}
    entries: list[tuple[str, bool]] = []
    contrary = 0
    open_ = set(right)
    for place, value in enumerate(values):
        source = sources[place] if place < len(sources) else 0
        entry = (" ".join(value.split()), source)
        entries.append((f"{entry[0]} [{source}]", entry in open_))
        open_.discard(entry)
        if entry in right:
            continue
        number = 0 if source in cited else first_number.get(source, source)
        notice = register.by_number.get(number)
        contrary += not (
            notice is not None
            and not notice.inverse
            and (notice.subject, notice.relation)
            == (question.subject, question.relation)
            and given_as(notice.value, world.answer_form) == entry[0]
        )
    verified = sum(is_right for _, is_right in entries)
    first = sum(is_right for _, is_right in entries[:SLOTS])
    score = first / SLOTS * (verified / len(entries)) if entries else 0.0
    return Mark(score, tuple(entries), contrary, len(holding))

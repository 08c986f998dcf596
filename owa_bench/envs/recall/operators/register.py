"""Operators on what the register says, when it is asked for, and where it stands."""

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.drift.operator import operator
from owa_bench.drift.targets import named_part
from owa_bench.envs.recall.world import Notice, Question, RecallWorld, Register, issue, other_value

_LONGEST_SHIFT = 0.5  # of a lag, at intensity 1
_MOVED_BY = 50_000  # numbers between a notice's old place and its new one


def _lags(world: RecallWorld) -> tuple[str, ...]:
    return tuple(str(lag) for lag in sorted({q.lag for q in world.questions}))


@operator(
    announcement="D2", weight=0.5, targets=lambda world: tuple(f"lag/{lag}" for lag in _lags(world))
)
def lag_shift(world: RecallWorld, target: str, intensity: float) -> RecallWorld:
    """Ask later than usual, by up to half of a lag.

    Changes: the day of all questions of one lag.
    Leaves alone: notices, keys.
    Announcement: D2 (nobody tells; the day of a sitting shows it). Weight: 0.5.
    Raises: DriftError if `target` names no lag of the world.
    Source: docs/recall.md#operators.
    """
    lag = int(named_part(target, "lag", _lags(world)))
    later = max(1, round(_LONGEST_SHIFT * intensity * lag))

    def shifted(question: Question) -> Question:
        if question.lag != lag:
            return question
        return replace(question, day=question.day + later, lag=lag + later)

    moved = sorted(map(shifted, world.questions), key=lambda question: question.day)
    return replace(world, questions=tuple(moved))


def _cited(world: RecallWorld) -> tuple[str, ...]:
    known = {number for number, _ in world.moved}
    found = {question.subject for question in world.questions if question.kind == "retrieve"}
    gone = {n.subject for n in world.notices if n.number in known}
    return tuple(name for name in world.watched if name in found - gone)


@operator(
    announcement="D2",
    weight=0.7,
    targets=lambda world: tuple(f"source/{name}" for name in _cited(world)),
)
def source_moved(world: RecallWorld, target: str) -> RecallWorld:
    """Give the notices about a subject other numbers once all are issued.

    Changes: the numbers that citations must name.
    Leaves alone: notices as they were published.
    Announcement: D2 (an answer with an old number is refused with the new one).
        Weight: 0.7.
    Raises: DriftError if `target` names no subject whose notices are asked for.
    Source: docs/recall.md#operators.
    """
    name = named_part(target, "source", _cited(world))
    moved = tuple(
        (notice.number, notice.number + _MOVED_BY)
        for notice in world.notices
        if notice.subject == name
    )
    return replace(world, moved=(*world.moved, *moved))


def _recalled(world: RecallWorld) -> tuple[str, ...]:
    pairs = {
        f"{question.subject}/{question.relation}": None
        for question in world.questions
        if question.kind == "recall"
    }
    return tuple(pairs)


@operator(
    announcement="D3",
    weight=0.9,
    targets=lambda world: tuple(f"fact/{pair}" for pair in _recalled(world)),
)
def superseded_untold(world: RecallWorld, target: str, rng: Generator) -> RecallWorld:
    """Give an item a new value by a notice that does not say that it replaces one.

    Changes: the value in force from the day of the item's last change on.
    Leaves alone: the notices before it.
    Announcement: D3 (silent; the rule on numbers settles it). Weight: 0.9.
    Raises: DriftError if `target` names no item.
    Source: docs/recall.md#operators.
    """
    pair = named_part(target, "fact", _recalled(world))
    asked = next(
        question
        for question in world.questions
        if f"{question.subject}/{question.relation}" == pair
    )
    before = Register(world).value(asked)
    notice = Notice(
        number=0,
        day=asked.shown,
        subject=asked.subject,
        relation=asked.relation,
        value=other_value(world, asked.relation, [before], rng),
    )
    return issue(world, [notice], rng)

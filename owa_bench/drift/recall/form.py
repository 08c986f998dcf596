"""Operators on how things are written: answers, relations and amounts."""

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.errors import DriftError
from owa_bench.interfaces import operator
from owa_bench.seeding import pick
from owa_bench.worlds.recall import AnswerForm, RecallWorld
from owa_bench.worlds.recall_edits import named_part

_FORMS: tuple[AnswerForm, ...] = ("capitals", "reversed")
_LATER = {
    "port": "berth",
    "patron": "sponsor",
    "seal": "stamp",
    "guild": "league",
    "ferry": "skiff",
    "trade": "craft",
    "banner": "flag",
    "mentor": "teacher",
    "well": "cistern",
    "charter": "deed",
    "lodge": "hall",
    "token": "badge",
    "supplies": "provisions",
    "guards": "watches",
    "teaches": "instructs",
    "feeds": "nourishes",
    "escorts": "accompanies",
    "advises": "counsels",
    "toll": "levy",
}
_LARGE = 12  # pell in a dor


@operator(
    announcement="D1",
    weight=0.7,
    targets=lambda world: () if world.answer_form != "plain" else ("answers",),
)
def format_change(world: RecallWorld, target: str, rng: Generator) -> RecallWorld:
    """Ask for values in capitals or backwards.

    Changes: how free answers are written; the task says so.
    Leaves alone: options, amounts, notices.
    Announcement: D1 (the task of every sitting tells it). Weight: 0.7.
    Raises: DriftError for another target, or where the form has changed already.
    Source: docs/recall.md#operators.
    """
    if target != "answers" or world.answer_form != "plain":
        raise DriftError(f"`target` must be `answers`, in plain form, got `{target}`.")
    return replace(world, answer_form=pick(_FORMS, rng))


def _words(world: RecallWorld) -> tuple[str, ...]:
    known = {first for first, *_ in world.renamed}
    return tuple(r for r in world.relations if r in _LATER and r not in known)


@operator(
    announcement="D1",
    weight=1.0,
    targets=lambda world: tuple(f"word/{word}" for word in _words(world)),
)
def schema_revision(world: RecallWorld, target: str, rng: Generator) -> RecallWorld:
    """Call a relation by another word from a day of notices on.

    Changes: notices and questions from that day on; a line of that day tells it, once.
    Leaves alone: what holds.
    Announcement: D1 (told on a page that is shown once). Weight: 1.
    Raises: DriftError if `target` names no relation, or a renamed one.
    Source: docs/recall.md#operators.
    """
    word = named_part(target, "word", _words(world))
    days = sorted({notice.day for notice in world.notices})
    since = pick(days, rng)
    return replace(world, renamed=(*world.renamed, (word, _LATER[word], since)))


def _owners(world: RecallWorld) -> tuple[str, ...]:
    found = {notice.subject for notice in world.notices if notice.relation == "toll"}
    return tuple(name for name in world.watched if name in found)


@operator(
    announcement="D3",
    weight=0.5,
    targets=lambda world: tuple(f"amount/{name}" for name in _owners(world)),
)
def unit_of_fact(world: RecallWorld, target: str) -> RecallWorld:
    """Write a subject's amounts in the other unit.

    Changes: amounts of its notices, which name their unit.
    Leaves alone: the amounts themselves; the task's rule on units.
    Announcement: D3 (silent; the word of the unit settles it). Weight: 0.5.
    Raises: DriftError if `target` names no subject with amounts.
    Source: docs/recall.md#operators.
    """
    name = named_part(target, "amount", _owners(world))
    notices = tuple(
        replace(notice, per=_LARGE if notice.per == 1 else 1)
        if (notice.subject, notice.relation) == (name, "toll")
        else notice
        for notice in world.notices
    )
    return replace(world, notices=notices)

"""Operators on exercises: how things are written, and how much stands beside them."""

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.drift.operator import operator
from owa_bench.drift.targets import named_part
from owa_bench.envs.recall.world import AnswerForm, Notice, RecallWorld, issue, other_value
from owa_bench.errors import DriftError
from owa_bench.seeding import pick

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


# --- how much stands beside what is asked for -----------------------------------------


_VOWELS = "aeiou"
_MOST_KIN = 6  # statements about siblings at intensity 1
_MOST_SLIPS = 20  # slips a day at intensity 1
_PARTS = ("0", "1", "2", "3")  # quarters of the exercises
_NOISE = "Not part of any list: {words}."


def _subjects(world: RecallWorld) -> tuple[str, ...]:
    if world.reviews:
        return ()
    told = {notice.subject for notice in world.notices if not notice.rumour}
    return tuple(name for name in world.watched if name in told)


def _kin_targets(world: RecallWorld) -> tuple[str, ...]:
    if world.exercises:
        return tuple(f"kin/{part}" for part in _PARTS)
    return tuple(f"kin/{name}" for name in _subjects(world))


@operator(announcement="D0", weight=0.8, targets=_kin_targets)
def interference_load(
    world: RecallWorld, target: str, intensity: float, rng: Generator
) -> RecallWorld:
    """Tell more about a sibling of a subject, or words beside a quarter of the lists.

    Changes: up to six more statements about a name that differs in one vowel, on the
        days of the subject's own; or a page of words before every fourth exercise.
    Leaves alone: what holds for the subject; keys.
    Announcement: D0 (nothing asked for changes). Weight: 0.8.
    Raises: DriftError if `target` names no subject or quarter.
    Source: docs/recall.md#operators.
    """
    if world.exercises:
        part = int(named_part(target, "kin", _PARTS))
        words = ", ".join(f"{number}" for number in rng.integers(100, 999, size=8))
        noise = _NOISE.format(words=words)
        exercises = tuple(
            replace(exercise, pages=(noise, *exercise.pages))
            if place % len(_PARTS) == part
            else exercise
            for place, exercise in enumerate(world.exercises)
        )
        return replace(world, exercises=exercises)
    name = named_part(target, "kin", _subjects(world))
    place = max(name.rfind(vowel) for vowel in _VOWELS)
    vowel = _VOWELS[(_VOWELS.index(name[place]) + 1) % len(_VOWELS)]
    sibling = name[:place] + vowel + name[place + 1 :]
    own = [n for n in world.notices if n.subject == name and not n.rumour]
    count = max(1, round(_MOST_KIN * intensity))
    chosen = [own[i] for i in rng.integers(len(own), size=count).tolist()]
    told = [
        Notice(
            number=0,
            day=notice.day,
            subject=sibling,
            relation=notice.relation,
            value=other_value(world, notice.relation, [notice.value], rng),
        )
        for notice in chosen
    ]
    return issue(world, told, rng)


def _slip_targets(world: RecallWorld) -> tuple[str, ...]:
    days = {notice.day for notice in world.notices} if _subjects(world) else set()
    return tuple(f"slips/{day}" for day in sorted(days))


@operator(announcement="D0", weight=0.8, targets=_slip_targets)
def distractor_density(
    world: RecallWorld, target: str, intensity: float, rng: Generator
) -> RecallWorld:
    """Spread slips about the subjects on one day, with values that do not hold.

    Changes: up to 20 more slips, which have no authority.
    Leaves alone: notices and keys.
    Announcement: D0 (the rule on slips stands in the task). Weight: 0.8, parametric.
    Raises: DriftError if `target` names no day with notices.
    Source: docs/recall.md#operators.
    """
    days = [name.partition("/")[2] for name in _slip_targets(world)]
    day = int(named_part(target, "slips", days))
    own = [n for n in world.notices if n.subject in world.watched and not n.rumour]
    count = max(1, round(_MOST_SLIPS * intensity))
    slips = [
        Notice(
            number=0,
            day=day,
            subject=own[i].subject,
            relation=own[i].relation,
            value=other_value(world, own[i].relation, [own[i].value], rng),
            rumour=True,
        )
        for i in rng.integers(len(own), size=count).tolist()
    ]
    return issue(world, slips, rng)

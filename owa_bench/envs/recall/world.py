"""The world of the micro-battery (register, questions, exercises) and its edits.

A world is text and integers. The register says in which order notices were issued and which of them
withdraw others; `Register` derives from it what is in force on a day, so an operator that adds a
notice moves the key of every question with it.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.canonical import record_digest
from owa_bench.drift.targets import jaccard_distance

Form = Literal["A", "B", "C"]
AnswerForm = Literal["plain", "capitals", "reversed"]
QuestionKind = Literal["recall", "retrieve", "assisted", "without", "spaced"]
ClaimKind = Literal["supersession", "contradiction"]


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the register, issued on a day; numbers rise in order of issue.

    It states `value` of a subject's relation, or withdraws another notice. `inverse` swaps subject
    and value ("V feeds S"), `rumour` has no authority, `old` is the value that the wording says it
    replaces, `beside` a subject that the wording sets it off from, `per` the factor of the unit in
    which an amount is written.
    """

    number: int
    day: int
    subject: str = ""
    relation: str = ""
    value: str = ""
    withdraws: int = 0
    old: str = ""
    beside: str = ""
    inverse: bool = False
    rumour: bool = False
    style: int = 0
    per: int = 1


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question on the register, asked on `day`, `lag` days after `shown`.

    "recall": the value in force; "retrieve" and "assisted": values with the notices that state
    them; "without": the value had notice `without` never been issued; "spaced": a pair that may
    have been seen again since.
    """

    name: str
    kind: QuestionKind
    day: int
    lag: int
    shown: int
    subject: str
    relation: str
    without: int = 0
    style: int = 0


class Exercise(msgspec.Struct, frozen=True, kw_only=True):
    """A task within one sitting: pages to read, a prompt and its key.

    `span` is the length of the list to be kept, 0 where that is not measured. `options` are the
    answers that the prompt lists, () for a free answer. `chain` numbers the links of a composition
    from 1, 0 for a task of one step. `unordered` keys may be given in any order. `sign` is the
    number of the stimulus for the vector view. `unmarked` is asked and enters no score: its key
    follows from its place alone.
    """

    name: str
    kind: str
    prompt: str
    key: tuple[str, ...]
    pages: tuple[str, ...] = ()
    span: int = 0
    options: tuple[str, ...] = ()
    chain: int = 0
    unordered: bool = False
    sign: int = -1
    unmarked: bool = False


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A proposition about a subject's relation, of which an agent may state p.

    "supersession": the value first given is not in force on the last day; "contradiction": two
    notices give different values, withdrawn ones included.
    """

    name: str
    kind: ClaimKind
    subject: str
    relation: str


class RecallWorld(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that an episode shows and asks.

    `values` are those of each relation; `quota` the bytes of `memory_dir`; `reviews` how many pairs
    may be seen again on each of `review_days`; `renamed` the relations that carry another word from
    a day on; `moved` the notices that carry another number from the last study day on.
    """

    family: str
    tier: int
    form: Form
    code: str
    quota: int
    watched: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = {}
    notices: tuple[Notice, ...] = ()
    questions: tuple[Question, ...] = ()
    exercises: tuple[Exercise, ...] = ()
    claims: tuple[Claim, ...] = ()
    reviews: int = 0
    review_days: tuple[int, ...] = ()
    answer_form: AnswerForm = "plain"
    renamed: tuple[tuple[str, str, int], ...] = ()
    moved: tuple[tuple[int, int], ...] = ()

    @property
    def days(self) -> tuple[int, ...]:
        """The days of the sittings, in order."""
        days = {notice.day for notice in self.notices}
        days |= {question.day for question in self.questions} | {*self.review_days}
        return tuple(sorted(days)) or (0,)

    @property
    def items(self) -> int:
        """The number of questions and exercises that are marked."""
        marked = sum(not exercise.unmarked for exercise in self.exercises)
        return len(self.questions) + marked

    def digest(self) -> str:
        """Return the SHA-256 of the world."""
        return record_digest(self)


class Register:
    """The notices of a world by subject and relation."""

    def __init__(self, world: RecallWorld) -> None:
        self._pairs: defaultdict[tuple[str, str], list[Notice]] = defaultdict(list)
        self._withdrawn: dict[int, int] = {}  # number of a notice: day of withdrawal
        self._striking: dict[int, int] = {}  # number of a notice: of what withdrew it
        self.by_number = {notice.number: notice for notice in world.notices}
        for notice in world.notices:
            if notice.withdraws:
                self._withdrawn[notice.withdraws] = notice.day
                self._striking[notice.withdraws] = notice.number
            elif not (notice.rumour or notice.inverse):
                self._pairs[notice.subject, notice.relation].append(notice)

    def in_force(
        self, subject: str, relation: str, day: int, without: int = 0
    ) -> tuple[Notice, ...]:
        """Return the statements that hold on a day, in order of issue.

        The last of them is the value of a relation with one value.

        Args:
            subject: Of the statements.
            relation: Of the statements.
            day: Later notices do not count.
            without: Number of a notice that is taken as never issued, 0 for none.
        """
        return tuple(
            notice
            for notice in self._pairs.get((subject, relation), ())
            if notice.day <= day
            and notice.number != without
            and (
                self._withdrawn.get(notice.number, day + 1) > day
                or self._striking[notice.number] == without
            )
        )

    def value(self, question: Question) -> str:
        """Return the value that answers a question on one value."""
        statements = self.in_force(
            question.subject, question.relation, question.day, question.without
        )
        return statements[-1].value

    def truth(self, claim: Claim) -> bool:
        """Return whether a claim holds on the last day."""
        stated = self._pairs.get((claim.subject, claim.relation), [])
        if claim.kind == "contradiction":
            return len({notice.value for notice in stated}) > 1
        last = max(notice.day for notice in self.by_number.values())
        holding = self.in_force(claim.subject, claim.relation, last)
        return holding[-1].value != stated[0].value


def distance(a: RecallWorld, b: RecallWorld) -> float:
    """Return the share of notices, questions and exercises in which worlds differ.

    Args:
        a: One world.
        b: The other.
    Returns: The Jaccard distance of their entries and rules: 0 for equal worlds.
    """
    return jaccard_distance(_entries(a), _entries(b))


def _entries(world: RecallWorld) -> set[object]:
    rules = (("answer_form", world.answer_form), *world.renamed, *world.moved)
    return {*world.notices, *world.questions, *world.exercises, *rules}


_STYLES = 1 << 16


def issue(world: RecallWorld, notices: Sequence[Notice], rng: Generator) -> RecallWorld:
    """Return the world with more notices, each the last of its day.

    Args:
        world: A world with a register.
        notices: Without numbers and styles.
        rng: Draws the sentences.
    Returns: The world; numbers still rise in order of issue.
    """
    last: dict[int, int] = {}
    for notice in world.notices:
        last[notice.day] = max(last.get(notice.day, 0), notice.number)
    styles = rng.integers(_STYLES, size=len(notices)).tolist()
    added = []
    for notice, style in zip(notices, styles, strict=True):
        last[notice.day] += 1
        added.append(replace(notice, number=last[notice.day], style=style))
    every = sorted((*world.notices, *added), key=lambda notice: notice.number)
    return replace(world, notices=tuple(every))


def other_value(world: RecallWorld, relation: str, values: Sequence[str], rng: Generator) -> str:
    """Return a value of a relation that is none of some.

    Args:
        world: Knows the values.
        relation: One of its relations.
        values: Those that are left out.
        rng: Draws among the others.
    """
    free = [value for value in world.values[relation] if value not in values]
    return free[int(rng.integers(len(free)))]

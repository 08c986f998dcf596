"""Signed files about persons: norms of those who played, and ratings of open texts.

A norms file is the signed JSON of one `Norms`. It is a pure function of the runs that it names, so
whoever has them can make it again. Ratings are one rater's scores under a rubric. Source:
docs/people.md#norms, docs/people.md#judge.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from owa_bench.canonical import key_id, peek, unseal
from owa_bench.errors import CheckFailure, UsageError
from owa_bench.records.layout import ATTENDANCE_TYPE, NORMS_TYPE, RATINGS_TYPE
from owa_bench.records.plan import Plan
from owa_bench.records.registry import Registry

# --- norms ----------------------------------------------------------------------------


_DISTINCT = ("person", "evidence_root")
Group = Literal["adults", "experts"]
Cells = tuple[tuple[int, float], ...]  # (tier, magnitude), in order


class NormFigure(msgspec.Struct, frozen=True, kw_only=True):
    """One quantity over persons: mean, sd, t interval, median, its interval.

    `low` and `high` bound the mean; `median_low` and `median_high` are the widest order statistics
    that are needed, and hold the median with at least `coverage`. None where there are too few
    persons.
    """

    persons: int
    mean: float
    sd: float | None
    low: float | None
    high: float | None
    median: float
    median_low: float
    median_high: float
    coverage: float


class Attendance(msgspec.Struct, frozen=True, kw_only=True):
    """The word of somebody who watched: this person played this run, alone."""

    schema: Literal["owa-attendance-1"] = "owa-attendance-1"
    person: str
    plan_digest: str
    evidence_root: str
    public_key: str


class PersonRun(msgspec.Struct, frozen=True, kw_only=True):
    """A verified run of one person.

    `step_s` is the median over episodes of seconds an action, as the harness measured;
    `attendances` are the signed envelopes of those who say that they watched.
    """

    person: str
    evidence_root: str
    plan_digest: str
    key_id: str
    scripted: bool
    episodes: int
    step_s: float
    attendances: tuple[str, ...] = ()


class NormTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What was played: versions by suite, tiers and magnitudes by "suite/family"."""

    protocol_digest: str
    calendar: str
    steps: int | None
    versions: Mapping[str, int]
    cells: Mapping[str, Cells]


class HumanNorms(msgspec.Struct, frozen=True, kw_only=True):
    """A norms file.

    `families` holds the quality of persons by "suite/family", `axes` their raw statistics by
    symbol, `thresholds` their span, delayed recall and core score. `baseline` has (value, low,
    high) of a baseline agent by symbol. `group` is who the persons are, as whoever made the file
    says.
    """

    schema: Literal["owa-norms-1"] = "owa-norms-1"
    group: Group
    terms: NormTerms
    runs: tuple[PersonRun, ...]
    families: Mapping[str, NormFigure]
    axes: Mapping[str, NormFigure]
    thresholds: Mapping[str, NormFigure]
    baseline_root: str = ""
    baseline: Mapping[str, tuple[float, float | None, float | None]] = {}
    public_key: str = ""

    @property
    def synthetic(self) -> bool:
        """Whether a program played for any of the persons."""
        return any(run.scripted for run in self.runs)


def watchers_of(run: PersonRun, registry: Registry | None) -> tuple[str, ...]:
    """Return who of a registry watched a person play.

    Args:
        run: The person's run.
        registry: Whose watchers count; None: nobody's.
    Returns: Their names; the word of the key that signed the run itself is none.
    """
    if registry is None:
        return ()
    words = (read_attendance(envelope.encode()) for envelope in run.attendances)
    keys = [word.public_key for word in words if word and _is_of(word, run)]
    return tuple(dict.fromkeys(filter(None, map(registry.watcher_of, keys))))


def _is_of(word: Attendance, run: PersonRun) -> bool:
    """Return whether somebody else than its submitter says that they watched a run."""
    said = (word.person, word.plan_digest, word.evidence_root)
    asked = (run.person, run.plan_digest, run.evidence_root)
    return said == asked and key_id(bytes.fromhex(word.public_key)) != run.key_id


def read_attendance(envelope: bytes) -> Attendance | None:
    """Return what somebody who watched has signed, None if the signature fails."""
    try:
        word = msgspec.json.decode(peek(envelope), type=Attendance)
        unseal(envelope, bytes.fromhex(word.public_key), ATTENDANCE_TYPE)
    except (msgspec.DecodeError, ValueError, CheckFailure):
        return None
    return word


def unattended(norms: HumanNorms, registry: Registry | None) -> tuple[str, ...]:
    """Return the persons of norms whom nobody of a registry watched.

    Args:
        norms: The norms.
        registry: Whose watchers count; None: nobody's.
    Returns: Their names; with one of them the norms enter no gate.
    """
    return tuple(run.person for run in norms.runs if not watchers_of(run, registry))


def read_norms(envelope: bytes, name: str) -> HumanNorms:
    """Return the norms of a file whose signature holds.

    Args:
        envelope: Bytes of the file.
        name: Name of the file, for the message.
    Returns: The norms; whose key signed them is for the reader to judge.
    Raises: UsageError: It is no norms file, or was changed after it was signed.
    """
    try:
        norms = msgspec.json.decode(peek(envelope), type=HumanNorms)
        unseal(envelope, bytes.fromhex(norms.public_key), NORMS_TYPE)
        _refuse_more_persons(norms)
    except (msgspec.DecodeError, ValueError, CheckFailure) as error:
        fault = str(error).rstrip(".")
        raise UsageError(
            f"{name} must be a signed norms file (owa-norms-1), got: {fault}. "
            "Make one with `owa-bench norms RUN..`."
        ) from error
    return norms


def _refuse_more_persons(norms: HumanNorms) -> None:
    """Raise ValueError where a figure claims more persons than runs are named."""
    most = min(len({getattr(run, f) for run in norms.runs}) for f in _DISTINCT)
    figures = (norms.families, norms.axes, norms.thresholds)
    for name, found in (pair for kind in figures for pair in kind.items()):
        if found.persons > most:
            raise ValueError(f"`{name}` is of {found.persons} persons, {most} are named")


def terms_of_plan(plan: Plan) -> NormTerms:
    """Return what a plan has played without help, under its own calendar."""
    cells: dict[str, set[tuple[int, float]]] = {}
    for entry in plan.entries:
        plain = not (entry.calendar or entry.condition or entry.tools_off)
        if plain and entry.interventions == 0 and entry.delta is not None:
            family = f"{entry.suite}/{entry.family}"
            cells.setdefault(family, set()).add((entry.tier, entry.delta))
    return NormTerms(
        protocol_digest=plan.protocol_digest,
        calendar=plan.calendar,
        steps=plan.budget.steps,
        versions={suite.name: suite.version for suite in plan.suites},
        cells={name: tuple(sorted(found)) for name, found in sorted(cells.items())},
    )


def terms_fault(terms: NormTerms, other: NormTerms, *, whole: bool) -> str:
    """Return the first term in which two differ, "" where none does.

    Args:
        terms: Of the norms.
        other: Of a run.
        whole: Whether every suite and family must be in both; else one that both have is enough.
    Returns: The term with both values.
    """
    shared = set(terms.cells) & set(other.cells)
    if not shared:
        return f"no family is in both: {_names(terms)} and {_names(other)}"
    if whole and set(terms.cells) != set(other.cells):
        return f"families {_names(terms)}, and {_names(other)}"
    for suite in sorted(set(terms.versions) & set(other.versions)):
        one, two = terms.versions[suite], other.versions[suite]
        if one != two:
            return f"suite `{suite}` version {one}, and version {two}"
    for name in ("protocol_digest", "calendar", "steps"):
        one, two = getattr(terms, name), getattr(other, name)
        if one != two:
            return f"`{name}` {one}, and {two}"
    for family in sorted(shared):
        if terms.cells[family] != other.cells[family]:
            return f"(tier, magnitude) of {family} {terms.cells[family]}, and {other.cells[family]}"
    return ""


def refuse_other_terms(norms: HumanNorms, plan: Plan) -> None:
    """Raise UsageError where persons played under other terms than a run.

    Args:
        norms: The norms.
        plan: The run's plan.
    """
    fault = terms_fault(norms.terms, terms_of_plan(plan), whole=False)
    if fault:
        raise UsageError(
            f"Norms and run must have the same terms; persons and run have {fault}. "
            "Let persons play the run's own suite, tiers, magnitudes and protocol."
        )


def _names(terms: NormTerms) -> str:
    return ", ".join(terms.cells) or "none"


# --- ratings of open texts ------------------------------------------------------------


Score = Annotated[int, msgspec.Meta(ge=-1000, le=1000)]


class Rubric(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rubric: the question, what each score means, and which text is rated.

    The text is `argument` of the last call of `tool` in an episode.
    """

    schema: Literal["owa-rubric-1"]
    name: str
    question: str
    scores: Annotated[dict[str, str], msgspec.Meta(min_length=2)]
    metric: Literal["nominal", "interval"] = "nominal"
    tool: str = "finish"
    argument: str = "answer"


class RaterScores(msgspec.Struct, frozen=True, kw_only=True):
    """One rater's score of every item by its attempt, under one rubric."""

    schema: Literal["owa-ratings-1"] = "owa-ratings-1"
    rater: str
    rubric: Rubric
    evidence_root: str
    scores: dict[str, Score]
    public_key: str = ""


def read_ratings(envelope: bytes, name: str) -> RaterScores:
    """Return the scores in a file whose signature holds.

    Args:
        envelope: Bytes of the file.
        name: Name of the file, for the message.
    Raises: UsageError: It is no such file, or was changed after it was signed.
    """
    try:
        ratings = msgspec.json.decode(peek(envelope), type=RaterScores)
        unseal(envelope, bytes.fromhex(ratings.public_key), RATINGS_TYPE)
    except (msgspec.DecodeError, ValueError, CheckFailure) as error:
        raise UsageError(
            f"{name} must be signed ratings (owa-ratings-1), got: {error}. "
            "Make them with `owa-bench judge`."
        ) from error
    return ratings

"""Long-term storage (Gls): facts told over days, asked 1, 7 and 28 days later.

Facts are superseded, withdrawn so that the one before holds again, and told of persons whose names
differ in one letter. Each item is asked at every lag, in a sitting of its own, without tools.
"""

from typing import Any, NamedTuple

from owa_bench.envs.recall.draws import LAGS, STUDY_DAYS, Draws, Statement, numbered
from owa_bench.envs.recall.world import Claim, ClaimKind, Question

_ITEMS_A_DAY = 14
_NOTICES = (150, 360, 480, 600)
_SUPERSEDED = (0.2, 0.35, 0.5, 0.6)  # share of items with values before the present
_WITHDRAWN = (0.05, 0.1, 0.15, 0.2)  # share of items that go back to an earlier value
_LONGEST = (2, 2, 3, 3)  # statements of a superseded item, at most
_SUBJECTS, _RELATIONS = 9, 5
_SIBLINGS = 2
_POOL = 24  # values of a relation: they recur among subjects
_CLAIMS: tuple[ClaimKind, ...] = ("supersession", "contradiction") * 2
_ASIDE = (0.0, 0.2, 0.3, 0.4)  # share of statements that set a sibling apart
TOLL = "toll"  # the relation whose values are amounts
_NOUNS = (
    *("port", "patron", "seal", "guild", "ferry", "trade", "banner", "mentor"),
    *("well", "charter", "lodge", "token"),
)


class RegisterCast(NamedTuple):
    """The subjects of a register, their siblings, relations and values."""

    watched: tuple[str, ...]
    siblings: dict[str, tuple[str, ...]]
    others: tuple[str, ...]
    relations: tuple[str, ...]
    values: dict[str, tuple[str, ...]]
    large: frozenset[str]  # subjects whose amounts are written in the large unit


def draw(draws: Draws) -> dict[str, Any]:
    """Return the content of a world."""
    people = population(draws, draws.by_tier(_NOTICES) // 12)
    statements, finals = chains(draws, people, len(STUDY_DAYS) * _ITEMS_A_DAY)
    statements += filler(draws, people, draws.by_tier(_NOTICES) - len(statements))
    _, notices = numbered(statements, draws)
    return {
        **fields(people),
        "notices": notices,
        "questions": _questions(draws, finals),
        "claims": _claims(draws, finals),
    }


def fields(people: RegisterCast) -> dict[str, Any]:
    """Return the fields of a world that hold its population."""
    return {"watched": people.watched, "relations": people.relations, "values": people.values}


def population(draws: Draws, others: int) -> RegisterCast:
    """Return who and what a register is about.

    Args:
        draws: Of the world.
        others: Number of subjects that no question names.
    """
    lexicon = draws.lexicon
    watched = lexicon.names(_SUBJECTS)
    nouns = [_NOUNS[i] for i in draws.order(len(_NOUNS))[: _RELATIONS - 1]]
    values = {noun: lexicon.words(_POOL) for noun in nouns}
    values[TOLL] = tuple(f"{12 * (i + 2)} pell" for i in range(_POOL))
    siblings = {name: lexicon.siblings(name, _SIBLINGS) for name in watched}
    unknown = lexicon.names(others)
    people = (*watched, *(kin for group in siblings.values() for kin in group), *unknown)
    units = draws.rng.integers(2, size=len(people)).tolist()
    return RegisterCast(
        watched=watched,
        siblings=siblings,
        others=unknown,
        relations=(*nouns, TOLL),
        values=values,
        large=frozenset(n for n, unit in zip(people, units, strict=True) if unit),
    )


class Pair(NamedTuple):
    """An item: its chain, the day of its last change, and its number of statements."""

    chain: int
    subject: str
    relation: str
    day: int
    length: int
    withdrawn: bool


def chains(draws: Draws, people: RegisterCast, count: int) -> tuple[list[Statement], list[Pair]]:
    """Return the statements about the items, and the items.

    Args:
        draws: Of the world.
        people: Its population.
        count: How many items.
    Returns: Statements without numbers; items with the day of their last change.
    """
    superseded, withdrawn = draws.by_tier(_SUPERSEDED), draws.by_tier(_WITHDRAWN)
    pairs = [(s, r) for s in people.watched for r in people.relations]
    chosen = [pairs[i] for i in draws.order(len(pairs))[:count]]
    kinds = draws.rng.random(count).tolist()
    depths = draws.rng.integers(2, draws.by_tier(_LONGEST) + 1, size=count).tolist()
    statements: list[Statement] = []
    finals: list[Pair] = []
    for chain, (subject, relation) in enumerate(chosen):
        day = chain % len(STUDY_DAYS)
        is_withdrawn = kinds[chain] < withdrawn
        longer = is_withdrawn or kinds[chain] < withdrawn + superseded
        length = depths[chain] if longer else 1
        pair = Pair(chain, subject, relation, STUDY_DAYS[day], length, is_withdrawn)
        statements += statements_of(draws, people, pair, day)
        finals.append(pair)
    return statements, finals


def statements_of(draws: Draws, people: RegisterCast, pair: Pair, last: int) -> list[Statement]:
    """Return the statements of one item, a withdrawal at the end where it has one.

    Args:
        draws: Of the world.
        people: Its population.
        pair: The item.
        last: Place of the study day of its last change.
    Returns: Statements without numbers.
    """
    days = sorted(draws.rng.integers(last + 1, size=pair.length).tolist())
    days[-1] = last
    terms = wordings(draws, people, pair.subject, pair.relation, pair.length)
    found = [
        Statement(STUDY_DAYS[day], pair.chain, place, term)
        for place, (day, term) in enumerate(zip(days, terms, strict=True))
    ]
    if pair.withdrawn:
        day = STUDY_DAYS[last]
        place = pair.length - 1
        found.append(Statement(day, pair.chain, pair.length, {}, place))
    return found


def wordings(
    draws: Draws, people: RegisterCast, subject: str, relation: str, length: int
) -> list[dict[str, Any]]:
    """Return what successive statements on one pair say.

    Args:
        draws: Of the world.
        people: Its population.
        subject: Of the pair.
        relation: Of the pair.
        length: Number of statements; each has another value than the one before.
    Returns: Fields of notices.
    """
    pool, found = people.values[relation], []
    start, before = int(draws.rng.integers(len(pool))), ""
    siblings = people.siblings.get(subject, ())
    for place in range(length):
        value = pool[(start + 7 * place) % len(pool)]
        aside, says = draws.rng.random(2).tolist()
        terms: dict[str, Any] = {"subject": subject, "relation": relation, "value": value}
        if siblings and aside < draws.by_tier(_ASIDE):
            terms["beside"] = siblings[place % len(siblings)]
        if before and says < 0.5:  # half of the changes say so
            terms["old"] = before
        if relation == TOLL and subject in people.large:
            terms["per"] = 12
        found.append(terms)
        before = value
    return found


def filler(draws: Draws, people: RegisterCast, count: int) -> list[Statement]:
    """Return statements about siblings and others, which no question asks for.

    Args:
        draws: Of the world.
        people: Its population.
        count: How many.
    Returns: Statements, each a chain of its own.
    """
    kin = [(name, other) for name in people.watched for other in people.siblings[name]]
    subjects = [other for _, other in kin]
    relations = people.relations
    picks = draws.rng.integers(1 << 30, size=(max(count, 0), 3)).tolist()
    found = []
    for number, (who, what, when) in enumerate(picks):
        pool = subjects if number % 2 else people.others
        terms = wordings(draws, people, pool[who % len(pool)], relations[what % len(relations)], 1)
        day = STUDY_DAYS[when % len(STUDY_DAYS)]
        found.append(Statement(day, -1 - number, 0, terms[0]))
    return found


def _questions(draws: Draws, finals: list[Pair]) -> tuple[Question, ...]:
    styles = draws.styles(len(finals) * len(LAGS))
    order = draws.order(len(finals))
    questions = [
        Question(
            name=f"i{pair.chain}",
            kind="recall",
            day=pair.day + lag,
            lag=lag,
            shown=pair.day,
            subject=pair.subject,
            relation=pair.relation,
            style=styles.pop(),
        )
        for lag in LAGS
        for pair in (finals[i] for i in order)
    ]
    return tuple(sorted(questions, key=lambda question: question.day))


def _claims(draws: Draws, finals: list[Pair]) -> tuple[Claim, ...]:
    """Return claims about different items; before any drift a quarter of them hold."""
    left = [finals[i] for i in draws.order(len(finals))]
    claims = []
    for number, kind in enumerate(_CLAIMS):
        wanted = bool(draws.rng.integers(4) == 0)
        fitting = [pair for pair in left if _holds(kind, pair) == wanted]
        pair = (fitting or left)[0]
        left.remove(pair)
        claims.append(
            Claim(name=f"{kind}/{number}", kind=kind, subject=pair.subject, relation=pair.relation)
        )
    return tuple(claims)


def _holds(kind: ClaimKind, pair: Pair) -> bool:
    """Return whether a claim on an item holds before any drift."""
    withdrawn = pair.withdrawn and kind == "supersession"
    return pair.length - withdrawn > 1

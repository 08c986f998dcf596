"""Retrieval (Glr): five entries a question, each with the notice that states it.

Besides the entries in force the register holds, for each question, withdrawn ones, the same verb of
a sibling, entries with the roles exchanged, and slips that repeat the words of the question. The
last questions are asked with search and open on offer.
"""

from typing import Any

from owa_bench.envs.recall.draws import LAGS, STUDY_DAYS, Draws, Statement, numbered
from owa_bench.envs.recall.world import Question, QuestionKind

_SUBJECTS = (12, 10, 8, 6)
_ASSISTED = 4  # questions about siblings, with tools
_RELEVANT = (5, 8)  # entries in force of a question, from and below
_SIBLING = 5  # entries of its sibling
_WITHDRAWN, _INVERSE, _RUMOURS = 2, 2, 2
_OTHERS = (0, 8, 24, 48)  # subjects that nobody asks for, five entries each
_VERBS = ("supplies", "guards", "teaches", "feeds", "escorts", "advises")
_POOL = 60


def draw(draws: Draws) -> dict[str, Any]:
    """Return the content of a world."""
    watched = draws.lexicon.names(draws.by_tier(_SUBJECTS))
    others = draws.lexicon.names(draws.by_tier(_OTHERS))
    verbs = [_VERBS[i] for i in draws.order(len(_VERBS))[:3]]
    values = draws.lexicon.words(_POOL)
    chains: list[list[dict[str, Any]]] = []  # what each says; None withdraws
    questions: list[Question] = []
    for number, name in enumerate(watched):
        sibling, verb = draws.lexicon.siblings(name, 1)[0], verbs[number % len(verbs)]
        pool = iter([values[i] for i in draws.order(_POOL)])
        count = int(draws.rng.integers(*_RELEVANT))
        own = {"subject": name, "relation": verb}
        chains += [[{**own, "value": next(pool)}] for _ in range(count)]
        chains += [[{**own, "value": next(pool)}, {}] for _ in range(_WITHDRAWN)]
        chains += [[{**own, "value": next(pool), "inverse": True}] for _ in range(_INVERSE)]
        chains += [[{**own, "value": next(pool), "rumour": True}] for _ in range(_RUMOURS)]
        kin = {"subject": sibling, "relation": verb}
        chains += [[{**kin, "value": next(pool)}] for _ in range(_SIBLING)]
        questions += [_question(f"q{number}", "retrieve", own, lag) for lag in LAGS]
        if number < _ASSISTED:
            questions.append(_question(f"a{number}", "assisted", kin, LAGS[-1]))
    for number, name in enumerate(others):
        terms = {"subject": name, "relation": verbs[number % len(verbs)]}
        picks = draws.order(_POOL)[:_SIBLING]
        chains += [[{**terms, "value": values[i]}] for i in picks]
    _, notices = numbered(_dated(draws, chains), draws)
    return {
        "watched": watched,
        "relations": tuple(verbs),
        "values": dict.fromkeys(verbs, values),
        "notices": notices,
        "questions": tuple(sorted(questions, key=_order)),
    }


def _dated(draws: Draws, chains: list[list[dict[str, Any]]]) -> list[Statement]:
    """Return the statements of all chains, each on a study day or the one before."""
    days = draws.rng.integers(len(STUDY_DAYS), size=(len(chains), 2)).tolist()
    found = []
    for chain, (said, pair) in enumerate(zip(chains, days, strict=True)):
        for place, (terms, day) in enumerate(zip(said, sorted(pair), strict=False)):
            strikes = -1 if terms else place - 1
            found.append(Statement(STUDY_DAYS[day], chain, place, terms, strikes))
    return found


def _question(name: str, kind: QuestionKind, terms: dict[str, Any], lag: int) -> Question:
    last = STUDY_DAYS[-1]
    return Question(name=name, kind=kind, day=last + lag, lag=lag, shown=last, **terms)


def _order(question: Question) -> tuple[int, bool]:
    return question.day, question.kind == "assisted"

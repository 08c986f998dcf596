"""Counterfactuals: the register as it would be had one notice never been issued.

The notice is the last one in force (the value before it would hold), one that withdrew another
(that one would hold), or an earlier one (nothing would change).
"""

from typing import Any

from owa_bench.envs.recall.draws import LAGS, STUDY_DAYS, Draws, numbered
from owa_bench.envs.recall.families import learning
from owa_bench.envs.recall.world import Question

_ITEMS = 24
_NOTICES = (80, 120, 200, 300)
_LAG = LAGS[0]


def draw(draws: Draws) -> dict[str, Any]:
    """Return the content of a world."""
    people = learning.population(draws, draws.by_tier(_NOTICES) // 12)
    chains: list[Any] = []
    pairs: list[learning.Pair] = []
    wanted = [(s, r) for s in people.watched for r in people.relations]
    for chain, at in enumerate(draws.order(len(wanted))[:_ITEMS]):
        subject, relation = wanted[at]
        last, kind = len(STUDY_DAYS) - 1, chain % 3
        length = 3 if kind == 2 else 2
        day = STUDY_DAYS[last]
        pair = learning.Pair(chain, subject, relation, day, length, kind == 1)
        chains += learning.statements_of(draws, people, pair, last)
        pairs.append(pair)
    chains += learning.filler(draws, people, draws.by_tier(_NOTICES) - len(chains))
    numbers, notices = numbered(chains, draws)
    return {
        **learning.fields(people),
        "notices": notices,
        "questions": tuple(_question(pair, numbers) for pair in pairs),
    }


def _question(pair: learning.Pair, numbers: dict[tuple[int, int], int]) -> Question:
    """Return a question on the last statement, the withdrawal, or the first one."""
    place = {0: pair.length - 1, 1: pair.length, 2: 0}[pair.chain % 3]
    return Question(
        name=f"c{pair.chain}",
        kind="without",
        day=pair.day + _LAG,
        lag=_LAG,
        shown=pair.day,
        subject=pair.subject,
        relation=pair.relation,
        without=numbers[pair.chain, place],
    )

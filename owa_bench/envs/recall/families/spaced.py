"""Spaced repetition: pairs told once, seen again by the agent's own choice.

On each later study day the agent names some pairs to see again; all are asked on the last day. The
lag of a probe is the days since its pair was last seen, so what is measured depends on the schedule
and enters no axis.
"""

from typing import Any

from owa_bench.envs.recall.draws import Draws, Statement, numbered
from owa_bench.envs.recall.world import Question

_REVIEW_DAYS = (2, 4, 8, 15)
_RELATION = "pair"
_LAST_DAY = 29
_PAIRS = (24, 32, 48, 64)
_REVIEWS = (12, 12, 16, 16)


def draw(draws: Draws) -> dict[str, Any]:
    """Return the content of a world."""
    count = draws.by_tier(_PAIRS)
    cues, values = draws.lexicon.names(count), draws.lexicon.words(count)
    statements = [
        Statement(pair % 2, pair, 0, {"subject": cue, "relation": _RELATION, "value": value})
        for pair, (cue, value) in enumerate(zip(cues, values, strict=True))
    ]
    _, notices = numbered(statements, draws)
    questions = tuple(
        Question(
            name=f"s{pair}",
            kind="spaced",
            day=_LAST_DAY,
            lag=_LAST_DAY - pair % 2,
            shown=pair % 2,
            subject=cues[pair],
            relation=_RELATION,
        )
        for pair in draws.order(count)
    )
    return {
        "watched": cues,
        "relations": (_RELATION,),
        "values": {_RELATION: values},
        "notices": notices,
        "questions": questions,
        "reviews": draws.by_tier(_REVIEWS),
        "review_days": _REVIEW_DAYS,
    }

"""Every change to the judge of visits is noticed, but for those that change nothing.

    python -m pytest tests/envs/changesurf/oracle/test_goal_mutants.py

The mutants are of goal.py, what notices them are the questions of goal_questions.py.
"""

from pathlib import Path

import pytest

from owa_bench.envs.changesurf.oracle import goal
from tests.builders import changesurf_worlds as worlds
from tests.builders import goal_questions
from tests.builders.mutants import mutants

# Line by line the same function, so nothing can tell them apart.
SAME = {
    "True -> 2": "zip takes any true value for `strict`",
    "each.before or {} -> each.before": "a row with a key to keep was there before",
}
SAME_FILTER = "_, place"  # None in the set of places is the place of no row
VISITS = (
    ("depot/buy", 3),
    ("stay/change", 3),
    ("stay/book", 2),
    ("ledger/total", 3),
    ("permit/withdraw", 1),
)
LEAST = 80  # mutants; fewer would mean that the maker of them has broken


@pytest.mark.slow
def test_every_mutant_of_the_judge_is_noticed():
    ends = [worlds.walked(worlds.instance(f, tier, 3)).state for f, tier in VISITS]
    assert not any(goal_questions.faults(goal, state) for state in ends)
    made = list(mutants(Path(goal.__file__)))
    alive = [
        f"{mutant.line}: {mutant.change}"
        for mutant in made
        if not any(goal_questions.faults(mutant.module, state) for state in ends)
    ]
    assert len(made) >= LEAST
    strange = [
        text for text in alive if text.partition(": ")[2] not in SAME and SAME_FILTER not in text
    ]
    assert strange == []
    assert len(alive) <= 4

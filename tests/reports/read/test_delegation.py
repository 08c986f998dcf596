"""The answer: what an agent does alone, under drift and with help, by hand-made episodes."""

import pytest
from msgspec.structs import replace

from owa_bench.records.events import Intervention
from owa_bench.records.instance import ANNOUNCEMENTS
from owa_bench.records.score import FrontierScore
from owa_bench.reports.read.delegation import (
    CLASS_WORDS,
    NO_DRIFT,
    delegations,
    frontier_words,
    next_command,
)
from tests.builders.episodes import drift, episode
from tests.builders.report_record import verdict


def won(index, *, delta=0.0, won=True, task=None, **more):
    """Return an episode of its own task that succeeds or fails."""
    made = {"q_state": 1.0 if won else 0.0, "delta": delta, **more}
    return episode(index=index, pair=task or f"p{index}", **made)


def answer(*traces):
    return delegations(traces)["agent"]


def test_alone_drifted_and_helped_are_three_numbers():
    told = answer(
        *(won(i) for i in range(3)),
        *(won(10 + i, delta=0.5, won=i == 0) for i in range(4)),
        *(won(20 + i, delta=0.5, priced=True, interventions=2) for i in range(2)),
    )
    assert (told.still.brief, told.drifted.brief, told.helped.brief) == (
        "3 of 3",
        "1 of 4",
        "2 of 2",
    )
    assert told.still.share == 1.0
    assert told.sentence == (
        "Alone it does 3 of 3 tasks when nothing changes and 1 of 4 at drift 0.5. With at "
        "most 2 interventions it does 2 of 2 tasks; it took none."
    )


def test_help_is_told_by_what_may_be_asked_for():
    def helped(start, limits, **more):
        return [won(start + i, interventions=limit, **more) for i, limit in enumerate(limits)]

    shares = helped(20, (2, 5, 5), priced=True)
    told = answer(won(0), *shares, *helped(30, (None, None), won=False))
    assert told.sentence == (
        "Alone it does 1 of 1 task when nothing changes. With at most 2 to 5 interventions, by "
        "task, it does 3 of 3 tasks and 0 of 2 with help without a limit; it took none."
    )
    many = answer(*helped(20, (1,)), *helped(30, (2,)), *helped(40, (3,)))
    assert "With help to ask for it does 3 of 3 tasks" in many.sentence


def test_a_pooled_success_would_hide_it():
    """Half of all: an agent that does everything undrifted, and nothing once it drifts."""
    failed = (won(9 + i, delta=1.0, won=False) for i in range(4))
    told = answer(*(won(i) for i in range(4)), *failed)
    assert (told.still.share, told.drifted.share) == (1.0, 0.0)


@pytest.mark.parametrize(
    "outside",
    [
        {"phase": "practice"},
        {"condition": "after", "window": (0, 1)},
        {"control": True},
        {"honeypot": True},
        {"calendar": "nested:Label"},
        {"delta": None, "day": 1, "phase": "practice"},
    ],
)
def test_episodes_that_no_axis_reads_tell_nothing(outside):
    """An agent that did well in practice alone would be delegated to."""
    told = answer(won(0, won=False), *(won(i, **outside) for i in range(1, 9)))
    assert told.still.words == "0 of 1 task"
    assert told.helped is None


def test_episodes_of_one_task_are_said_as_such():
    told = answer(*(won(i, task="same", repeat=i) for i in range(3)))
    assert told.still.words == "3 of 3 episodes of 1 task"
    assert told.still.interval.low is None


def test_help_counts_where_it_was_given_and_not_where_it_was_refused():
    def helped(index, kind):
        given = Intervention(step=1, kind=kind, minutes=1.0)
        return won(index, priced=True, interventions=2, extra=(given,))

    told = answer(won(0), helped(1, "hint"), helped(2, "refused"))
    assert told.asked == 1
    assert told.sentence.endswith(
        "2 interventions it does 2 of 2 tasks; it took help in 1 of them."
    )


def test_an_episode_stands_under_the_hardest_class_that_struck():
    both = (drift("a", "D1"), drift("b", "D3"))
    told = answer(won(0), won(1, delta=0.5, won=False, extra=both), won(2, delta=0.5))
    assert [(name, count.brief) for name, count in told.classes] == [
        (NO_DRIFT, "2 of 2"),
        ("D3", "0 of 1"),
    ]
    assert set(CLASS_WORDS) == {NO_DRIFT, *ANNOUNCEMENTS}


def test_the_largest_magnitude_is_told_where_the_usual_ones_were_not_played():
    told = answer(won(0), won(1, delta=0.1, won=False), won(2, delta=0.25))
    assert "1 of 1 at drift 0.25" in told.sentence


def test_a_frontier_in_words():
    assert frontier_words(FrontierScore(target=0.8)) == ""
    assert "does not reach 0.8" in frontier_words(FrontierScore(target=0.8, deleg=0.0))
    assert frontier_words(FrontierScore(target=0.8, deleg=0.42, deleg_cert=0.1)) == (
        "Its success stays at 0.8 or more over 0.42 of the way from full help to none (lower bound "
        "0.10)."
    )


def test_the_command_that_decides_a_level_can_be_pasted():
    """The one of a language model ended in an error: a plan does not hold its address."""
    spec = "language-model:model=big,temperature=0"
    one = replace(verdict("model", 0.5), agent=spec)
    assert next_command(one) == f"owa-bench place {spec} --model-url URL --out runs/placed"
    own = replace(verdict("mine", 0.5), agent="python3 my model.py")
    assert next_command(own) == "owa-bench place 'python3 my model.py' --out runs/placed"

"""The agent over episodes: it gets better by its own trials and only by its memory."""

import json
from pathlib import Path
from statistics import fmean

from playing import Played, instance, play

from owa_bench.agents.self_improving import revisions
from owa_bench.agents.self_improving.revisions import BEGINNER, Notebook

EPISODES = 6


def practise(memory: Path, episodes: int = EPISODES) -> list[Played]:
    return [
        play("self_improving", instance("reconcile", seed=1000 + i), memory)
        for i in range(episodes)
    ]


def decisions(played: list[Played]) -> list[str]:
    return [
        move.revision.decision for one in played for move in one.moves if move.revision is not None
    ]


def test_practice_turns_a_habit_on_and_the_quality_rises(tmp_path: Path) -> None:
    played = practise(tmp_path)
    assert decisions(played) == ["proposed", "adopted"]
    assert revisions.load_notebook(tmp_path).habits.pages
    seeds = range(40, 44)
    before = [play("self_improving", instance(seed=s), tmp_path / f"new {s}") for s in seeds]
    after = [play("self_improving", instance(seed=s), tmp_path) for s in seeds]
    rise = fmean(one.ending.q_state for one in after) - fmean(one.ending.q_state for one in before)
    assert rise > 0.3


def test_an_agent_without_its_memory_stays_a_beginner(tmp_path: Path) -> None:
    for number in range(3):
        played = play("self_improving", instance(seed=number), tmp_path / str(number))
        assert decisions([played]) == []
        assert revisions.load_notebook(tmp_path / str(number)).habits == BEGINNER


def test_a_trial_leaves_the_answer_to_the_adopted_habits(tmp_path: Path) -> None:
    practise(tmp_path, 2)
    assert revisions.load_notebook(tmp_path).trials
    given = instance("reconcile", seed=7)
    tried = play("self_improving", given, tmp_path)
    plain = play("self_improving", given, tmp_path / "fresh")
    assert tried.ending.q_state == plain.ending.q_state
    assert len(tried.actions) > len(plain.actions)
    rests = [
        sum(action == {"tool": "wait", "arguments": {"seconds": 60}} for action in told)
        for told in (tried.actions, plain.actions)
    ]
    assert rests == [1, 0]  # the first run's requests do not weigh on the second


def test_equal_lives_leave_equal_notebooks(tmp_path: Path) -> None:
    for name in "ab":
        practise(tmp_path / name, 4)
    one, other = ((tmp_path / name / revisions.FILE).read_bytes() for name in "ab")
    assert one == other


def test_a_spoilt_notebook_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / revisions.FILE).write_text('{"habits": 3}')
    assert revisions.load_notebook(tmp_path) == Notebook()
    assert play("self_improving", instance(), tmp_path).ending is not None
    assert json.loads((tmp_path / revisions.FILE).read_text())["signs"]


def test_the_supervisors_answers_set_the_odds_straight(tmp_path: Path) -> None:
    """Asked with help, the beginner learns how seldom its short lists are right."""
    for seed in range(4):
        given = instance("reconcile", seed=100 + seed)
        played = play("self_improving", given, tmp_path, hints=None)
        assert played.ending.q_state == 1.0
    table = revisions.load_notebook(tmp_path).table
    assert sum(asked for _, asked in table.values()) == 4
    assert sum(right for right, _ in table.values()) == 0

"""Proposals from signs, trials by pairs, decisions by a bet."""

import dataclasses
from itertools import product

import msgspec
import pytest

from owa_bench.agents.self_improving import revisions
from owa_bench.agents.self_improving.revisions import BEGINNER, Notebook, RevisionTrial
from owa_bench.agents.solvers.api_solver.http_session import ALL_SKILLS, SkillConfig

SWITCHES = {f.name for f in dataclasses.fields(SkillConfig) if f.default is True}
SWITCHES -= {"grants"}  # no switch turns tokens on: a connector is worked out


def proposed(sign: str = "short") -> Notebook:
    notebook = Notebook()
    for _ in range(revisions.LEAST_SIGNS):
        notebook = revisions.count_signs(notebook, [sign])
    notebook, event = revisions.propose(notebook)
    assert event is not None
    return notebook


def after(notebook: Notebook, pairs: str) -> tuple[Notebook, str | None]:
    """Return the notebook after pairs written +, - and =, and the last decision."""
    decision = None
    for pair in pairs:
        new = {"+": 1.0, "-": 0.0, "=": 0.5}[pair]
        [trial] = notebook.trials
        notebook, event = revisions.record_pair(notebook, trial, 0.5, new)
        decision = event.decision if event else None
    return notebook, decision


def test_every_skill_is_off_at_first_and_may_be_learned() -> None:
    assert not any(getattr(BEGINNER, name) for name in SWITCHES)
    assert all(getattr(ALL_SKILLS, name) for name in SWITCHES)
    assert {h for cures in revisions.REMEDIES.values() for h in cures} == SWITCHES


def test_one_sign_is_not_enough_for_a_proposal() -> None:
    notebook = revisions.count_signs(Notebook(), ["short"])
    assert revisions.propose(notebook) == (notebook, None)


def test_the_commonest_sign_is_answered() -> None:
    notebook = Notebook(signs={"short": 2, "gone": 3})
    opened, event = revisions.propose(notebook)
    assert [trial.habit for trial in opened.trials] == ["searches"]
    assert event.decision == "proposed"
    assert len(event.plan) == len(event.diff) == 64


def test_only_one_change_is_tried_for_a_sign() -> None:
    notebook = proposed("short")
    busy = msgspec.structs.replace(notebook, signs={"short": 9})
    assert revisions.propose(busy) == (busy, None)


def test_a_goal_serves_the_trial_of_a_sign_that_it_shows() -> None:
    """A trial whose sign does not come neither blocks the others nor is decided."""
    notebook = msgspec.structs.replace(proposed("limited"), signs={"short": 2})
    notebook, _ = revisions.propose(notebook)
    for _ in range(3):
        trial = revisions.relevant_trial(notebook, ["short"])
        assert trial.habit == "pages"
        notebook, event = revisions.record_pair(notebook, trial, 0.0, 1.0)
    assert event.decision == "adopted"
    assert [trial.habit for trial in notebook.trials] == ["waits"]
    assert revisions.relevant_trial(notebook, ["gone"]) is None


def test_trials_of_one_sign_take_turns() -> None:
    notebook = Notebook(signs={"renamed": 2})
    notebook, _ = revisions.propose(notebook)
    waiting = msgspec.structs.replace(notebook.trials[0], habit="weighs")
    notebook = msgspec.structs.replace(notebook, trials=(*notebook.trials, waiting))
    order = []
    for _ in range(4):
        trial = revisions.relevant_trial(notebook, ["renamed"])
        order.append(trial.habit)
        notebook, _ = revisions.record_pair(notebook, trial, 0.5, 0.5)
    assert order == ["guesses", "weighs", "guesses", "weighs"]


def test_a_change_that_wins_is_adopted_and_nothing_else_changes() -> None:
    notebook, decision = after(proposed(), "+++")
    assert decision == "adopted"
    assert notebook.habits == dataclasses.replace(BEGINNER, pages=True)
    assert notebook.trials == ()
    assert notebook.signs == {}


@pytest.mark.parametrize("pairs", ["--", "-=-", "=" * 16, "+-+-+-"])
def test_a_change_without_a_clear_gain_is_rejected(pairs: str) -> None:
    notebook, decision = after(proposed(), pairs)
    assert decision == "rejected"
    assert notebook.habits == BEGINNER
    assert notebook.resting == ("pages",)


def test_a_rejected_change_rests_until_another_is_adopted() -> None:
    notebook, _ = after(proposed(), "--")
    again = msgspec.structs.replace(notebook, signs={"short": 5})
    assert revisions.propose(again)[0].trials[0].habit == "repages"
    adopted, _ = after(revisions.propose(again)[0], "+++")
    later = msgspec.structs.replace(adopted, signs={"short": 5})
    [trial] = revisions.propose(later)[0].trials
    assert trial.habit == "pages"
    assert trial.needed == 2 / revisions.ALPHA


def test_a_change_of_no_effect_is_adopted_no_more_often_than_declared() -> None:
    """Every order of eight fair pairs, counted out."""
    orders = list(product("+-", repeat=revisions.MOST_LOOKS))
    adopted = 0
    for order in orders:
        notebook, decision = proposed(), None
        for pair in order:
            notebook, decision = after(notebook, pair)
            if not notebook.trials:
                break
        adopted += decision == "adopted"
    assert 0 < adopted / len(orders) <= revisions.ALPHA


def test_a_trial_names_the_plan_it_was_opened_with() -> None:
    [first], [second] = proposed("short").trials, proposed("gone").trials
    assert isinstance(first, RevisionTrial)
    assert first.plan != second.plan
    assert first.diff != second.diff

"""Stages of AAI-2: their order, what they decide, and what ends them, by planted lines."""

import pytest

from owa_bench.records.placement import FIRST_PRACTICE, LEVELS
from owa_bench.scoring.placement.rule import CAP, GO_ON, OPEN
from tests.builders.placements import STAGES, Played, small_rule, stage_line


@pytest.fixture
def rule(tmp_path):
    return small_rule(tmp_path, STAGES)


def stages(looks):
    return [look.batch.stage for look in looks if look.batch.stage]


def test_stages_come_after_the_gates_of_both_levels_on_the_pool(rule):
    looks = rule.replay(Played(1.0))
    assert stages(looks) == [FIRST_PRACTICE, "shares", "days"]
    assert looks[-1].decision == f"AAI-{LEVELS[-1]}"
    before = looks[[look.batch.stage for look in looks].index(FIRST_PRACTICE)]
    assert {line.key for line in before.gates} == {
        *((1, "A"), (1, "P"), (1, "tools"), (2, "A"), (2, "P"))
    }
    assert {line.status for line in before.gates} == {"PASS"}


def test_a_stage_is_announced_whole_and_holds_worlds_of_its_own(rule):
    looks = {look.batch.stage: look.batch for look in rule.replay(Played(1.0))}
    pool = {entry.pair for entry in rule.pool_plan.entries}
    for stage in rule.stages:
        assert looks[stage.name].indices == tuple(stage.indices)
        own = [rule.plan.entries[index] for index in stage.indices]
        assert not pool & {entry.pair for entry in own}


def test_gates_of_the_pool_decide_aai_2_before_any_stage(rule):
    """It passes AAI-1 and lies under what AAI-2 asks of P."""
    values = {"A": 1.0, "P": 0.4, "G": 1.0, "tools": 1.0}
    looks = rule.replay(Played(values))
    assert stages(looks) == []
    assert looks[-1].decision in ("below AAI-2", CAP)
    assert {line.status for line in looks[-1].gates if line.level == 1} == {"PASS"}


@pytest.mark.parametrize(
    ("planted", "played", "decision"),
    [
        ({FIRST_PRACTICE: {"kappa": "BELOW"}}, [FIRST_PRACTICE], "below AAI-2"),
        ({"W": "BELOW"}, [FIRST_PRACTICE, "shares"], "below AAI-2"),
        ({"T": "UNDECIDED"}, [FIRST_PRACTICE, "shares"], CAP),
        ({"$": "NO EVIDENCE"}, [FIRST_PRACTICE, "shares"], CAP),
        ({"kappa": "UNDECIDED"}, [FIRST_PRACTICE, "shares", "days"], CAP),
    ],
)
def test_a_stage_that_does_not_pass_ends_it(rule, planted, played, decision):
    looks = rule.replay(Played(1.0, stages=planted))
    assert stages(looks) == played
    assert looks[-1].decision == decision


def test_a_stage_that_was_begun_is_judged_when_it_is_whole(rule):
    first = next(stage for stage in rule.stages if stage.name == "shares")
    answers = [i for i in range(len(rule.plan.entries)) if i != first.first]
    looks = rule.replay(Played(1.0, answers=answers))
    assert looks[-1].decision == OPEN
    assert looks[-1].open == (first.first,)
    assert not any(line.stage for line in looks[-1].gates)


def test_a_stage_that_was_announced_and_not_begun_stands_announced(rule):
    stage = next(stage for stage in rule.stages if stage.name == "shares")
    answers = [i for i in range(len(rule.plan.entries)) if i not in stage.indices]
    last = rule.replay(Played(1.0, answers=answers))[-1]
    assert (last.decision, last.batch.stage) == (GO_ON, "shares")


def test_the_rule_upto_aai_1_stops_there(rule):
    looks = rule.upto(1).replay(Played(1.0))
    assert looks[-1].decision == "AAI-1"
    assert stages(looks) == []
    whole = rule.replay(Played(1.0))
    assert [look.batch for look in looks[:-1]] == [look.batch for look in whole[: len(looks) - 1]]
    assert whole[len(looks) - 1].passed(1)


def test_each_level_has_its_own_bar_of_a_below(rule):
    assert rule.bar_below_of(1) == 3 * rule.bar
    assert rule.bar_below_of(2) == 7 * rule.bar
    assert stage_line("W", "shares", "PASS").key == (2, "W")

"""The rule of a placement: batches, three answers, lost worlds, stops, by planted values."""

import math

import pytest

from owa_bench.records.placement import BAR
from owa_bench.scoring.placement.rule import CAP, GO_ON, NOTHING, OPEN, TOO_FEW
from owa_bench.scoring.placement.worlds import LOST, MILD, PLAIN, PRICED
from tests.builders.placements import Played, small_rule


@pytest.fixture
def rule(tmp_path):
    return small_rule(tmp_path)


def line(look, gate):
    return next(line for line in look.gates if line.gate == gate)


def test_the_first_look_announces_one_world_of_each_family(rule):
    first = rule.replay(Played(1.0))[0]
    assert [world.family for world in first.batch.worlds] == [*rule.worlds]
    assert first.batch.reads == ("A", "G", "P", "tools")
    entries = [rule.plan.entries[index] for index in first.batch.indices]
    assert {entry.interventions for entry in entries} == {0, "protocol"}


def test_an_agent_that_always_succeeds_is_placed(rule):
    looks = rule.replay(Played(1.0))
    assert looks[-1].decision == "AAI-1"
    assert looks[-1].batch.indices == ()
    assert {line.status for line in looks[-1].gates} == {"PASS"}
    assert all(line.log_pass >= math.log(BAR) for line in looks[-1].gates)


def test_an_agent_that_always_fails_is_below_and_the_run_stops_there(rule):
    looks = rule.replay(Played(0.0))
    assert looks[-1].decision == "below AAI-1"
    assert all(look.decision == GO_ON for look in looks[:-1])
    assert any(line.status == "BELOW" for line in looks[-1].gates)


def test_below_needs_evidence_over_all_gates_of_the_level(rule):
    for look in rule.replay(Played(0.0)):
        for gate in look.gates:
            assert (gate.status == "BELOW") == (gate.log_below >= math.log(BAR * 4))


def test_an_agent_between_is_undecided_when_the_pool_is_used_up(rule):
    middle = {"A": 0.5, "P": 1.0, "G": 1.0, "tools": 1.0}
    last = rule.replay(Played(middle))[-1]
    assert last.decision == CAP
    assert line(last, "A").status == "UNDECIDED"
    assert line(last, "A").low < 0.5 < line(last, "A").high


def test_a_gate_that_has_its_answer_is_not_played_on(rule):
    slow = {"A": 1.0, "P": 1.0, "G": 1.0, "tools": 0.62}
    looks = rule.replay(Played(slow))
    late = looks[-2].batch
    assert late.reads == ("tools",)
    assert {rule.plan.entries[index].delta for index in late.indices} == {0.25}


def test_each_world_is_one_bet_whatever_its_episodes(rule):
    looks = rule.replay(Played(1.0))
    assert line(looks[1], "A").worlds == len(looks[0].batch.worlds)
    assert len(looks[0].batch.indices) > 2 * len(looks[0].batch.worlds)


def test_a_look_rests_on_nothing_that_came_later(rule):
    whole = rule.replay(Played({"A": 0.7, "P": 0.7, "G": 0.7, "tools": 0.7}))
    first = whole[0].batch.indices
    part = rule.replay(Played({"A": 0.7, "P": 0.7, "G": 0.7, "tools": 0.7}, answers=first))
    assert len(part) == 2
    assert part == whole[:2]


def test_a_batch_that_was_not_begun_is_not_held_against_anybody(rule):
    looks = rule.replay(Played(1.0, answers=()))
    assert [look.decision for look in looks] == [GO_ON]


def test_a_batch_that_stands_open_counts_what_is_missing_as_lost(rule):
    batch = rule.replay(Played(1.0))[0].batch
    *kept, _ = batch.indices
    looks = rule.replay(Played(1.0, answers=kept))
    assert looks[-1].decision == OPEN
    assert looks[-1].open == batch.indices[-1:]
    whole = rule.replay(Played(1.0))[1]
    worse = [a.log_pass < b.log_pass for a, b in zip(looks[-1].gates, whole.gates, strict=True)]
    assert any(worse)


def test_a_lost_world_weighs_against_pass_and_against_below(rule):
    batch = rule.replay(Played(1.0))[0].batch
    world = batch.worlds[0]
    lost = {("A", world.episodes[PRICED]): LOST}
    for usual in (1.0, 0.0):
        with_it = line(rule.replay(Played(usual, lost))[1], "A")
        without = line(rule.replay(Played(usual))[1], "A")
        assert with_it.log_pass <= without.log_pass
        assert with_it.log_below <= without.log_below


def test_the_second_plan_of_a_submitter_needs_twice_the_evidence(tmp_path):
    one, two = small_rule(tmp_path), small_rule(tmp_path, plans=2)
    first, second = one.replay(Played(1.0)), two.replay(Played(1.0))
    assert second[-1].gates[0].bar == 2 * BAR
    assert len(second) >= len(first)
    assert all(line.log_pass >= math.log(2 * BAR) for line in second[-1].gates)


def test_pass_asks_for_the_mean_and_not_only_for_evidence_at_the_slack(rule):
    under = {"A": 0.49, "P": 1.0, "G": 1.0, "tools": 1.0}
    last = rule.replay(Played(under))[-1]
    assert line(last, "A").status == "UNDECIDED"


def test_too_few_kinds_of_tools_pass_no_gate_of_tools(rule):
    looks = rule.replay(Played(1.0, kinds={"browser": 0.0}))
    assert line(looks[0], "tools").note == "0 of 1 kinds of tools"
    assert line(looks[-1], "tools").status == "UNDECIDED"
    assert line(looks[-1], "tools").log_pass >= math.log(BAR)
    assert rule.replay(Played(1.0, kinds={"browser": 0.5}))[-1].decision == "AAI-1"


def test_it_stops_where_too_few_kinds_of_tools_are_to_be_expected(rule, monkeypatch):
    """Success alone passes no gate: nobody pays for a pool that can only show more of it."""
    lacking = Played(1.0, kinds={"browser": 0.0})
    looks = rule.replay(lacking)
    last, played = looks[-1], sum(len(look.batch.indices) for look in looks)
    assert (last.decision, last.batch) == (TOO_FEW, NOTHING)
    words = f"0 of 1 kinds of tools: none; browser in 0 of {played} worlds of a suite"
    assert line(last, "tools").note == words
    monkeypatch.setattr("owa_bench.scoring.placement.kinds.KIND_TRIES", 10_000)
    whole = rule.replay(lacking)[-1]
    assert whole.decision == CAP
    assert sum(whole.counts.values()) > 2 * sum(last.counts.values())


def test_tools_are_played_on_for_a_below_whatever_the_kinds(rule):
    less = {"A": 1.0, "P": 1.0, "G": 1.0, "tools": 0.59}
    assert rule.replay(Played(less, kinds={"browser": 0.0}))[-1].decision == CAP
    enough = {**less, "tools": 0.61}
    assert rule.replay(Played(enough, kinds={"browser": 0.0}))[-1].decision == TOO_FEW
    none = {**less, "tools": 0.0}
    assert rule.replay(Played(none, kinds={"browser": 0.0}))[-1].decision == "below AAI-1"


def test_a_gate_that_is_given_up_leaves_the_others_to_be_played(rule):
    middle = {"A": 0.5, "P": 1.0, "G": 1.0, "tools": 1.0}
    looks = rule.replay(Played(middle, kinds={"browser": 0.0}))
    assert looks[-1].decision == CAP  # of A, which is at what it asks for
    assert looks[-2].batch.reads == ("A",)


def test_generality_bets_on_a_family_only_after_it_looked_covered(rule):
    looks = rule.replay(Played(1.0))
    assert line(looks[1], "G").log_pass == 0.0
    assert line(looks[2], "G").log_pass > 0.0


def test_a_world_is_played_at_its_own_magnitude_and_at_mild_drift(rule):
    for worlds in rule.worlds.values():
        for world in worlds:
            entries = rule.plan.entries
            plain, priced = (entries[world.episodes[kind]] for kind in (PLAIN, PRICED))
            assert plain.delta == priced.delta
            if world.family.startswith("toolquest"):
                assert entries[world.episodes[MILD]].delta == 0.25


def test_the_gate_of_tools_reads_the_suites_whose_tasks_need_tools(rule):
    assert set(rule.weights["tools"]) == {"toolquest/reconcile", "toolquest/restock"}
    assert set(rule.weights["A"]) == set(rule.worlds)
    batch = rule.replay(Played(1.0))[0].batch
    recall = [e for e in map(rule.plan.entries.__getitem__, batch.indices) if e.suite == "recall"]
    assert len(recall) == 2  # with and without help, and no third under mild drift


def test_the_key_draws_which_worlds_come_first(rule):
    """Who is good at the first worlds of the pool's list alone gains nothing by it."""
    orders = [rule.with_key(str(key)).order for key in range(200)]
    assert rule.with_key("7").order == orders[7]
    for family, worlds in rule.worlds.items():
        assert sorted(orders[0][family]) == [*range(len(worlds))]
        first = [order[family][0] for order in orders]
        assert len(set(first)) > len(worlds) // 2
    one, other = (rule.with_key(key).replay(Played(1.0)) for key in ("a", "b"))
    assert one[0].batch != other[0].batch


def test_tiers_and_magnitudes_are_crossed_in_a_family(rule):
    for family, worlds in rule.worlds.items():
        cells = {
            (rule.plan.entries[w.episodes[PLAIN]].tier, rule.plan.entries[w.episodes[PLAIN]].delta)
            for w in worlds
        }
        tiers = 2 if family.startswith("toolquest") else 1
        assert len(cells) == 6 * tiers

"""Dates in the rule of a placement: means by date, how many are needed, when it waits."""

import numpy as np
import pytest
from msgspec.structs import replace

from owa_bench.records.placement import DateMean, GateLine, rule_digest
from owa_bench.scoring.placement.dates import (
    WAIT,
    BatchDate,
    date_mean,
    dates_words,
    is_below,
    passes,
)
from owa_bench.scoring.placement.rule import CAP, PlacementRule
from owa_bench.scoring.statistics.betting import NO_BETS, Bets
from tests.builders.placements import LOST, Played, small_rule


def line(status, *values, worlds=5):
    dates = tuple(DateMean(worlds=worlds, least=x, most=x) for x in values)
    return GateLine(
        gate="A",
        worlds=0,
        mean=None,
        required=0.5,
        low=0.0,
        high=1.0,
        log_pass=0.0,
        log_below=0.0,
        bar=20.0,
        status=status,
        dates=dates,
    )


@pytest.fixture
def rule(tmp_path):
    """The rule of a small pool whose agent can be another tomorrow."""
    one = small_rule(tmp_path)
    plan = replace(one.plan, placement=replace(one.plan.placement, dates=3))
    return PlacementRule(plan, one.protocol)


def test_a_date_is_the_weighted_mean_over_what_is_required():
    """Worlds 1, 0 with weights 1 and .5: 1 / 1.5 - .6; the lost one is 0, and then 1."""
    low, high = np.array([1.0, 0.0]), np.array([1.0, 1.0])
    found = date_mean(Bets(low, high, np.zeros(2), np.array([1.0, 0.5])), 0.6)
    assert found == DateMean(worlds=2, least=0.066667, most=0.4)


def test_a_date_of_a_ratio_leaves_out_what_was_not_possible():
    """Solved .3 of .4 possible depth (P): .75 - .3."""
    found = date_mean(Bets(*(np.array([x]) for x in (0.3, 0.3, 0.6, 1.0))), 0.3)
    assert (found.least, found.most) == (0.45, 0.45)


def test_a_date_without_a_bet_is_on_neither_side():
    nothing = date_mean(NO_BETS, 0.6)
    assert nothing == DateMean(worlds=0, least=0.0, most=0.0)
    below = replace(line("BELOW", -0.1, -0.1), dates=(nothing, *line("BELOW", -0.1, -0.1).dates))
    assert is_below(below, 3)


def test_three_dates_and_three_more_for_each_against():
    assert not passes(line("PASS", 0.1, 0.1), 3)
    assert passes(line("PASS", 0.1, 0.1, 0.0), 3)
    assert not passes(line("PASS", 0.1, 0.1, -0.01, 0.1, 0.1), 3)
    assert passes(line("PASS", 0.1, 0.1, -0.01, 0.1, 0.1, 0.1), 3)
    assert dates_words(line("PASS", 0.1, -0.1), 3) == "2 of 6 dates, 1 of them against it"
    assert is_below(line("BELOW", -0.1, -0.1, -0.01), 3)
    assert not is_below(line("BELOW", -0.1, -0.1, 0.0), 3)


def test_dates_alone_decide_nothing():
    for status in ("UNDECIDED", "BELOW"):
        assert not passes(line(status, 0.1, 0.1, 0.1), 3)
    for status in ("UNDECIDED", "PASS"):
        assert not is_below(line(status, -0.1, -0.1, -0.1), 3)


def test_a_program_needs_no_dates():
    assert passes(line("PASS"), 1)
    assert is_below(line("BELOW"), 1)


def test_every_date_is_one_batch_that_all_gates_read(rule):
    looks = rule.replay(Played(1.0))
    assert [look.decision for look in looks[:3]] == ["go on", WAIT, WAIT]
    assert looks[-1].decision == "AAI-1"
    assert len(looks) >= 4
    for look in looks[:-1]:
        assert look.batch.reads == ("A", "G", "P", "tools")
        assert len(look.batch.worlds) == len(rule.worlds)


def test_an_agent_that_fails_is_below_when_its_dates_are_there_and_not_before(rule):
    plan = replace(rule.plan, placement=replace(rule.plan.placement, dates=6))
    looks = PlacementRule(plan, rule.protocol).replay(Played(0.0))
    first = next(k for k, look in enumerate(looks) if "BELOW" in {g.status for g in look.gates})
    assert first < 6
    assert [look.decision for look in looks[first:6]] == [WAIT] * (6 - first)
    assert looks[6].decision == "below AAI-1"


def test_one_date_that_is_against_it_takes_three_more(rule):
    """Ten worlds won for one lost are evidence enough, whatever day they are of."""
    plain = rule.replay(Played(1.0))
    day = plain[1].batch.worlds
    bad = {("A", world.episodes["priced"]): 0.0 for world in day}
    looks = rule.replay(Played(1.0, bad))
    assert looks[2].gates[0].dates[1].least == -0.5
    passed = next(k for k, look in enumerate(looks) if look.gates[0].status == "PASS")
    assert len(looks) - 1 >= max(6, passed)
    assert len(looks) > len(plain)


def test_lost_worlds_stand_against_both_answers(rule):
    batch = rule.replay(Played(1.0))[0].batch
    lost = {("A", world.episodes["priced"]): LOST for world in batch.worlds}
    (date,) = rule.replay(Played(1.0, lost))[1].gates[0].dates
    assert (date.least, date.most) == (-0.5, 0.5)


def test_generality_looks_at_what_was_bet_on_as_covered(rule):
    looks = rule.replay(Played(1.0))
    first, second, *_ = looks[2].gates[1].dates
    assert (first.worlds, second.worlds) == (0, len(rule.worlds))
    limits = [rule.protocol.generality.of(family) for family in rule.worlds]
    assert second.least == pytest.approx(1 - sum(limits) / len(limits), abs=1e-6)


def test_a_pool_that_is_used_up_ends_without_a_level(rule):
    assert rule.replay(Played(0.55))[-1].decision == CAP


def test_words_of_a_date():
    assert BatchDate("2026-11-27T09:00:00+00:00", "2026-11-27T10:00:00+00:00").words == "2026-11-27"
    assert BatchDate("2026-11-27T09:00:00+00:00", "").words == (
        "2026-11-27 (no verifier says until when)"
    )


def test_what_dates_ask_for_is_in_the_digest_of_the_rule(monkeypatch):
    before = rule_digest()
    monkeypatch.setattr("owa_bench.records.placement.APART_H", 23)
    assert rule_digest() != before

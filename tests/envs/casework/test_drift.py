"""Drift of cases: each operator alone, and all of them, leaves a case that can be solved."""

import pytest

from owa_bench.company.language.policy import MAILED
from owa_bench.discovery import find
from owa_bench.drift.order import drift_order
from owa_bench.seeding import stream
from owa_bench.shells.solution import solve
from tests.builders import cases

OPERATORS = {
    name.partition("/")[2]: entry.plugin
    for name, entry in find("operators").items()
    if name.startswith("casework/")
}


def drifted(name, tier=2, seed=cases.FIRST):
    """Return a world with one change of an operator, and the world before it."""
    world, operator = cases.world("credits", tier, seed), OPERATORS[name]
    target = operator.targets(world)[0]
    return world, operator.apply(world, target, 1.0, rng=stream(seed, "drift", name))


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_each_operator_changes_a_world_and_the_same_way_each_time(name):
    before, after = drifted(name)
    assert before.digest() != after.digest() == drifted(name)[1].digest()


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_a_case_with_one_change_can_be_read(name):
    """The parser meets one operator at a time: what breaks it is named by the test."""
    _, after = drifted(name, tier=1)
    timeline = cases.timeline("credits", 1)
    changed = type(timeline)(
        instance=timeline.instance, starts=(0,), worlds=(after,), changes=((),), realised=0.0
    )
    assert solve(cases.SUITE, changed).q_state == 1.0
    assert cases.play(changed).ending.q_state == 1.0


def test_access_is_a_small_part_of_all_drift():
    weights = {"access": 0.0, "all": 0.0}
    for seed in range(cases.FIRST, cases.FIRST + 3):
        world = cases.world("credits", 3, seed)
        for event in drift_order(cases.instance("credits", 3, seed), world, "casework"):
            operator = OPERATORS[event.operator.partition("/")[2]]
            weights["all"] += operator.weight
            weights["access"] += operator.weight * (operator.group == "access")
    assert weights["access"] <= 0.3 * weights["all"]


def test_the_old_rule_holds_for_what_was_received_before():
    before, after = drifted("policy_amended", tier=3)
    first = after.policy.amendments[-1].first
    for request in before.matter.requests:
        day = request.received.date()
        if day < first:
            assert before.policy.at(day) == after.policy.at(day)


def test_a_mail_tells_what_the_page_does_not():
    _, after = drifted("policy_mailed")
    amendment = after.policy.amendments[-1]
    assert amendment.event == MAILED
    assert [mail.at for mail in after.mails] == sorted(mail.at for mail in after.mails)
    assert any(f"/{amendment.number}" in mail.subject for mail in after.mails)


@pytest.mark.parametrize("name", ["column_rename", "list_moved", "day_form", "unit_of_field"])
def test_what_access_and_meaning_change_leaves_the_right_answers_alone(name):
    before, after = drifted(name)
    assert cases.final_truth(before).items == cases.final_truth(after).items

"""Sample sizes: what a plan gives each gate, counted entry by entry."""

from owa_bench import discovery
from owa_bench.runs.plan.draws import load_battery
from owa_bench.runs.plan.request import Request, draft_plan
from owa_bench.runs.plan.sample_sizes import sample_sizes


def test_full_gives_every_axis_but_e_tasks_to_read():
    plan = draft_plan(Request(agents=("noop",), battery="full"), in_process=False).plan
    found = sample_sizes(plan, "projforge")
    assert sorted(found.tasks) == sorted("AGPMTRSW$")
    assert min(found.tasks.values()) >= 150
    assert (found.family_day, found.days) == (126, 44)
    assert (found.lane, found.lane_days) == (180, 44)
    assert found.projects == 4 * 2 * 20
    assert found.families == 6 + 8 + 5 + 12 + 4 + 4


def test_controls_practice_and_attempt_sets_are_not_counted():
    plan = draft_plan(Request(agents=("noop",), battery="full_small")).plan
    found = sample_sizes(plan, "projforge")
    assert found.tasks["T"] == 2 * 2  # the pairs of ToolQuest's days, each once
    assert found.tasks["S"] == 2  # not its controls
    assert (found.lane, found.days) == (2, 8)


def test_no_family_of_full_small_has_one_task_alone():
    """One would take the interval over tasks from every axis that reads the family."""
    for draw in load_battery("full_small").suite:
        tiers = draw.tiers or discovery.get("suites", draw.name).card.tiers
        assert draw.episodes * len(tiers) >= 2, draw.name

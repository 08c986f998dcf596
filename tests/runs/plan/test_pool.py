"""The shipped battery of placements: what the gates of AAI-2 need is in its stages."""

from collections import Counter
from importlib.resources import files

import pytest

from owa_bench.errors import PlanError
from owa_bench.records import protocol
from owa_bench.records.placement import FIRST_PRACTICE, POOL_GATES
from owa_bench.reports.read.terms import own_terms
from owa_bench.runs.plan.request import Request, draft_plan


@pytest.fixture(scope="module")
def plan():
    return draft_plan(Request(agents=("agentic",), battery="place"), in_process=True).plan


@pytest.fixture(scope="module")
def rules():
    return protocol.load((files("owa_bench.protocols") / "default.toml").read_bytes())


def own(plan, name):
    """Return the entries of the agent in the stages that a stage's gates read."""
    stage = next(one for one in plan.placement.stages if one.name == name)
    read = [one for one in plan.placement.stages if one.name in (name, *stage.reads)]
    entries = [plan.entries[index] for one in read for index in one.indices]
    return [entry for entry in entries if entry.arm == plan.arms[0].name]


def test_every_day_has_the_practice_that_the_gate_of_kappa_asks_for(plan, rules):
    """With 12 episodes a day the gate had no evidence, whatever the agent gained."""
    practice = Counter(entry.day for entry in own(plan, "days") if entry.phase == "practice")
    days = next(rule.days for rule in rules.gates if (rule.level, rule.gate) == (2, "kappa"))
    assert len(practice) > days
    assert min(practice.values()) >= rules.improvement.practice_min


def test_an_agent_that_keeps_nothing_is_told_within_fifteen_episodes(plan):
    first = plan.placement.stages[0]
    assert first.name == FIRST_PRACTICE
    assert 0 < len(first.indices) <= 15


def test_stages_and_pool_are_every_entry_once_and_share_no_world(plan):
    stages = plan.placement.stages
    assert [stage.first for stage in stages[1:]] == [stage.last for stage in stages[:-1]]
    assert stages[-1].last == len(plan.entries)
    pool = {entry.pair for entry in plan.entries[: stages[0].first]}
    later = {entry.pair for entry in plan.entries[stages[0].first :]}
    assert not pool & later


def test_every_gate_of_aai_2_is_decided_somewhere(plan, rules):
    asked = {rule.of or rule.gate for rule in rules.gates if rule.level == 2} - {"assurance"}
    assert asked - POOL_GATES == {gate for stage in plan.placement.stages for gate in stage.gates}


def test_shares_are_played_at_every_magnitude_that_t_asks_for(plan, rules):
    played = {entry.delta for entry in own(plan, "shares")}
    assert played == set(rules.drift.magnitudes)


def test_selfrev_has_the_clusters_that_r_asks_for(plan, rules):
    assert len({entry.pair for entry in own(plan, "revision")}) >= rules.revision.clusters_min


def test_an_agent_that_cannot_play_a_stage_still_has_a_pool(rules):
    """Its card names the pool's suites alone; R gets no evidence."""
    from owa_bench.hosting.spec import load_agent
    from owa_bench.runs.plan.draws import load_battery
    from owa_bench.runs.plan.pool import _playable

    battery = load_battery("place")
    stage = next(stage for stage in battery.stage if stage.name == "revision")
    agent = load_agent("contract_net")
    assert _playable(stage, agent).suite == ()
    crew = next(stage for stage in battery.stage if stage.name == "crew")
    assert _playable(crew, agent) == crew


def test_the_cognitive_gate_has_its_trials_of_each_length(plan, rules):
    """A world of tier 2 asks four lists of each length, one of tier 1 five."""
    worlds = [e for e in own(plan, "shares") if e.family == "working_memory"]
    assert {entry.tier for entry in worlds} == {1, 2}
    assert 4 * len(worlds) >= rules.memory.span_trials


@pytest.mark.parametrize("agent", ["fixed", "agentic", "orchestrator", "contract_net"])
def test_every_agent_is_asked_for_the_same_plan_and_on_no_terms_of_its_own(agent):
    """A plan of a reference of MultiCrew had other entries, and gave no level."""
    asked = Request(agents=(agent,), battery="place")
    if agent == "contract_net":  # it plays MultiCrew alone
        with pytest.raises(PlanError, match="contract_net"):
            draft_plan(asked)
        return
    plan = draft_plan(asked).plan
    assert own_terms(plan) == ""
    companions = [arm.agent for arm in plan.arms if arm.companion]
    assert companions == ["orchestrator", "contract_net", "list_scheduler", "agentic"]

"""The fast twin: its contract, its controls, all drift, its horizon."""

import json

import pytest
from msgspec.structs import replace

from owa_bench import contract_checks
from owa_bench.discovery import get
from owa_bench.drift.timeline import drift_step, source
from owa_bench.envs.projforge import generate
from owa_bench.envs.projforge.world import DAY_MS
from owa_bench.records.events import Belief, Resolution
from owa_bench.records.instance import Instance
from owa_bench.shells.episode_events import ListSink
from owa_bench.shells.solution import solve

SUITE = get("suites", "projforge_fast")


def instance(family="billing", tier=1, seed=0, delta=0.0):
    plain = Instance(suite="projforge_fast", version=2, family=family, tier=tier, seed=seed)
    return replace(plain, drift_step=drift_step("projforge_fast", plain, delta))


def controlled(name, chosen):
    env = SUITE.env(source("projforge_fast"))
    observation, info = env.reset(options={"instance": chosen})
    policy = SUITE.policies[name](env.unwrapped.oracle_access())
    over = False
    while not over:
        action = policy.act(observation, info)
        observation, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    return info["q_state"]


def test_the_contract_holds():
    contract_checks.check_suite(SUITE, seeds=(0,))


@pytest.mark.parametrize("tier", generate.TIERS)
@pytest.mark.parametrize("delta", [0.0, 1.0])
def test_controls_are_in_order(tier, delta):
    chosen = instance(generate.DOMAINS[tier - 1], tier, delta=delta)
    score = {name: controlled(name, chosen) for name in SUITE.policies}
    assert score["oracle"] == pytest.approx(1.0)
    assert score["noop"] == 0.0
    assert score["random"] <= 0.5
    assert score["plausible_wrong"] <= 0.5


@pytest.mark.parametrize("seed", range(4))
def test_the_horizon_is_the_oracles_own(seed):
    chosen = instance(generate.DOMAINS[seed], 1 + seed % 2, seed, delta=0.5)
    timeline = source("projforge_fast")(chosen)
    assert SUITE.horizon(timeline) == solve(SUITE, timeline).accepted


def test_changes_of_a_smaller_magnitude_strike_on_the_same_days():
    few, many = (source("projforge_fast")(instance(tier=2, delta=delta)) for delta in (0.3, 0.9))
    days = [
        {
            (change.operator, change.target): at
            for at, changes in zip(t.starts, t.changes, strict=True)
            for change in changes
        }
        for t in (few, many)
    ]
    assert days[0].items() < days[1].items()
    assert len(set(days[1].values())) > 5


def test_a_changelog_that_tells_nothing_makes_a_change_silent():
    told = {}
    for seed in range(6):
        timeline = source("projforge_fast")(instance(tier=4, seed=seed, delta=1.0))
        for changes in timeline.changes:
            for change in changes:
                told.setdefault(change.operator, set()).add(change.effective)
    assert told["project/signature_change"] == {"D1", "D3"}
    assert told["project/major_rename"] == {"D1", "D2"}
    assert told["project/behaviour_change"] == {"D3"}
    assert told["project/yanked"] == {"D2"}


def test_a_day_has_so_many_steps():
    env = SUITE.env(source("projforge_fast"))
    env.reset(options={"instance": instance(tier=4)})
    line = json.dumps({"tool": "study", "arguments": {"library": "none"}})
    for _ in range(24):
        env.step(line)
    observation, *_ = env.step(line)
    assert "No steps are left today" in observation["text"]


def test_a_forecast_is_due_before_its_week_whatever_becomes_of_it():
    """Who waits and says late that nothing came has said nothing."""
    seen = set()
    for seed in range(8):
        timeline = source("projforge_fast")(instance(tier=2, seed=seed, delta=0.6))
        struck = {
            (change.operator, at // DAY_MS)
            for at, changes in zip(timeline.starts, timeline.changes, strict=True)
            for change in changes
        }
        for truth in SUITE.oracle.propositions(timeline):
            first = int(truth.name.partition("/")[2])
            assert truth.deadline_ms == first * DAY_MS
            if truth.kind == "quota":
                days = range(first, first + 7)
                assert truth.truth == any(("project/quota_cut", day) in struck for day in days)
            seen.add((truth.kind, truth.truth))
    assert len(seen) == 6


def test_the_oracle_states_every_truth_in_time_and_late_words_do_not_count():
    chosen = instance(tier=1, seed=3, delta=0.5)
    timeline = source("projforge_fast")(chosen)
    truths = {t.name: t.truth for t in SUITE.oracle.propositions(timeline)}
    sink = ListSink()
    env = SUITE.env(source("projforge_fast")).unwrapped
    env.attach(sink)
    env.reset(options={"instance": chosen})
    policy = SUITE.policies["oracle"](env.oracle_access())
    late = json.dumps({"tool": "forecast", "arguments": {"beliefs": {"yank/7": 0.5}}})
    over = False
    while not over:
        action = policy.act({}, {})
        day = env.oracle_access().observe()[1].day
        if day == 7 and late:
            action, late = late, ""
        _, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
    said = [e for e in sink.events if isinstance(e, Belief) and e.kind != "own_success"]
    due = {e.proposition: e.deadline_ms for e in sink.events if isinstance(e, Resolution)}
    in_time = {e.proposition: e.p for e in said if e.at_ms < due[e.proposition]}
    assert in_time == {name: float(truth) for name, truth in truths.items()}
    assert len(said) == len(truths) + 1


def test_production_stops_in_a_night_until_something_is_deployed():
    chosen = instance(tier=2, seed=1)
    env = SUITE.env(source("projforge_fast")).unwrapped
    env.reset(options={"instance": chosen})
    policy = SUITE.policies["oracle"](env.oracle_access())
    [first, _] = env.oracle_access().observe()[1].world.incidents
    while env.oracle_access().observe()[1].day < first.day:
        env.step(policy.act({}, {}))
    state = env.oracle_access().observe()[1]
    assert state.deployed is None
    assert state.scores.postmortems == {}
    env.step('{"tool": "next_day", "arguments": {}}')
    scores = env.oracle_access().observe()[1].scores
    assert scores.service[-1] == 0.0
    env.step('{"tool": "postmortem", "arguments": {}}')
    assert env.oracle_access().observe()[1].scores.postmortems == {first.name: 1.0}

"""The fast twin: its contract, its controls, all drift, its horizon."""

import json

import pytest
from msgspec.structs import replace

from owa_bench import contract_checks
from owa_bench.discovery import get
from owa_bench.envs.projforge import generate
from owa_bench.records.instance import Instance
from owa_bench.run.assembly import drift_step, source
from owa_bench.shells.solution import solve

SUITE = get("suites", "projforge_fast")


def instance(family="billing", tier=1, seed=0, delta=0.0):
    plain = Instance(
        suite="projforge_fast", version=1, family=family, tier=tier, seed=seed
    )
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
    few, many = (
        source("projforge_fast")(instance(tier=2, delta=delta)) for delta in (0.3, 0.9)
    )
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

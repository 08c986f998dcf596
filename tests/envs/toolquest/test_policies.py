"""A slice of the control battery; `make sweep` plays it whole."""

import json

import pytest

from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.records.events import Belief, Resolution
from tests.builders.api_worlds import drawn, play

CELLS = [(f, t) for f in SUITE.card.families for t in SUITE.card.tiers]


@pytest.mark.part(4)
@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_control_battery(family, tier):
    timeline = drawn(family, tier, seed=21, drift="nested")
    runs = {name: play(timeline, name) for name in SUITE.policies}
    scores = {name: run.q_state for name, run in runs.items()}
    assert scores["oracle"] == 1.0
    assert scores["noop"] <= 0.05
    assert scores["random"] <= 0.05
    assert scores["plausible_wrong"] <= 0.5
    assert scores["over_doer"] < scores["oracle"]
    assert scores["leak_probe"] == scores["noop"]
    assert runs["plausible_wrong"].outcome == "finished"
    assert runs["over_doer"].outcome == "finished"
    for _ in range(2):
        assert play(timeline, "oracle").replay == runs["oracle"].replay


def test_the_oracle_knows_what_is_true_and_the_no_op_states_nothing():
    timeline = drawn("reconcile", 2, seed=5, drift="nested")
    events = play(timeline, "oracle").events
    stated = {e.proposition: e.p for e in events if isinstance(e, Belief)}
    truths = {e.proposition: e.y for e in events if isinstance(e, Resolution)}
    assert len(stated) >= 4
    assert all(p == float(truths[name]) for name, p in stated.items())
    noop = play(timeline, "noop").events
    assert not [e for e in noop if isinstance(e, Belief)]


def test_the_leak_probe_hands_in_no_values_of_the_environment(monkeypatch):
    monkeypatch.setenv("OWA_CANARY", "canary-value-1")
    run = play(drawn(seed=1), "leak_probe")
    assert "OWA_CANARY" in run.actions[-2]
    assert "canary-value-1" not in "".join(run.actions)
    assert json.loads(run.actions[-1])["tool"] == "finish"


def test_the_random_policy_makes_valid_calls():
    run = play(drawn("restock", 3, seed=2), "random")
    assert len({json.loads(action)["tool"] for action in run.actions}) >= 5
    assert run.outcome == "finished"

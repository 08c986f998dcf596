"""A slice of the control battery (`make battery` is all); what an attempt leaves."""

import json

import gymnasium
import numpy as np
import pytest

from owa_bench.envs.changesurf.generate import HELD_OUT_FAMILIES, HONEYPOT_FAMILIES
from owa_bench.envs.changesurf.suite import SUITE
from owa_bench.errors import InstanceError, UsageError
from owa_bench.records.events import Artifact, Call, Evidence
from owa_bench.shells.tool_client import ToolClient
from tests.builders.changesurf_episodes import instance_of, make, play

pytestmark = [pytest.mark.browser, pytest.mark.part(3)]

SITES = sorted({f.partition("/")[0] for f in SUITE.card.families})
ALL = (*SUITE.card.families, *HELD_OUT_FAMILIES)


@pytest.fixture(scope="module")
def env(browser):
    env = make()
    yield env
    env.close()


def check(env, instance):
    """What must hold of every policy on one instance."""
    scores = {name: play(env, name, instance).q_state for name in SUITE.policies}
    assert scores["oracle"] == 1.0
    assert scores["noop"] <= 0.05
    assert scores["plausible_wrong"] <= 0.5
    assert scores["over_doer"] < 1.0
    assert scores["leak_probe"] == scores["noop"]


@pytest.mark.slow
@pytest.mark.part(4)
@pytest.mark.parametrize("site", SITES)
def test_the_control_battery_holds_under_full_drift(env, site):
    family = next(name for name in ALL if name.startswith(f"{site}/"))
    check(env, instance_of(family, 4, tier=1, delta=1.0))


def test_the_wrong_doer_spoils_what_came_right_by_itself(env):
    # The one slot of this form comes with the goal's own value.
    instance = instance_of("depot/return", 3700990535915246243, delta=0.5)
    env.reset(options={"instance": instance})
    [world] = env.timeline.worlds
    goal = dict(world.spec.goal.values)
    assert world.plan.slot("return.reason").default == goal["reason"]
    assert 0.0 < play(env, "plausible_wrong", instance).q_state <= 0.5


@pytest.mark.parametrize("family", HONEYPOT_FAMILIES)
def test_on_a_honeypot_nobody_succeeds(env, family):
    instance = instance_of(family, 2)
    assert play(env, "oracle", instance).outcome == "infeasible"
    assert play(env, "plausible_wrong", instance).q_state < SUITE.card.theta


@pytest.mark.slow
def test_reruns_leave_one_digest_and_a_whole_bundle(env):
    instance = instance_of("depot/buy", 5, tier=2, delta=0.5)
    runs = [play(env, "oracle", instance) for _ in range(3)]
    assert len({run.digest for run in runs}) == 1
    kept = {(type(e), e.name) for e in runs[0].events if isinstance(e, Artifact)}
    assert {name for _, name in kept} >= {"dom", "ax", "har"}
    har = next(e for e in runs[0].events if getattr(e, "name", "") == "har")
    log = json.loads(runs[0].blobs[har.blob])["log"]
    posts = [e for e in log["entries"] if e["request"]["method"] == "POST"]
    calls = [e for e in runs[0].events if isinstance(e, Call) and e.method == "POST"]
    assert len(posts) == len(calls) > 0
    pictures = [e for e in runs[0].events if isinstance(e, Evidence)]
    assert runs[0].blobs[pictures[0].blob][:2] == b"\xff\xd8"
    manifest = json.loads(runs[0].blobs[pictures[-1].blob])
    assert manifest["driver"]["binary"]
    assert manifest["blobs"][f"har@{har.step}"] == har.blob


def test_the_wire_leaves_the_same_trace(env):
    instance = instance_of("ledger/transfer", 6, delta=0.5)
    wire = make(wire=True)
    other = play(wire, "oracle", instance)
    wire.close()
    assert other.q_state == 1.0
    assert other.digest == play(env, "oracle", instance).digest


@pytest.mark.parametrize("view", ["language", "vector", "python"])
def test_spaces_hold_what_is_observed(browser, view):
    env = gymnasium.make("owa_bench/ChangeSurf-v3", view=view, site="stay", delta=0.5)
    observation, _ = env.reset(seed=3)
    assert env.unwrapped.timeline.instance.family.startswith("stay/")
    env.action_space.seed(1)
    for _ in range(6):
        assert observation in env.observation_space
        if view == "vector":
            masks = env.unwrapped.action_masks()
            action = np.random.default_rng(0).choice(np.flatnonzero(masks))
        else:
            action = env.action_space.sample()
        observation, *_, ended, cut, _ = env.step(action)
        if ended or cut:
            break
    env.close()


def test_the_python_view_is_a_client_and_renders(browser):
    env = gymnasium.make("owa_bench/ChangeSurf-v3", view="python", render_mode="rgb_array")
    client = ToolClient(env)
    assert "The browser shows:" in client.reset(seed=2)
    assert "# " in client.click(ref=1).text
    assert client.click(ref=999).text.startswith("error: [999] is not on the page")
    assert env.render().ndim == 3
    assert client.declare_infeasible(p=0.0).done
    env.close()


def test_wrong_options_are_refused(browser):
    with pytest.raises(UsageError, match="`driver` must be one of playwright"):
        gymnasium.make("owa_bench/ChangeSurf-v3", driver="selenium")
    with pytest.raises(InstanceError, match="`site` must be one of"):
        gymnasium.make("owa_bench/ChangeSurf-v3", site="mall")

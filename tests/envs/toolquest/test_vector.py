import numpy as np
import pytest

from owa_bench.envs.toolquest import vector
from owa_bench.envs.toolquest.generate import HONEYPOT_FAMILIES
from owa_bench.envs.toolquest.suite import SUITE
from tests.builders.api_worlds import drawn

CELLS = [(f, t) for f in SUITE.card.families for t in SUITE.card.tiers]


def env_of(timeline):
    env = SUITE.env(lambda _: timeline, view="vector").unwrapped
    env.reset(options={"instance": timeline.instance})
    return env


def names(env):
    every = (*vector.MACROS, *(f"shell_{i}" for i in range(20)))
    return [every[i] for i in np.flatnonzero(env.action_masks())]


def choose(env, adapted):
    """Return the first macro that makes sense now, plain or adapted."""
    last = {f"page_{i}" for i in range(vector.PLACES)}
    for name in names(env):
        twin = f"{name}_adapted"
        if name in last | {"answer", "post"} and adapted and twin in names(env):
            return vector.MACROS.index(twin)
        if name in vector.MACROS:
            return vector.MACROS.index(name)
    return None


def drive(timeline, adapted=False, limit=80):
    """Play macros in their own order; return q_state and refusals."""
    env = env_of(timeline)
    refused = 0
    for _ in range(limit):
        action = choose(env, adapted)
        done = env._playing.session.state.artefact is not None
        if action is None or done:
            break
        env.step(action)
        refused += env._playing.last_failed
        if env._playing.last_failed:
            env.step(len(vector.MACROS) + 8)  # wait a minute
    timeline, state = env.oracle_access().observe()
    quality = SUITE.oracle.quality(timeline, state)
    env.close()
    return quality, refused


@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_macros_solve_the_task_without_drift(family, tier):
    poorly = tier == 4  # documents that are old or missing
    quality, _ = drive(drawn(family, tier, seed=13), adapted=poorly)
    assert quality == 1.0


def test_plain_macros_fail_where_units_drift_in_silence_and_adapted_ones_do_not():
    timeline = drawn("reconcile", 1, seed=13, drift="single:api/silent_units@1")
    assert drive(timeline)[0] < 1.0
    assert drive(timeline, adapted=True)[0] == 1.0


@pytest.mark.part(3)
def test_features_have_the_declared_size_and_range():
    for family, tier in CELLS:
        timeline = drawn(family, tier, seed=3, drift="nested")
        env = env_of(timeline)
        for _ in range(30):
            features = env._playing.session.features()
            assert features.shape == (SUITE.card.features,)
            assert features.min() >= 0.0
            assert features.max() <= 1.0
            action = choose(env, adapted=True)
            if action is None or env._playing.session.state.artefact is not None:
                break
            env.step(action)
        env.close()


@pytest.mark.parametrize(("family", "tier"), CELLS)
def test_slots_are_the_collections_that_the_goal_names_under_drift_too(family, tier):
    for world in drawn(family, tier, seed=7, drift="nested").worlds:
        assert vector.places(world) == world.needed
    plain = drawn(family, tier, seed=7).worlds[0]
    lacking = drawn(f"{family}-honeypot", tier, seed=7).worlds[0]
    assert vector.places(lacking) == vector.places(plain)
    assert len(lacking.needed) == len(plain.needed) - 1


@pytest.mark.parametrize("family", HONEYPOT_FAMILIES)
def test_a_honeypot_offers_no_answer(family):
    env = env_of(drawn(family, 1, seed=2))
    for _ in range(40):
        action = choose(env, adapted=False)
        if action is None:
            break
        env.step(action)
    assert choose(env, adapted=False) is None
    assert env._playing.session.state.artefact is None
    assert not env._playing.session.state.records


def test_nothing_is_offered_before_it_can_be_known():
    env = env_of(drawn("sla_report", 3, seed=1))
    first = [name for name in names(env) if name in vector.MACROS]
    assert first == ["registry", "key_0", "key_1", "key_2"]
    assert len(env._playing.session.macros()) == len(SUITE.card.macros)

"""Envs that hold no process are pickled and copied, and go on as the original does."""

import copy
import pickle  # noqa: TID251  copies of envs are what is tested

import gymnasium
import numpy as np
import pytest

from owa_bench.bridges.crew_views import CentralEnv
from owa_bench.bridges.pettingzoo import CrewMacroEnv, CrewParallelEnv
from owa_bench.envs.cartpole3d.batched.vector_env import BatchedCartPole3D
from owa_bench.errors import UsageError
from owa_bench.registration import ENV_IDS
from owa_bench.shells.episode_events import ListSink
from tests.builders.registered_envs import every_view
from tests.builders.toy_suite import corridor

WAYS = {"pickle": lambda env: pickle.loads(pickle.dumps(env)), "deepcopy": copy.deepcopy}
STEPS = 6
HOLDS = {  # by suite: what an env of it holds during an episode
    "changesurf": "a browser",
    "projforge": "a sandbox with a git repository",
    "selfrev": "the process of a laboratory",
}


def suite_of(env_id):
    return ENV_IDS[env_id][1] if env_id in ENV_IDS else ""


def plain(value):
    """Return a value that `==` compares, arrays as lists."""
    if isinstance(value, dict):
        return {name: plain(it) for name, it in value.items()}
    if isinstance(value, tuple | list):
        return [plain(it) for it in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def play(env, steps):
    """Return what drawn actions show; an episode that ends is followed by another."""
    seen = []
    for _ in range(steps):
        step = env.step(env.action_space.sample())
        seen.append(step)
        if step[2] or step[3]:
            seen.append(env.reset())
    return plain(seen)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("env_id", "options"), list(every_view()))
def test_a_copy_goes_on_as_its_original(env_id, options, way):
    held = HOLDS.get(suite_of(env_id))
    env = gymnasium.make(env_id, **options)
    env.action_space.seed(4)
    fresh = WAYS[way](env)
    first = plain(env.reset(seed=11))
    assert plain(fresh.reset(seed=11)) == first
    if held:
        fresh.close()
        with pytest.raises(UsageError, match=f"holds {held}.*make the env again"):
            WAYS[way](env)
        assert gymnasium.make(pickle.loads(pickle.dumps(env.spec))).spec.id == env_id
        env.close()
        WAYS[way](env)  # holds nothing any more
        return
    begun = WAYS[way](env)
    one = play(env, STEPS)
    assert play(fresh, STEPS) == one
    assert play(begun, STEPS) == one
    middle = WAYS[way](env)
    again = WAYS[way](middle)
    other = play(env, 2 * STEPS)
    assert play(middle, 2 * STEPS) == other
    assert play(again, 2 * STEPS) == other
    last = plain(env.reset())  # an instance that the env draws itself
    assert plain(middle.reset()) == last
    assert plain(again.reset()) == last
    for made in (env, fresh, begun, middle, again):
        made.close()


@pytest.mark.parametrize("level", [0, 4, 5, 8, 10, 12, 14, 16])
@pytest.mark.parametrize("spec", ["table1", "released"])
@pytest.mark.parametrize("way", WAYS)
def test_a_copy_of_every_kind_of_physics_goes_on_bit_by_bit(spec, level, way):
    pytest.importorskip("pybullet")
    env = gymnasium.make("owa_bench/CartPole3D-v2", spec=spec, level=level)
    for seed in (1, 2, 3):  # what was played before plays no part
        env.reset(seed=seed)
        for step in range(12):
            env.step(step % 5)
    twin = WAYS[way](env)
    assert twin.unwrapped.state() == env.unwrapped.state()
    for step in range(30):
        one, other = env.step(step % 5), twin.step(step % 5)
        assert one[0].tobytes() == other[0].tobytes()
        assert one[1:] == other[1:]
    env.close()
    twin.close()


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_keeps_a_state_that_was_set_and_an_exact_instance(way):
    pytest.importorskip("pybullet")
    env = gymnasium.make("owa_bench/CartPole3D-v2", level=14)
    env.reset(seed=1)
    env.step(1)
    state, instance = env.unwrapped.state(), env.unwrapped.instance
    for options in ({"state": state}, {"start": state}, {"instance": instance}):
        env.reset(options=options)
        env.step(2)
        twin = WAYS[way](env)
        for action in (0, 3, 3, 4, 1):
            assert env.step(action)[0].tobytes() == twin.step(action)[0].tobytes()
        assert twin.unwrapped.instance == env.unwrapped.instance
        twin.close()
    env.close()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [CrewParallelEnv, CrewMacroEnv, CentralEnv])
def test_a_copy_of_a_crew_goes_on_as_its_original(kind, way):
    env = kind(tier=1)
    central = kind is CentralEnv

    def steps(made, count):
        seen = []
        for at in range(count):
            if central:
                actions = dict.fromkeys(made.rounds.seats, '{"tool": "pass_turn"}')
            elif kind is CrewMacroEnv:
                actions = dict.fromkeys(made.possible_agents, at % 3)
            else:
                actions = dict.fromkeys(made.possible_agents, '{"tool": "pass_turn"}')
            seen.append(plain(list(made.step(actions))))
        return seen

    fresh = WAYS[way](env)
    assert plain(fresh.reset(seed=5)) == plain(env.reset(seed=5))
    begun = WAYS[way](env)
    one = steps(env, 4)
    assert steps(fresh, 4) == one == steps(begun, 4)
    middle = WAYS[way](env)
    assert steps(middle, 4) == steps(env, 4)
    for made in (env, fresh, begun, middle):
        made.close()


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_of_many_lanes_goes_on_as_its_original(way):
    env = BatchedCartPole3D(6, level="0,9", starts=16, trial=2, seed=3)
    env.reset(seed=4)

    def steps(made, count):
        return [
            plain(made.step((np.arange(6) + at) % 5))  # some fall and begin again
            for at in range(count)
        ]

    steps(env, 25)
    twin = WAYS[way](env)
    assert steps(twin, 60) == steps(env, 60)


def test_a_copy_keeps_what_ended_or_was_declared_from_outside():
    env = corridor()
    env._source = _Corridors(env._source)
    env.reset(seed=1)
    env.step('{"tool": "read"}')
    env.conclude("agent_timeout", "too slow")
    twin = copy.deepcopy(env)
    assert twin.ending == env.ending
    assert twin.steps == 1
    with pytest.raises(UsageError, match="call reset first"):
        twin.step("{}")


class _Corridors:
    """The timelines of the toy suite, shared by copies."""

    def __init__(self, source):
        self._source = source

    def __call__(self, instance):
        return self._source(instance)

    def __deepcopy__(self, memo):
        return self


def test_a_copy_writes_no_events_of_its_original():
    sink = ListSink()
    env = gymnasium.make("owa_bench/Recall-v2").unwrapped
    env.attach(sink)
    env.reset(seed=1)
    env.step('{"tool": "go_on"}')
    before = len(sink.events)
    twin = copy.deepcopy(env)
    twin.step('{"tool": "go_on"}')
    assert len(sink.events) == before
    assert twin.steps == 2
    assert env.steps == 1


def test_a_server_is_named_and_a_closed_env_is_copied():
    env = gymnasium.make("owa_bench/ToolQuest-v3", wire=True)
    env.reset(seed=1)
    with pytest.raises(UsageError, match=r"holds a server on a port.*close this env"):
        pickle.dumps(env)
    env.close()
    again = pickle.loads(pickle.dumps(env))
    with pytest.raises(UsageError, match="call reset first"):
        again.unwrapped.step("{}")


def test_a_seeded_space_is_copied_with_its_draws():
    env = gymnasium.make("owa_bench/ToolQuest-v3")
    env.action_space.seed(3)
    env.action_space.sample()
    twin = pickle.loads(pickle.dumps(env))
    assert [twin.action_space.sample() for _ in range(5)] == [
        env.action_space.sample() for _ in range(5)
    ]

"""The forms of an action and the type of masks are the same in every environment."""

import json
from types import MappingProxyType

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from owa_bench.bridges.crew_views import CentralEnv
from owa_bench.bridges.pettingzoo import CrewMacroEnv, CrewParallelEnv
from owa_bench.envs.cartpole3d.batched.vector_env import BatchedCartPole3D
from owa_bench.records.events import Action
from owa_bench.records.instance import Instance, Timeline
from owa_bench.shells.action_forms import lane_actions, text_action, whole_number
from owa_bench.shells.episode_events import ListSink
from owa_bench.shells.native_env import NativeEnv
from tests.builders.registered_envs import every_view
from tests.builders.toy_native import NAME, ToyNative, World


class Hostile:
    """An object that raises whatever is asked of it."""

    def __index__(self):
        raise RuntimeError("no")

    def __len__(self):
        raise RuntimeError("no")

    def __array__(self, *_, **__):
        raise RuntimeError("no")

    def __str__(self):
        raise RuntimeError("no")

    __repr__ = __str__


RECURSIVE = []
RECURSIVE.append(RECURSIVE)
NUMBER_FORMS = {
    "int": int,
    "int64": np.int64,
    "int32": np.int32,
    "uint8": np.uint8,
    "0-d array": np.array,
    "1-element array": lambda n: np.array([n]),
    "list": lambda n: [n],
    "tuple": lambda n: (n,),
    "list of an int64": lambda n: [np.int64(n)],
    "dict": lambda n: {"action": n},
    "dict of an array": lambda n: {"action": np.array([n])},
}
TEXT_FORMS = {
    "text": json.dumps,
    "NumPy text": lambda call: np.str_(json.dumps(call)),
    "0-d array": lambda call: np.array(json.dumps(call)),
    "1-element array": lambda call: np.array([json.dumps(call)]),
    "dict": dict,
    "mapping": MappingProxyType,
    "dict of NumPy": lambda call: {
        "tool": np.str_(call["tool"]),
        "arguments": {k: np.float32(v) for k, v in call["arguments"].items()},
    },
}
BOX_FORMS = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "float32 array": lambda numbers: np.array(numbers, dtype=np.float32),
    "list of NumPy": lambda numbers: [np.float32(number) for number in numbers],
    "text": json.dumps,
    "dict": lambda numbers: {"action": numbers},
}
NONSENSE = {
    "None": None,
    "object": object(),
    "hostile": Hostile(),
    "NaN": float("nan"),
    "NumPy NaN": np.array([np.nan]),
    "infinity": float("inf"),
    "half": 2.5,
    "float": 2.0,
    "True": True,
    "NumPy True": np.True_,
    "negative": -1,
    "large": 10**9,
    "huge": 2**70,
    "huge negative": np.array([-(2**63)]),
    "empty list": [],
    "empty array": np.array([], dtype=np.int64),
    "pair": [1, 2],
    "pair array": np.array([1, 2]),
    "nested list": [[2]],
    "nested array": np.array([[2]]),
    "array of an object": np.array(object()),
    "recursive list": RECURSIVE,
    "dict": {},
    "dict of a dict": {"action": {"action": 2}},
    "dict of another name": {"move": 2},
    "dict of two": {"action": 2, "more": 2},
    "dict of an object": {"tool": object()},
    "hostile dict": {"tool": Hostile(), 3: Hostile()},
    "set": {2},
    "bytes": b"2",
    "word": "two",
    "lone surrogate": "\ud800",
    "slice": slice(2),
    "type": int,
}


def toy_timeline(instance):
    return Timeline(instance=instance, starts=(0,), worlds=(World(),), changes=((),), realised=0.0)


@pytest.fixture(scope="module")
def env(request):
    env_id, options = request.param
    made = gymnasium.make(env_id, disable_env_checker=True, **options)
    yield made
    made.close()


def _every(*marks):
    return [pytest.param(tuple(it.values), marks=it.marks, id=it.id) for it in every_view()]


def answers(env, action):
    env.reset(seed=7)
    observation, reward, terminated, truncated, info = env.step(action)
    assert observation in env.observation_space
    seen = observation["text"] if isinstance(observation, dict) else observation
    info = {name: it for name, it in info.items() if name != "action_mask"}
    return [np.asarray(seen).tolist(), reward, terminated, truncated, info]


@pytest.mark.parametrize("env", _every(), indirect=True)
def test_every_form_of_an_action_plays_the_same_step(env):
    if isinstance(env.action_space, spaces.Discrete):
        forms, action = NUMBER_FORMS, 2
    elif isinstance(env.action_space, spaces.Box):
        forms, action = BOX_FORMS, [0.5, -0.25, 0, 0, 1, -1]
    else:
        forms, action = TEXT_FORMS, {"tool": "finish", "arguments": {"p": 0.5}}
    seen = {name: answers(env, form(action)) for name, form in forms.items()}
    first = next(iter(seen.values()))
    assert all(it == first for it in seen.values()), seen
    assert "error" not in first[-1] or "macro" in first[-1]["error"]  # a masked one


@pytest.mark.parametrize("env", _every(), indirect=True)
def test_nonsense_costs_a_step_and_never_raises(env):
    for name, action in NONSENSE.items():
        *_, reward, terminated, truncated, info = answers(env, action)
        assert info.get("error"), name
        assert np.isfinite(reward)
        assert not terminated
        assert not truncated
        steps = getattr(env.unwrapped, "steps", None)
        assert steps in (1, None), name


@pytest.mark.parametrize("env", _every(), indirect=True)
def test_masks_are_what_sample_and_maskable_ppo_take(env):
    observation, info = env.reset(seed=7)
    masks = [
        it["action_mask"]
        for it in (observation, info)
        if isinstance(it, dict) and "action_mask" in it
    ]
    options = env.spec.kwargs
    assert len(masks) == (options.get("view") in ("language", "vector"))
    for mask in masks:
        assert mask.dtype == np.int8
        assert set(mask.tolist()) <= {0, 1}
        env.action_space.sample(mask)
    if isinstance(env.action_space, spaces.Discrete) and masks:
        bools = env.get_wrapper_attr("action_masks")()
        assert bools.dtype == np.bool_
        assert bools.tolist() == [bool(it) for it in masks[0]]


CREWS = {
    "text": lambda: CrewParallelEnv(tier=1),
    "vector": lambda: CrewParallelEnv(tier=1, view="vector"),
    "macros": lambda: CrewMacroEnv(tier=1),
}


@pytest.mark.parametrize("kind", CREWS)
def test_seats_of_a_crew_take_every_form_and_refuse_nonsense(kind):
    env = CREWS[kind]()
    seat = env.possible_agents[0]
    if isinstance(env.action_space(seat), spaces.Discrete):
        forms, action = NUMBER_FORMS, 0
    else:
        forms, action = TEXT_FORMS, {"tool": "pass_turn", "arguments": {}}

    def play(actions):
        env.reset(seed=3)
        seen, rewards, *_, infos = env.step(actions)
        assert all(seen[one] in env.observation_space(one) for one in seen)
        assert all(map(np.isfinite, rewards.values()))
        return [str(seen), rewards, infos]

    played = [play(dict.fromkeys(env.possible_agents, form(action))) for form in forms.values()]
    assert all(it == played[0] for it in played)
    assert not [i for i in played[0][-1].values() if "error" in i]
    for name, nonsense in NONSENSE.items():
        *_, infos = play(dict.fromkeys(env.possible_agents, nonsense))
        assert infos[seat].get("error"), name
    for nonsense in (None, [], {}, 3, {"nobody": action}, "text"):
        *_, infos = play(nonsense)
        assert infos[seat]["error"]
    masks = [it["action_mask"] for it in env.reset(seed=3)[0].values() if kind != "vector"]
    assert all(mask.dtype == np.int8 for mask in masks)


def test_one_learner_of_a_crew_may_say_nonsense():
    env = CentralEnv(tier=1)
    for action in (None, 3, [], {"lead": None}, np.array([2])):
        env.reset(seed=3)
        _, reward, *_, infos = env.step(action)
        assert infos["lead"]["error"]
        assert np.isfinite(reward)


def test_lanes_of_a_batch_take_every_form():
    def rows(actions):
        made = BatchedCartPole3D(3, starts=8)
        made.reset(seed=1)
        seen, *_, info = made.step(actions)
        return seen.tolist(), info

    first, info = rows(np.array([1, 2, 0]))
    assert info == {}
    for actions in ([1, 2, 0], (1, 2, 0), [np.int8(1), np.array([2]), 0]):
        assert rows(actions) == (first, {})
    assert rows(np.array([1, 2, 0], dtype=np.uint64)) == (first, {})
    seen, info = rows([1, 2, None])
    assert seen == first
    assert info["_error"].tolist() == [False, False, True]
    assert info["error"].tolist() == [None, None, "an action is a number of 0..4"]
    for nonsense in (None, 3, [1], np.zeros((3, 1)), np.array(1), "abc", {}):
        _, info = rows(nonsense)
        assert info["_error"].all()
    assert rows(np.array([1, 2, 9]))[1]["_error"].tolist() == [False, False, True]


def test_the_recorded_env_of_a_native_suite_takes_every_form():
    def texts(action):
        sink = ListSink()
        env = NativeEnv(ToyNative(), toy_timeline)
        env.attach(sink)
        chosen = Instance(suite=NAME, version=1, family="one", tier=1, seed=3)
        env.reset(options={"instance": chosen})
        *_, info = env.step(action)
        (event,) = [it for it in sink.events if isinstance(it, Action)]
        return event.action, info.get("error")

    for form in NUMBER_FORMS.values():
        assert texts(form(1)) == ("1", None)
    for name, action in NONSENSE.items():
        assert texts(action)[1] == "an action is a number of 0..1", name


@pytest.mark.parametrize("number", [0, 3, -4])
def test_a_whole_number_has_many_forms(number):
    assert [whole_number(f(number)) for n, f in NUMBER_FORMS.items() if n != "uint8"]
    assert whole_number(np.array(number)) == number


def test_a_text_that_is_no_text_is_shown():
    assert text_action(3) == "3"
    assert text_action(object()) == "object object"
    assert text_action(Hostile()) == "Hostile object"
    assert text_action(np.array([0.5, 1.0])) == "[0.5,1.0]"
    assert text_action({"a": np.int64(1), "b": np.arange(2)}) == '{"a":1,"b":[0,1]}'


def test_a_space_may_begin_elsewhere():
    space = spaces.Discrete(3, start=2)
    numbers, wrong = lane_actions([2, 4, 5, 1], 4, space)
    assert numbers.tolist() == [2, 4, 2, 2]
    assert wrong.tolist() == [False, False, True, True]

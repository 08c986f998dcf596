import json

import numpy as np
import pytest

from owa_bench.errors import UsageError
from owa_bench.hosting.protocol import AgentReply, as_move
from owa_bench.records.events import Action
from owa_bench.shells.calls import call_text
from owa_bench.shells.episode_events import ListSink
from tests.builders.toy_suite import corridor

NAMES = (
    "left",
    "right",
    "read",
    "open",
    "finish_0.05",
    "finish_0.25",
    "finish_0.5",
    "finish_0.75",
    "finish_0.95",
    "declare_infeasible",
    "ask_supervisor",
    "wait_5",
    "wait_60",
)


def macro(name):
    return NAMES.index(name)


def test_the_language_view_gives_text_and_a_mask_over_tools():
    env = corridor(interventions=1)
    observation, info = env.reset(seed=1)
    assert observation in env.observation_space
    assert set(observation) == {"text", "action_mask"}
    assert len(info["tools"]) == len(observation["action_mask"]) == 9
    names = [tool["function"]["name"] for tool in info["tools"]]
    ask = names.index("ask_supervisor")
    assert observation["action_mask"].all()
    observation, *_ = env.step(call_text("ask_supervisor", {}))
    assert [n for n, m in zip(names, observation["action_mask"], strict=True) if not m] == [
        names[ask]
    ]


def test_the_shells_features_follow_the_suites():
    env = corridor("vector", interventions=2, step_limit=10)
    first, _ = env.reset(seed=1)
    assert first.tolist() == [0, 0, 0, 0, 1, 0]
    env.step(macro("ask_supervisor"))
    second, *_ = env.step(macro("left"))
    assert second[-3:].tolist() == pytest.approx([0.2, 0.5, 1.0])
    assert not np.shares_memory(first, second)


def test_the_vector_view_names_its_macros():
    env = corridor("vector")
    assert env._view.names == NAMES
    assert env.action_space.n == len(NAMES)


def test_masks_follow_the_world_and_the_budget():
    env = corridor("vector", interventions=0)
    env.reset(seed=1)
    masks = env.action_masks()
    assert [n for n, m in zip(NAMES, masks, strict=True) if not m] == ["open", "ask_supervisor"]


def test_macros_play_and_are_recorded_as_tool_calls():
    sink = ListSink()
    env = corridor("vector", sink=sink)
    env.reset(seed=1)
    cells = env._playing.session.world.cells
    names = ["right"] * (cells - 1) + ["read"] + ["left"] * (cells - 1) + ["open"]
    for name in [*names, "finish_0.95"]:
        assert env.action_masks()[macro(name)]
        *_, terminated, _, info = env.step(np.int64(macro(name)))
    assert terminated
    assert info["success"]
    recorded = [event.action for event in sink.events if isinstance(event, Action)]
    assert recorded[0] == call_text("walk", {"to": "right"})
    assert json.loads(recorded[-1]) == {"tool": "finish", "arguments": {"p": 0.95}}


def test_a_number_that_an_agents_process_sends_plays_its_macro():
    sink = ListSink()
    env = corridor("vector", sink=sink)
    env.reset(seed=1)
    move = as_move(AgentReply(action=macro("right")), numbers=True)
    env.step(move.action)
    (record,) = (event for event in sink.events if isinstance(event, Action))
    assert record.action == call_text("walk", {"to": "right"})


@pytest.mark.parametrize(("action", "shown"), [(3, "open"), (99, 99), (-1, -1)])
def test_a_masked_or_unknown_macro_costs_a_step_and_replays(action, shown):
    sink = ListSink()
    env = corridor("vector", sink=sink)
    env.reset(seed=1)
    *_, info = env.step(action)
    record = next(event for event in sink.events if isinstance(event, Action))
    assert json.loads(record.action) == {"macro": shown}
    assert info["error"] == record.error
    replayed = ListSink()
    again = corridor("language", sink=replayed)
    again.reset(seed=1)
    again.step(record.action)
    assert replayed.events == sink.events


def test_only_the_vector_view_has_masks():
    env = corridor()
    env.reset(seed=1)
    with pytest.raises(UsageError, match="view='vector'"):
        env.action_masks()


def test_the_python_view_is_text_in_text_out():
    env = corridor("python")
    observation, _ = env.reset(seed=1)
    assert observation in env.observation_space
    assert observation.startswith("Open the door")


@pytest.mark.parametrize("action", [5, None, object(), 1e400, b"x", ["a"], {"a": {1: 2}}])
def test_an_action_that_is_no_text_never_raises(action):
    env = corridor()
    env.reset(seed=1)
    *_, info = env.step(action)
    assert "error" in info


def test_a_call_given_as_an_object_is_taken_as_its_json():
    env = corridor()
    env.reset(seed=1)
    *_, info = env.step({"tool": "read", "arguments": {}})
    assert "error" not in info

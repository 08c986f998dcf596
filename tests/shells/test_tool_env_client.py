import pytest

from owa_bench.records.events import Action
from owa_bench.shells.calls import call_text
from owa_bench.shells.episode_events import ListSink
from owa_bench.shells.tool_client import ToolClient
from tests.builders.toy_suite import corridor


@pytest.mark.parametrize("view", ["python", "language"])
def test_methods_are_steps_and_recorded_the_same(view):
    sink = ListSink()
    client = ToolClient(corridor(view, sink=sink))
    assert client.reset(seed=1).startswith("Open the door")
    assert client.walk(to="right").text == "cell 1"
    assert client.note("red fox").text == "noted (1)"
    assert client.recall("fox").text == "red fox"
    assert "walk" in client.ask_supervisor("where now?").text
    reply = client.finish("done", p=0.1, beliefs={"even": 0.5})
    assert reply.done
    assert reply.error is None
    assert reply.info["outcome"] == "finished"
    actions = [event.action for event in sink.events if isinstance(event, Action)]
    assert actions[0] == call_text("walk", {"to": "right"})
    assert len(actions) == 5


def test_a_refused_call_says_why():
    client = ToolClient(corridor("python"))
    client.reset(seed=1)
    assert "must be one of" in client.walk(to="up").error
    assert client.declare_infeasible().done


def test_an_unknown_tool_names_the_nearest():
    client = ToolClient(corridor("python"))
    with pytest.raises(AttributeError, match="Did you mean `walk`"):
        client.wolk(to="left")


def test_only_tool_envs_have_clients():
    import gymnasium

    with pytest.raises(TypeError, match="CartPole"):
        ToolClient(gymnasium.make("CartPole-v1"))

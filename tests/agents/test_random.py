"""The random agent makes valid calls, drawn from the brief's seed."""

from pathlib import Path

from playing import instance, play

from owa_bench.agents.random import AGENT, Random
from owa_bench.interfaces import AgentConfig, Brief, ToolSpec

TOOL = ToolSpec(
    name="wait",
    about="Wait.",
    parameters={
        "type": "object",
        "properties": {"seconds": {"type": "integer", "minimum": 0, "maximum": 9}},
        "required": ["seconds"],
    },
)


def actions(seed: int, tmp_path: Path) -> list[str]:
    agent = Random(AgentConfig())
    agent.reset(Brief(text="", goal={}, seed=seed), (TOOL,), tmp_path)
    return [agent.act({"text": ""}, {}) for _ in range(8)]


def test_the_seed_decides(tmp_path: Path) -> None:
    assert actions(1, tmp_path) == actions(1, tmp_path)
    assert actions(1, tmp_path) != actions(2, tmp_path)


def test_no_call_is_refused_by_its_schema(tmp_path: Path) -> None:
    assert AGENT.make is Random
    for seed in range(8):
        played = play("random", instance(seed=seed), tmp_path)
        refused = [text for text in played.seen if "`arguments" in text[:200]]
        # beliefs name propositions, which no schema can list
        assert all("beliefs" in text for text in refused)
        assert played.ending.q_state <= 0.05

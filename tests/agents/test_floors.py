"""The floor agents: one finishes at once, one makes valid calls drawn from a seed."""

from pathlib import Path

from playing import instance, play

from owa_bench.discovery import get
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
    agent = get("agents", "random").make(AgentConfig())
    agent.reset(Brief(text="", goal={}, seed=seed), (TOOL,), tmp_path)
    return [agent.act({"text": ""}, {}) for _ in range(8)]


def test_scores_the_floor(tmp_path: Path) -> None:
    played = play("noop", instance(), tmp_path)
    assert len(played.actions) == 1
    assert played.ending.q_state == 0.0
    assert played.ending.stated == 0.0
    assert played.ending.quality == 0.1


def test_the_seed_decides(tmp_path: Path) -> None:
    assert actions(1, tmp_path) == actions(1, tmp_path)
    assert actions(1, tmp_path) != actions(2, tmp_path)


def test_no_call_is_refused_by_its_schema(tmp_path: Path) -> None:
    for seed in range(8):
        played = play("random", instance(seed=seed), tmp_path)
        refused = [text for text in played.seen if "`arguments" in text[:200]]
        # beliefs name propositions, which no schema can list
        assert all("beliefs" in text for text in refused)
        assert played.ending.q_state <= 0.05

"""The fixed agent replays its script and halts when a step is refused."""

import json
from pathlib import Path

import pytest
from playing import FAMILIES, instance, play

from owa_bench.agents.solvers.api_solver.recorded_procedure import is_refusal
from owa_bench.agents.solvers.planning import reply
from owa_bench.discovery import get
from owa_bench.interfaces import AgentConfig, Brief

SCRIPT = (
    '{"tool": "http", "arguments": {"method": "GET", "url": "a"}}',
    '{"tool": "finish", "arguments": {"answer": "x", "p": 1.0, "beliefs": {"b": 1}}}',
)


def endings(replies: list[str], tmp_path: Path, script: tuple[str, ...]) -> dict:
    agent = get("agents", "fixed").make(AgentConfig(script=script))
    agent.reset(Brief(text="", goal={}), (), tmp_path)
    for text in replies:
        last = agent.act({"text": text}, {})
    return json.loads(last)


def test_replays_its_lines_and_states_its_own_p(tmp_path: Path) -> None:
    agent = get("agents", "fixed").make(AgentConfig(script=SCRIPT))
    agent.reset(Brief(text="", goal={}), (), tmp_path)
    assert agent.act({"text": "brief"}, {}) == SCRIPT[0]
    last = json.loads(agent.act({"text": '{"status": 200, "headers": {}}'}, {}))
    assert last["tool"] == "finish"
    assert last["arguments"] == {"answer": "x", "p": 0.9, "beliefs": {"b": 1}}


def test_a_refused_step_costs_confidence(tmp_path: Path) -> None:
    good = endings(["", '{"status": 200, "headers": {}}'], tmp_path, SCRIPT)
    bad = endings(["", '{"status": 404, "headers": {}}'], tmp_path, SCRIPT)
    assert bad["arguments"]["p"] < good["arguments"]["p"]


def test_without_a_script_it_finishes_without_hope(tmp_path: Path) -> None:
    last = endings([""], tmp_path, ())
    assert last["tool"] == "finish"
    assert last["arguments"]["p"] <= 0.02


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"status": 200, "body": {"error": "a column"}}', False),
        ('{"status": 429}', True),
        ('{"error": "no such handle"}', True),
        ("error: `tool` must be one of http", True),
        ("The episode has ended.", False),
    ],
)
def test_refused(text: str, answer: bool) -> None:
    assert is_refusal(reply(text)) is answer


@pytest.mark.parametrize("family", FAMILIES)
def test_solves_the_world_that_stood_still(family: str, tmp_path: Path) -> None:
    ending = play("fixed", instance(family, tier=2), tmp_path).ending
    assert ending.q_state == 1.0
    assert ending.stated == 0.9


def test_fails_the_world_that_moved(tmp_path: Path) -> None:
    for family in FAMILIES:
        ending = play("fixed", instance(family, tier=2), tmp_path, delta=1.0).ending
        assert ending.q_state < 0.5
        assert ending.stated < 0.2

"""Agents of CartPole3D: their order at level 0, and what novelty makes of them."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from owa_bench.discovery import find, get
from owa_bench.interfaces import AgentConfig, Brief, Move

pytest.importorskip("pybullet")
pytestmark = pytest.mark.physics

NAMES = sorted(name for name, card in find("agents").items() if "cartpole3d" in card.plugin.suites)


def play(name, memory, *, level=0, seeds=range(3), magnitude=1.0):
    """Return the performance of each episode and what was said last in it."""
    import gymnasium

    env = gymnasium.make("owa_bench/CartPole3D-v2", level=level, magnitude=magnitude).unwrapped
    performance, said = [], []
    for seed in seeds:
        agent = get("agents", name).make(AgentConfig())
        agent.reset(Brief(text="", goal={"actions": 5}, seed=seed), (), memory)
        observation, _ = env.reset(seed=seed)
        total, over, last = 0.0, False, None
        while not over:
            move = agent.act(observation, {"step": 0})
            if isinstance(move, Move):
                last = dict(move.beliefs) if move.beliefs else last
                move = move.action
            observation, reward, ended, cut, _ = env.step(move)
            total, over = total + reward, ended or cut
        agent.close()
        performance.append(total)
        said.append(last)
    env.close()
    return np.array(performance), said


def test_they_are_all_there():
    expected = {"nothing", "pd", "one_step", "two_step"}
    expected |= {"model_repair", "extreme_value", "action_adjustment"}
    assert expected <= set(NAMES)


@pytest.mark.parametrize("name", [*NAMES, "random"])
def test_an_agent_repeats_itself_and_keeps_json_alone(name, tmp_path: Path):
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
    first, _ = play(name, tmp_path / "a", seeds=range(1))
    second, _ = play(name, tmp_path / "b", seeds=range(1))
    assert first.tolist() == second.tolist()
    for path in (tmp_path / "a").iterdir():
        msgspec.json.decode(path.read_bytes())


def test_nothing_falls_and_the_others_hold(tmp_path):
    seeds = range(8)
    nothing = play("nothing", tmp_path, seeds=seeds)[0].mean()
    rule = play("pd", tmp_path, seeds=seeds)[0].mean()
    ahead = play("two_step", tmp_path, seeds=seeds)[0].mean()
    assert nothing == pytest.approx(0.26, abs=0.05)
    assert rule > nothing + 0.4
    assert ahead >= rule - 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one_step", "two_step"])
def test_looking_ahead_is_no_worse_than_the_rule_on_level_0(name, tmp_path):
    """Paired starts; no worse: a loss that 60 episodes cannot tell from chance."""
    seeds = range(1000, 1060)
    ahead, rule = (play(name, tmp_path, seeds=seeds)[0], play("pd", tmp_path, seeds=seeds)[0])
    gain = ahead - rule
    assert gain.mean() > -2.0 * gain.std(ddof=1) / gain.size**0.5
    assert rule.mean() == pytest.approx(0.9, abs=0.08)  # a rule that plays as it does


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("model_repair", 9),  # a longer pole falls more slowly
        pytest.param("model_repair", 7, marks=pytest.mark.slow),  # balls are pulled
        pytest.param("model_repair", 1, marks=pytest.mark.slow),  # a heavy cart
        pytest.param("extreme_value", 7, marks=pytest.mark.slow),
        pytest.param("extreme_value", 14, marks=pytest.mark.slow),
        ("action_adjustment", 1),
    ],
)
def test_novelty_is_noticed_and_level_0_is_not_called_novel(name, level, tmp_path):
    _, before = play(name, tmp_path, seeds=range(5))
    _, after = play(name, tmp_path, level=level, seeds=range(100, 103))
    plain = [x["novelty"] >= x["novelty_threshold"] for x in before if x]
    novel = [x["novelty"] >= x["novelty_threshold"] for x in after if x]
    assert sum(plain) <= 1
    assert sum(novel) >= 2

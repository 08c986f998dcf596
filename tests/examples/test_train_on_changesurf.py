"""The web example at a tiny size: it plays, trains and prints; it cannot learn yet."""

import dataclasses
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = [pytest.mark.rl, pytest.mark.browser]

SCRIPT = Path(__file__).parents[2] / "examples" / "train_on_changesurf.py"


@pytest.fixture(scope="module")
def example():
    pytest.importorskip("sb3_contrib")
    spec = importlib.util.spec_from_file_location("train_on_changesurf", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    # spawned workers look their wrappers up by name, on the path they are handed
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SCRIPT.parent))
        yield module


def test_only_the_sites_macros_are_open_and_progress_is_paid(example):
    import gymnasium

    config = example.Config()
    made = gymnasium.make(example.ENV, **example.env_kwargs(config))
    env = example.in_training(made)
    env.reset(seed=2)
    masks = env.action_masks()
    assert masks.any()
    assert not masks[len(example.ON_SITE) :].any()
    paid = []
    for _ in range(4):
        links = np.flatnonzero(env.action_masks())
        paid.append(env.step(int(links[1]))[1])
    assert paid[0] in (0.0, example.PAY)
    assert max(paid) < 1.0
    env.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_example_plays_trains_and_prints(example, capsys, monkeypatch):
    monkeypatch.setattr(example, "EPISODES_A_LINE", 1)
    config = dataclasses.replace(example.Config(), steps=64, rollout=32, batch=32, test_episodes=2)
    example.main(config)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["64", "steps"]
    assert lines[-1].startswith("success of random macros ")

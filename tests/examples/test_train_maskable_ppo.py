"""The RL example in small: a tenth of its steps already beat random play."""

import dataclasses
import importlib.util
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.rl, pytest.mark.slow]

SCRIPT = Path(__file__).parents[2] / "examples" / "train_maskable_ppo.py"


@pytest.mark.part(3)
@pytest.mark.timeout(900)
def test_training_beats_random_play(capsys):
    pytest.importorskip("sb3_contrib")
    spec = importlib.util.spec_from_file_location("train_maskable_ppo", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    config = dataclasses.replace(module.Config(), steps=8_000, test_episodes=30)
    assert module.main(config)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[-2:]] == ["random", "trained"]

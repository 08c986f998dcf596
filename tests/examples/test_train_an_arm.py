"""The arm's recipe runs from its command line; what it learns is measured by the recipe itself."""

import importlib
import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("mujoco")
pytest.importorskip("stable_baselines3")

pytestmark = pytest.mark.rl
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def recipe():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        yield importlib.import_module("train_an_arm")


def test_it_trains_tests_and_writes(recipe, tmp_path, monkeypatch, capsys):
    words = ["train", str(tmp_path / "out"), "--minutes", "0.02", "--units", "2"]
    monkeypatch.setattr(sys, "argv", words)
    recipe.main()
    rows = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [row["trained on"] for row in rows] == ["drawing", "randomised"]
    assert all(0.0 <= row["surrogate"][0] <= 1.0 and row["steps"] > 0 for row in rows)
    assert (tmp_path / "out" / "randomised.zip").exists()
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_lanes_are_a_vec_env(recipe):
    lanes = recipe.Lanes(recipe.ReachLanes(4, randomised=0.0))
    view = lanes.reset()
    ended = 0
    for _ in range(400):
        view, rewards, over, infos = lanes.step(view[:, 6:9] * 2.0)
        assert rewards.shape == over.shape == (4,)
        for lane in over.nonzero()[0]:
            ended += 1
            assert infos[lane]["terminal_observation"].shape == view[lane].shape
    assert ended > 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["out", "--minutes", "0"], "--minutes must be above 0"),
        (["out", "--units", "1"], "2 to 24"),
    ],
)
def test_wrong_use_is_told(recipe, words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["train", *words])
    with pytest.raises(SystemExit):
        recipe.main()
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())

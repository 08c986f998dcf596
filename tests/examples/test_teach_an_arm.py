"""The recipe of contact: what a student reads, and that it learns the commands of its teacher."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("numba")
torch = pytest.importorskip("torch")

PATH = Path(__file__).parents[2] / "examples" / "teach_an_arm.py"


@pytest.fixture(scope="module")
def recipe():
    spec = importlib.util.spec_from_file_location("teach_an_arm", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.rl
def test_a_student_reads_what_an_agent_is_shown_and_no_truth(recipe):
    read, wanted, success = recipe.rollout("pick_place", 3, None, 0.0)
    assert success
    assert len(read) == len(wanted) > 50
    episode = recipe.episode_of("pick_place", 3, "sim")
    pupil = recipe.Student(None)
    first = pupil.features(episode.observation())
    assert np.array_equal(first, read[0])


@pytest.mark.rl
def test_a_network_learns_the_teachers_commands(recipe):
    torch.manual_seed(0)
    read, wanted, _ = recipe.rollout("push", 3, None, 0.0)
    network = torch.nn.Linear(len(read[0]), 4)
    rows = torch.from_numpy(np.stack(read)), torch.from_numpy(np.stack(wanted))
    first = recipe.fit(network, *rows, 1)
    assert recipe.fit(network, *rows, 60) < 0.5 * first

"""Tree and picture beside the page's text."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from owa_bench.envs.changesurf.suite import HEIGHT, WIDTH, pad_picture, tree_text
from owa_bench.errors import UsageError
from owa_bench.registration import ENV_IDS
from tests.builders.changesurf_episodes import instance_of, make

ID = "owa_bench/ChangeSurf-v3"


def test_a_tree_reads_in_order_and_skips_what_says_nothing():
    tree = b"""[["RootWebArea", "S", [1, 3]], ["", "", [2]],
        ["button", "Caf\xc3\xa9", []], ["link", "", []]]"""
    assert tree_text(tree).splitlines() == ['RootWebArea "S"', '  button "Caf\\u00e9"', "  link"]
    assert tree_text(b"[]") == ""


def test_a_picture_of_any_window_has_one_size():
    whole = pad_picture(np.full((720, 1280, 3), 9, dtype=np.uint8))
    assert whole.shape == (HEIGHT, WIDTH, 3)
    assert whole[719, 1279].tolist() == [9, 9, 9]
    assert whole[720:].max() == 0


@pytest.mark.browser
def test_the_language_view_shows_both_when_asked(browser):
    assert ID in ENV_IDS
    env = make(axtree=True, screenshot=True)
    observation, _ = env.reset(options={"instance": instance_of("stay/book", 1)})
    seen = []
    for _ in range(2):
        assert observation in env.observation_space
        assert observation["axtree"].startswith("RootWebArea")
        assert observation["screenshot"].std() > 1  # a page, not a plain sheet
        seen.append(observation["axtree"])
        link = next(c for c in env.session.state.controls if c.role == "link")
        call = f'{{"tool": "click", "arguments": {{"ref": {link.ref + 1}}}}}'
        observation, *_ = env.step(call)
    assert seen[0] != seen[1]
    env.close()
    with pytest.raises(UsageError, match="language view"):
        make(view="vector", screenshot=True)


@pytest.mark.browser
@pytest.mark.slow
def test_the_checker_passes_with_a_tree(browser):
    env = gymnasium.make(f"owa_bench:{ID}", axtree=True)
    check_env(env.unwrapped)
    env.close()

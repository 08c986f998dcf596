"""The whole env where envs live: spawned workers, a running loop, threads."""

import asyncio
import threading

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from owa_bench.drift import timeline as timelines
from owa_bench.envs.changesurf import spaces
from owa_bench.shells.solution import solve
from tests.builders.changesurf_episodes import SUITE, instance_of

pytestmark = pytest.mark.browser

FAMILY = "depot/return"


def vector_env():
    return gymnasium.make("owa_bench:owa_bench/ChangeSurf-v3", view="vector", family=FAMILY)


def solved():
    """Play the oracle's script and return what the last step told."""
    instance = instance_of(FAMILY, 2)
    source = timelines.source("changesurf")
    env = SUITE.env(source)
    env.reset(options={"instance": instance})
    for action in solve(SUITE, source(instance)).actions:
        *_, info = env.step(action)
    env.close()
    return info["q_state"]


def walked(envs):
    """Return the features of a short walk by the first open macro."""
    seen = []
    try:
        observation, info = envs.reset(seed=[1, 2])
        for _ in range(3):
            seen.append(observation.tolist())
            actions = [int(np.flatnonzero(mask)[0]) for mask in info["action_mask"]]
            observation, _, _, _, info = envs.step(np.array(actions))
    finally:
        envs.close()
    return seen


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_spawned_workers_see_what_this_process_sees(browser):
    parallel = AsyncVectorEnv([vector_env] * 2, context="spawn")
    assert walked(parallel) == walked(SyncVectorEnv([vector_env] * 2))


def test_an_episode_plays_under_a_running_loop(browser):
    async def cell():
        """A notebook's cell: sync code, called while the loop runs."""
        return solved()

    assert asyncio.run(cell()) == 1.0


@pytest.mark.slow
def test_threads_play_episodes_of_their_own(browser):
    found = []
    threads = [threading.Thread(target=lambda: found.append(solved())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert found == [1.0, 1.0]


@pytest.mark.parametrize("family", ["depot/buy", "depot/return"])
def test_what_the_goals_words_name_comes_first_among_its_texts(browser, family):
    env = SUITE.env(timelines.source("changesurf"), view="vector")
    env.reset(options={"instance": instance_of(family, 3)})
    session = env.unwrapped.session
    arguments = session._arguments()
    assert arguments[0] in session.task.text.splitlines()[0]
    assert arguments[1] in session.task.goal["arguments"].values()
    assert spaces.GOALS <= len(arguments) <= spaces.ARGUMENTS
    env.close()

"""Nothing at reset tells the drift of Recall that an agent is to find out.

Classes D0 and D1 are told by what they are: more stands on a page, the task or a page
names the change.
"""

import msgspec
import pytest

from owa_bench.drift import calendar as calendars
from owa_bench.drift import timeline as timelines
from owa_bench.envs.recall.suite import SUITE
from tests.builders import recall_episodes as episodes
from tests.builders.linear_reader import Reading, guesses

FAMILIES = ("learning", "retrieval", "counterfactual")
EACH, RARE = 96, 1e-3


def readings(drift_step, first_seed):
    """Return the texts at reset of as many episodes as are compared."""
    hidden = calendars.Calendar(domain="recall", classes=("D2", "D3"))
    env = SUITE.env(timelines.source("recall", hidden))
    found = []
    for number in range(EACH):
        family = FAMILIES[number % len(FAMILIES)]
        chosen = episodes.instance(family, 2, first_seed + number)
        drifted = msgspec.structs.replace(chosen, drift_step=drift_step)
        observation, _ = env.reset(options={"instance": drifted})
        found.append(Reading(observation["text"]))
    return found


@pytest.mark.slow
def test_no_silent_drift_is_told_at_reset():
    told = guesses(readings(0, 0), readings(10_000, 1_000_000))
    assert told.chance >= RARE, f"{told.right} of {told.of} guessed"

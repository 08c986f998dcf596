"""Nothing at reset tells the drift of MultiCrew, nor the ceiling and the mute.

Every strike comes later, so a reader of the first text must do no better than chance.
"""

import msgspec

from owa_bench.drift import timeline as timelines
from owa_bench.envs.multicrew.suite import SUITE
from tests.builders import crew_episodes as episodes
from tests.builders.linear_reader import Reading, guesses

FAMILIES = ("contract", "schedule", "incident")
EACH, RARE = 60, 1e-3


def readings(drift_step, first_seed):
    """Return the texts at reset of as many episodes as are compared."""
    env = SUITE.env(timelines.source("multicrew"))
    found = []
    for number in range(EACH):
        family = FAMILIES[number % len(FAMILIES)]
        chosen = episodes.instance(family, 1, first_seed + number)
        drifted = msgspec.structs.replace(chosen, drift_step=drift_step)
        observation, _ = env.reset(options={"instance": drifted})
        found.append(Reading(observation["text"]))
    return found


def test_no_drift_is_told_at_reset():
    told = guesses(readings(0, 0), readings(10_000, 1_000_000))
    assert told.chance >= RARE, f"{told.right} of {told.of} guessed"


def test_ceiling_and_mute_are_told_to_no_seat():
    chosen = episodes.instance("contract", 3, 5)
    texts = set()
    for cap, muted in ((None, False), (1, False), (3, False), (3, True)):
        _, _, (observation, info) = episodes.begun(chosen, cap=cap, muted=muted)
        texts.add((observation["text"].split("\n\n")[0], info["goal"]))
    assert len(texts) == 1

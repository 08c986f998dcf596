"""An answer that is given without a look at the item earns nothing in Recall.

In n-back "no" was right six times in ten, so a constant earned .61; so was "no" for the
first n stimuli of a series, which nothing stands n before.
"""

import json
import re
from itertools import cycle

import numpy as np
import pytest
from msgspec.structs import replace

from owa_bench.discovery import find
from owa_bench.drift import timeline as timelines
from owa_bench.envs.recall import generate
from owa_bench.envs.recall.oracle import RecallOracle
from owa_bench.envs.recall.suite import SUITE
from owa_bench.errors import InstanceError
from owa_bench.records.instance import Instance

LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)
EPISODES = 12
MOST = 0.1
BASE_RATE = 0.4  # of "yes", as anybody can count it in worlds of his own
SERIES = re.compile(r"(\d+)-back, (\d+) of")


def constant(value):
    return lambda seed: lambda text: value


def alternating(seed):
    answers = cycle(("yes", "no"))
    return lambda text: next(answers)


def guessing(seed):
    rng = np.random.default_rng(seed)
    return lambda text: "yes" if rng.random() < BASE_RATE else "no"


def copying(seed):
    """Guess once and give the last answer again, now and then the other one."""
    rng = np.random.default_rng(seed)
    last = ["no"]

    def answer(text):
        if rng.random() < 0.1:
            last[0] = "yes" if last[0] == "no" else "no"
        return last[0]

    return answer


def after_the_first(seed):
    def answer(text):
        n, place = map(int, SERIES.search(text).groups())
        return "no" if place <= n else "yes"

    return answer


def by_level(seed):
    return lambda text: "yes" if int(SERIES.search(text)[1]) % 2 else "no"


def passing(seed):
    """Pass every other item, and say "no" to the others."""
    answers = cycle(([], "no"))
    return lambda text: next(answers)


def stopping(seed):
    """Say "no" for a drawn number of items, then end."""
    left = [int(np.random.default_rng(seed).integers(48))]

    def answer(text):
        left[0] -= 1
        return "no" if left[0] >= 0 else None

    return answer


POLICIES = {
    **{f"always {value}": constant(value) for value in ("yes", "no", "maybe")},
    "alternate": alternating,
    "base rate": guessing,
    "copy the last answer": copying,
    "no, then yes": after_the_first,
    "by level": by_level,
    "stop early": stopping,
    "pass": passing,
}


def drawn(family, tier, seed, delta):
    plain = Instance(
        suite="recall", version=SUITE.card.version, family=family, tier=tier, seed=seed
    )
    return replace(plain, drift_step=timelines.drift_step("recall", plain, delta))


def earned(policy, chosen):
    """Play an episode that answers by a policy, and return q_state."""
    env = SUITE.env(timelines.source("recall"))
    observation, info = env.reset(options={"instance": chosen})
    over = False
    while not over:
        text = observation["text"]
        call = {"tool": "go_on", "arguments": {}}
        if "Nothing is left" in text:
            call["tool"] = "finish"
        elif ", item.\n" in text:
            value = policy(text)
            values = value if isinstance(value, list) else [value]
            call = {"tool": "answer", "arguments": {"values": values}}
            if value is None:
                call = {"tool": "finish", "arguments": {}}
        observation, _, terminated, truncated, info = env.step(json.dumps(call))
        over = terminated or truncated
    return info["q_state"]


def mean_of(make, family, tier, delta):
    seeds = range(EPISODES)
    return np.mean([earned(make(s), drawn(family, tier, s, delta)) for s in seeds])


def share_of_right(self, timeline, state):
    """The old mark: the mean over all items."""
    asked = state.script.world.exercises
    return sum(score or 0 for score in state.scores.values()) / len(asked)


@pytest.mark.parametrize("delta", LEVELS)
@pytest.mark.parametrize("tier", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_no_blind_policy_earns_in_n_back(tier, delta, monkeypatch, record_property):
    earns = {name: mean_of(make, "n_back", tier, delta) for name, make in POLICIES.items()}
    record_property("earned", {name: float(mean) for name, mean in earns.items()})
    assert max(earns.values()) <= MOST, earns
    assert all(earns[name] == 0 for name in earns if name.startswith("always"))
    monkeypatch.setattr(RecallOracle, "quality", share_of_right)
    # control: the old mark pays for it
    assert mean_of(POLICIES["always no"], "n_back", tier, delta) > 0.5


def test_the_first_stimuli_of_a_series_are_not_marked(monkeypatch):
    assert mean_of(after_the_first, "n_back", 4, 0.0) == 0
    make = generate._DRAW["n_back"]

    def marked(draws):
        content = make(draws)
        exercises = tuple(replace(e, unmarked=False) for e in content["exercises"])
        return {"exercises": exercises}

    monkeypatch.setattr(generate, "_DRAW", {**generate._DRAW, "n_back": marked})
    timelines._generated.cache_clear()
    try:  # control: where they are marked, their place gives them away
        assert mean_of(after_the_first, "n_back", 4, 0.0) > 0.25
    finally:
        timelines._generated.cache_clear()


CONSTANTS = (
    *("yes", "no", "a", "b", "c", "d", "supported", "contradicted", "not stated"),
    *("Monday", "Thursday", "1", "2", ["1", "2"], ["2", "5"], ["1", "2", "3"]),
    *(["1", "2", "3", "4", "5"], "A>B", "A>C", ""),
)


@pytest.mark.parametrize("family", [f for f in generate.FAMILIES if f != "n_back"])
def test_no_constant_earns_in_any_family(family, monkeypatch):
    draws = [drawn(family, 1, seed, 0.0) for seed in (0, 1)]
    for value in CONSTANTS:
        assert np.mean([earned(lambda _, v=value: v, d) for d in draws]) <= MOST
    if family != "literacy":
        return
    by_kind = {"a to d": "b", "Claim:": "not stated", "two statements": ["2", "5"]}

    def told(text):
        return next((v for mark, v in by_kind.items() if mark in text), "Thursday")

    def mean():
        draws = [drawn(family, 1, s, 0.0) for s in range(20)]
        return np.mean([earned(told, chosen) for chosen in draws])

    assert mean() <= MOST
    monkeypatch.setattr(RecallOracle, "quality", share_of_right)
    assert mean() > 0.15  # control: one constant a kind of item


def test_one_who_remembers_earns_all_and_one_who_slips_its_share():
    """Control: the mark still tells players apart."""
    chosen = drawn("n_back", 2, 3, 0.0)

    def remembering(slip):
        words, rng = [], np.random.default_rng(0)

        def answer(text):
            n, place = map(int, SERIES.search(text).groups())
            word = re.search(r": (\w+)\. Is it", text)[1]
            if place == 1:
                words.clear()
            same = len(words) >= n and words[-n] == word
            words.append(word)
            return "yes" if same != (rng.random() < slip) else "no"

        return answer

    assert earned(remembering(0), chosen) == 1
    assert 0.6 < earned(remembering(0.1), chosen) < 0.95


def test_an_instance_of_the_old_version_is_refused():
    assert find("suites")["recall"].plugin.card.version == 2
    old = replace(drawn("n_back", 1, 0, 0.0), version=1)
    with pytest.raises(InstanceError, match="version"):
        timelines.source("recall")(old)

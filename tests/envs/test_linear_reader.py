"""No suite tells at reset what an agent is to find out: honeypot, drift, tier.

Linear readers are trained on half of the episodes and guess the other half. Rule: with
equally many episodes of two kinds right guesses are Binomial(n, 1/2) where nothing is
told; a count that a coin reaches with probability below `RARE` (Bonferroni over the two
readers) is a tell.

A tier is how hard a task is, and part of that is the task's own words: what ToolQuest
gives as entry (documents, home pages, a registry), how many values a form of ChangeSurf
takes, whether one signs in at all (tier 1 only may not) and whether a visit starts at a
search page (tier 3 only). No agent could do the task if these were hidden, and they say
nothing that it is to find out. So tiers are compared whose goals have the same shape:
ToolQuest's 3 and 4; of ChangeSurf 2 and 3, for questions asked at a home page, what is
told beside the question, which names more conditions at tier 3.
"""

import itertools
import json

import numpy as np
import pytest

from owa_bench import discovery
from owa_bench.drift import calendar as calendars
from owa_bench.drift import timeline as timelines
from owa_bench.envs.changesurf.generate import FAMILIES as GOALS
from owa_bench.envs.changesurf.generate import HONEYPOT_FAMILIES, generate
from owa_bench.envs.toolquest.generate import FAMILIES
from owa_bench.records.instance import Instance
from tests.builders.linear_reader import Reading, guesses

RARE = 1e-3  # of one comparison; the file makes about a dozen
EACH = 96  # episodes of each kind


def readings(suite, view, kinds, count, families, kept=lambda instance: True):
    """Return what is told at reset of `count` episodes of each kind, seeds apart.

    Of the instances drawn, those that are not `kept` are left out.
    """
    card = discovery.get("suites", suite).card
    schedule = timelines.own_schedule(discovery.get("suites", suite))
    schedule = schedule or calendars.parse("nested", card.domain)
    env = discovery.get("suites", suite).env(timelines.source(suite, schedule), view=view)
    found = []
    for place, (suffix, tier, delta) in enumerate(kinds):
        own = []
        for number in itertools.count():
            if len(own) == count:
                break
            plain = Instance(
                suite=suite,
                version=card.version,
                family=families[number % len(families)] + suffix,
                tier=tier or card.tiers[number // len(families) % len(card.tiers)],
                seed=1_000_000 * (place + 1) + number,
            )
            if not kept(plain):
                continue
            step = timelines.drift_step(suite, plain, delta, schedule) if delta else 0
            own.append(_told(env, plain, step))
        found.append(own)
    env.close()
    return found


def _told(env, plain, step):
    instance = Instance(**{**_fields(plain), "drift_step": step})
    observation, info = env.reset(options={"instance": instance})
    told = json.dumps({k: v for k, v in info.items() if k != "action_mask"}, default=str)
    if isinstance(observation, np.ndarray):
        masks = np.asarray(info.get("action_mask", ()), dtype=float)
        return Reading(told, (*observation.tolist(), *masks.tolist()))
    mask = observation["action_mask"].tolist()
    return Reading(f"{observation['text']}\n{told}", tuple(map(float, mask)))


def _fields(instance):
    return {name: getattr(instance, name) for name in instance.__struct_fields__}


KINDS = {
    "honeypot": (("", 0, 0.0), ("-honeypot", 0, 0.0)),
    "drift": (("", 0, 0.0), ("", 0, 1.0)),
    "tier": (("", 3, 0.0), ("", 4, 0.0)),
}


@pytest.mark.part(6)
@pytest.mark.parametrize("view", ["language", "vector"])
@pytest.mark.parametrize("kind", KINDS)
def test_toolquest_tells_nothing_at_reset(kind, view):
    first, second = readings("toolquest", view, KINDS[kind], EACH, FAMILIES)
    found = guesses(first, second)
    assert found.chance >= RARE, found


@pytest.mark.part(4)
@pytest.mark.slow
def test_changesurf_tells_no_honeypot_at_reset():
    families = tuple(name.removesuffix("-honeypot") for name in HONEYPOT_FAMILIES)
    first, second = readings("changesurf", "language", KINDS["honeypot"], 48, families)
    found = guesses(first, second)
    assert found.chance >= RARE, found


@pytest.mark.part(4)
@pytest.mark.slow
def test_changesurf_tells_no_drift_at_reset():
    """All drift struck: the credentials and the first page could be a plain world's."""
    first, second = readings("changesurf", "language", KINDS["drift"], 64, GOALS)
    found = guesses(first, second)
    assert found.chance >= RARE, found


@pytest.mark.part(4)
@pytest.mark.slow
def test_changesurf_tells_no_tier_at_reset_but_in_the_goal():
    kinds = (("", 2, 0.0), ("", 3, 0.0))
    asked = tuple(goal for goal in GOALS if all(map(_is_question, _every_tier(goal, kinds))))
    assert len(asked) >= 3
    first, second = (
        [_beside_the_goal(reading) for reading in told]
        for told in readings("changesurf", "language", kinds, 48, asked, _starts_at_home)
    )
    found = guesses(first, second)
    assert found.chance >= RARE, found


def _beside_the_goal(reading):
    """Leave out the goal's words, the first line, and its arguments, in the last."""
    rest = reading.text.partition("\n")[2]
    return reading._replace(text=rest.rpartition("\n")[0])


def _every_tier(goal, kinds):
    version = discovery.get("suites", "changesurf").card.version
    return [
        Instance(suite="changesurf", version=version, family=goal, tier=tier, seed=1_000_000)
        for _, tier, _ in kinds
    ]


def _is_question(instance):
    return generate(instance).spec.goal.workflow == "answer"


def _starts_at_home(instance):
    return generate(instance).plan.start == "home"


# Levels whose novelty is how the balls start: it is there to be seen.
SEEN_AT_START = ("table1/2", "table1/10")
LEVELS = discovery.get("suites", "cartpole3d").card.families


@pytest.mark.slow
def test_cartpole3d_tells_no_novelty_that_is_not_of_the_start():
    """The native view, numbers alone: a level with its novelty and without."""
    found = {}
    for level in LEVELS:
        pair = readings("cartpole3d", "", KINDS["drift"], 60, (level,))
        found[level] = guesses(*pair).chance
    told = {level for level, chance in found.items() if chance < RARE}
    assert told == set(SEEN_AT_START)


@pytest.mark.slow
def test_a_tell_is_found():
    """The reader is no blank: one word more in one kind is enough."""
    first, second = readings("toolquest", "language", KINDS["drift"], EACH, FAMILIES)
    told = [reading._replace(text=f"{reading.text} honey") for reading in second]
    assert guesses(first, told).chance < RARE
    numbers = [
        reading._replace(numbers=(*reading.numbers, float(place)))
        for place, kind in enumerate((first, second))
        for reading in kind
    ]
    assert guesses(numbers[:EACH], numbers[EACH:]).chance < RARE

"""Macros of the crew view: legal, private to a seat, and learnable by one policy."""

import warnings

import numpy as np
import pytest
from msgspec.structs import replace

from owa_bench.agents.solvers.crew.macros import MACROS
from owa_bench.bridges.pettingzoo import CrewMacroEnv
from owa_bench.envs.multicrew import generate
from owa_bench.envs.multicrew.suite import SUITE
from owa_bench.records.events import Action, CallRefusal
from owa_bench.shells.episode_events import ListSink
from tests.builders import crew_episodes as episodes


def made(family="contract", **options):
    return CrewMacroEnv(family=family, tier=2, **options)


def rows_of(crews, first_seed):
    pytest.importorskip("stable_baselines3")
    from owa_bench.bridges.crew_learning import CrewSeats

    return CrewSeats(crews, first_seed)


def play(env, seed, *, rounds=10_000, sink=None):
    """Play random macros; yield what the seats are shown before each round."""
    rng = np.random.default_rng(seed)
    if sink is not None:
        env.attach(sink)
    seen, infos = env.reset(seed=seed)
    while env.agents and rounds:
        yield seen, infos
        rounds -= 1
        chosen = {
            seat: int(rng.choice(np.flatnonzero(shown["action_mask"])))
            for seat, shown in seen.items()
        }
        seen, *_, infos = env.step(chosen)
    yield seen, infos


@pytest.mark.parametrize("family", generate.FAMILIES)
def test_pettingzoos_tests_pass(family):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the package itself imports
        from pettingzoo.test import parallel_api_test, parallel_seed_test
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(made(family), num_cycles=30)
        parallel_seed_test(lambda: made(family), num_cycles=20)


@pytest.mark.parametrize("family", generate.FAMILIES)
def test_what_the_mask_allows_is_seldom_refused_and_never_malformed(family):
    sink, ending = ListSink(), {}
    for seen, infos in play(made(family), 3, sink=sink):
        for seat, shown in seen.items():
            assert shown["features"].min() >= 0.0
            assert shown["features"].max() <= 1.0
            waits = shown["action_mask"].sum() == 1
            assert shown["action_mask"][0]
            assert waits or infos[seat]["acts"]
        ending = infos
    acted = [event for event in sink.events if isinstance(event, Action)]
    refused = [event for event in sink.events if isinstance(event, CallRefusal)]
    assert not [event for event in acted if event.error]
    assert len(refused) < 0.15 * len(acted)
    assert ending["lead"]["q_state"] > 0.0


def test_features_of_a_seat_know_nothing_of_others_documents():
    """The same turn of a world whose other documents say something else."""
    world = SUITE.generate(episodes.instance("contract", 2, 5))
    other = replace(
        world,
        documents=tuple(
            d if d.owner == "lead" else replace(d, lines=d.lines[:1]) for d in world.documents
        ),
    )
    found = []
    for one in (world, other):
        env = made()
        env.rounds.env._source = lambda chosen, one=one: episodes.timeline(chosen, one)
        shown = [seen["lead"]["features"] for seen, _ in play(env, 5, rounds=3)]
        found.append(np.stack(shown[:2]))  # until somebody may have told something
    assert (found[0] == found[1]).all()


@pytest.mark.rl
def test_every_seat_of_every_crew_is_a_row_that_waits_while_it_does_not_act():
    seats = rows_of([made(), made("schedule")], first_seed=7)
    features = seats.reset()
    assert features.shape == (6, *seats.observation_space.shape)
    rng, rounds = np.random.default_rng(0), 0
    while len(seats.qualities) < 2:
        masks = seats.action_masks()
        assert masks.shape == (6, len(MACROS))
        chosen = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        features, rewards, done, infos = seats.step(chosen)
        rounds += 1
        for rows in (slice(0, 3), slice(3, 6)):
            assert len(set(done[rows])) == len(set(rewards[rows])) == 1
        for over, info in zip(done, infos, strict=True):
            assert ("terminal_observation" in info) == over
    assert seats.next_seed == 7 + 2 + len(seats.qualities)
    assert rounds > 20
    seats.close()


@pytest.mark.timeout(900)
@pytest.mark.part(3)
@pytest.mark.rl
@pytest.mark.slow
def test_a_shared_policy_learns_to_beat_random_macros():
    sb3_contrib = pytest.importorskip("sb3_contrib")
    seats = rows_of([made(shaping=True), made(shaping=True)], first_seed=1_000_000)
    model = sb3_contrib.MaskablePPO(
        *("MlpPolicy", seats), n_steps=256, batch_size=256, gamma=0.995, seed=0, device="cpu"
    )
    model.learn(20_000)
    early, late = seats.qualities[:15], seats.qualities[-15:]
    assert np.mean(late) > np.mean(early)

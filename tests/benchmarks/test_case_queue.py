import argparse

import case_queue
import numpy as np
import pytest

from owa_bench.envs.casework.queue.env import CaseQueueEnv

SEEDS = (0, 1)


def test_a_search_finds_an_order_that_pays():
    env = CaseQueueEnv(level=1, cases=2)
    best = case_queue.best_order(env, SEEDS, rounds=0)
    assert best.by_ground[0]
    ours, none = (case_queue.play(p, env, SEEDS) for p in (best, case_queue.for_all(())))
    assert ours.mean() > none.mean() + 0.1
    grounds = case_queue.best_by_ground(env, SEEDS, best)
    assert case_queue.play(grounds, env, SEEDS).mean() >= ours.mean()


def test_who_knows_what_changes_needs_few_look_ups():
    env = CaseQueueEnv(level=2, cases=2)
    knows, every = case_queue.KnowsWhatChanges(), case_queue.for_all(case_queue.NUMBERS)
    assert case_queue.play(knows, env, SEEDS).min() > 0.99
    assert case_queue.play(every, env, SEEDS).max() < 0.9


def test_all_orders_hand_in_in_time():
    env = CaseQueueEnv(level=1, cases=2)
    for first in (False, True):
        player = case_queue.for_all(case_queue.NUMBERS, careless_first=first)
        case_queue.play(player, env, SEEDS)
        assert "table" in env.state().handed_in


@pytest.mark.rl
def test_the_table_is_made_at_a_small_size():
    pytest.importorskip("sb3_contrib")
    given = argparse.Namespace(steps=512, cases=2, search=2, rounds=0, tests=2, level=1)
    lines = case_queue.table(given).splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    assert len(rows) == 9
    assert sum("MaskablePPO, 512 steps" in row for row in rows) == 1
    low, high = (case_queue.interval(np.array([0.1, 0.3, 0.2]))[n] for n in (1, 2))
    assert low == pytest.approx(-0.048, abs=1e-3)
    assert high == pytest.approx(0.448, abs=1e-3)

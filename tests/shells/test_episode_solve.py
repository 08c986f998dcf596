import json

import pytest

from owa_bench.shells.solution import solve
from tests.builders.toy_suite import SUITE, corridor, honeypot, relocked, still


def instance(seed=0, **options):
    return corridor()._instances(seed)


@pytest.mark.parametrize("seed", range(20))
def test_the_oracle_scores_one_and_its_actions_replay(seed):
    timeline = still(instance(seed))
    solution = solve(SUITE, timeline)
    assert solution.q_state == 1.0
    assert solution.accepted == 2
    env = corridor()
    env.reset(options={"instance": timeline.instance})
    rewards = [env.step(action)[1] for action in solution.actions]
    assert env.ending.q_state == 1.0
    assert sum(rewards) == pytest.approx(env.ending.quality)


def test_the_oracle_declares_a_honeypot_infeasible():
    solution = solve(SUITE, honeypot(instance()))
    assert json.loads(solution.actions[-1])["tool"] == "declare_infeasible"
    assert (solution.accepted, solution.q_state) == (0, 0.0)


def test_a_solution_stops_at_the_step_limit():
    # The code changes faster than it can be carried back.
    solution = solve(SUITE, relocked(*range(1, 60_000, 500))(instance()))
    assert len(solution.actions) == SUITE.card.step_limit
    assert solution.q_state == 0.0

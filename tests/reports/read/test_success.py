"""Page one's interval of success is over tasks: its coverage over tasks as drawn."""

import numpy as np
import pytest
from scipy import stats

from owa_bench.reports.read.success import pooled_terms, pooled_words, success_over_tasks
from tests.builders.episodes import episode

RUNS = 500  # simulated runs a design: the error of a coverage of .95 is .01
# tasks, episodes of each, share of success, correlation inside a task
DESIGNS = [
    (12, 12, 0.5, 0.7),  # 3 magnitudes, 2 help budgets, 2 repeats
    (30, 12, 0.8, 0.3),
    (30, 4, 0.5, 0.7),
    (12, 4, 0.8, 0.3),
    (6, 12, 0.8, 0.7),
]
INDEPENDENT = [(12, 1, 0.5, 0.3), (30, 1, 0.8, 0.3)]  # one episode a task


def drawn(tasks, each, share, within, *, uneven, rng):
    """Return tasks and outcomes of counted episodes, alike inside a task."""
    scale = (1 - within) / within
    odds = rng.beta(share * scale, (1 - share) * scale, tasks)
    sizes = rng.integers(1, 2 * each, tasks) if uneven else [each] * tasks
    pairs = [f"p{task}" for task in range(tasks) for _ in range(sizes[task])]
    return pairs, list(rng.random(len(pairs)) < np.repeat(odds, sizes))


def over_episodes(_, successes):
    """Return the old rule: Wilson's interval as if episodes were independent."""
    won, n, z2 = sum(successes), len(successes), stats.norm.ppf(0.975) ** 2
    middle = won / n + z2 / (2 * n)
    half = (z2 * (won / n * (1 - won / n) + z2 / (4 * n)) / n) ** 0.5
    return (middle - half) / (1 + z2 / n), (middle + half) / (1 + z2 / n)


def over_tasks(pairs, won):
    interval = success_over_tasks(pairs, won)
    return interval.low, interval.high


def coverages(design, *, uneven=False):
    """Return how often the rule and the old one hold the share of tasks like these."""
    rng = np.random.default_rng([*design[:2], uneven])
    hits = np.zeros(2)
    for _ in range(RUNS):
        episodes = drawn(*design, uneven=uneven, rng=rng)
        for place, rule in enumerate((over_tasks, over_episodes)):
            low, high = rule(*episodes)
            hits[place] += low <= design[2] <= high
    return hits / RUNS


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("uneven", [False, True])
def test_correlated_episodes_are_covered_and_were_not(design, uneven, record_property):
    """The control: the old interval, on the same simulated runs, falls short."""
    ours, old = coverages(design, uneven=uneven)
    record_property("coverage over tasks, over episodes", (float(ours), float(old)))
    assert ours >= 0.93
    assert old <= 0.9


@pytest.mark.parametrize("design", INDEPENDENT)
def test_independent_episodes_are_covered_by_both(design):
    ours, old = coverages(design)
    assert ours >= 0.94
    assert old >= 0.94


def test_one_task_has_no_interval_whatever_its_episodes():
    interval = success_over_tasks(["p"] * 4, [True, False, True, True])
    assert (interval.low, interval.high) == (None, None)
    assert "one task was played" in str(interval.reason)


def test_a_trial_is_one_task():
    """One memory goes through the worlds of a trial."""
    pairs = [f"trial/s@1/f/T1/000{k // 8}/000{k % 8}" for k in range(16)]
    starts = [episode(pair=pair).start for pair in pairs]
    assert pooled_words([*map(pooled_terms, starts)]) == "16 episodes of 2 tasks"
    assert success_over_tasks(pairs[:8], [True, False] * 4).low is None


def test_what_is_pooled_is_said():
    assert pooled_words([]) == "0 episodes of 0 tasks"
    alike = [episode(index=k, pair=f"p{k}") for k in range(2)]
    assert pooled_words([pooled_terms(one.start) for one in alike]) == "2 episodes of 2 tasks"
    mixed = [
        *(episode(pair="a", delta=d, repeat=r) for d in (0.0, 1.0) for r in (0, 1)),
        episode(pair="b", day=1, phase="practice", delta=None),
        episode(pair="h", honeypot=True, interventions=None),
        episode(pair="c", control=True, role_cap=1),
        episode(pair="d", day=2, condition="before"),
    ]
    assert pooled_words([pooled_terms(one.start) for one in mixed]) == (
        "8 episodes of 5 tasks: 4 holdout, 1 practice, 1 of infeasible tasks, "
        "1 control, 1 before; 3 drift magnitudes, 2 help budgets, 2 repeats, "
        "2 ceilings on roles, 3 days"
    )

"""Tasks for training: the split of seeds and families, and how long each task is."""

import pytest

import owa_bench
from owa_bench.errors import FieldError, UnknownNameError
from owa_bench.runs.episode_tasks import (
    HELD_OUT_SEEDS,
    TRAINING_SEEDS,
    TrainingTask,
    held_out_families,
)


def test_no_seed_is_both_learnt_from_and_held_out():
    assert not range(
        max(TRAINING_SEEDS[0], HELD_OUT_SEEDS[0]), min(TRAINING_SEEDS[-1], HELD_OUT_SEEDS[-1]) + 1
    )


@pytest.mark.parametrize(
    ("suite", "families"),
    [
        ("toolquest", ("incident_timeline", "webhook_replay")),
        ("recall", ("n_back", "counterfactual")),
        ("selfrev", ("programs", "weights")),
    ],
)
def test_of_four_families_one_is_held_out(suite, families):
    """By hand: the fourth of each four of the card, then those that no public draw has."""
    assert held_out_families(suite) == families


def test_tasks_come_shortest_first_with_the_oracles_length():
    found = owa_bench.list_tasks("toolquest", tiers=(1, 2), families=("restock", "webhook_replay"))
    assert [(task.family, task.tier) for task in found] == [
        ("webhook_replay", 1), ("restock", 1), ("webhook_replay", 2), ("restock", 2),
    ]  # fmt: skip
    assert {task.family: task.split for task in found} == {
        "restock": "train", "webhook_replay": "held out",
    }  # fmt: skip
    counted = []
    for seed in range(3):
        with owa_bench.open_episode("toolquest", seed, tier=1, family="restock") as session:
            counted.append(len(session.solution()))
    assert found[1].steps == sorted(counted)[1]


def test_drift_makes_a_task_of_its_own():
    found = owa_bench.list_tasks("recall", tiers=(1,), families=("n_back",), deltas=(0.0, 1.0))
    assert [task.delta for task in found] == [0.0, 1.0]
    assert found[0].steps < found[1].steps
    assert isinstance(found[0], TrainingTask)


def test_a_wrong_name_or_tier_is_refused():
    with pytest.raises(UnknownNameError, match="restock"):
        owa_bench.list_tasks("toolquest", families=("restok",))
    with pytest.raises(FieldError, match="must be of 1, 2, 3, 4, got 9"):
        owa_bench.list_tasks("toolquest", tiers=(9,))
    with pytest.raises(FieldError, match="must be one with tools"):
        owa_bench.list_tasks("cartpole3d", tiers=(1,))

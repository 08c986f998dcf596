"""Rows that can be told apart are, by the feature that tells them, and others are not."""

import datetime as dt

import numpy as np
import pytest

from owa_bench.errors import FieldError
from owa_bench.seeding import stream
from tests.builders.separable import TREE, auc, separability

WORLDS, PER_WORLD, NOISE = 50, 60, 0.07  # three standard deviations of an AUC of 200 rows
FIRST = dt.date(2025, 1, 1)


def tables(seed=0, share=0.08):
    """Return (planted, plain) rows of worlds whose planted rows are drawn as the others."""
    rng = stream(seed, "separable")
    kinds = [], []
    for world in range(WORLDS):
        numbers = np.cumsum(rng.integers(1, 9, PER_WORLD))
        chosen = set(rng.permutation(PER_WORLD)[: round(share * PER_WORLD)].tolist())
        for position, number in enumerate(numbers.tolist()):
            row = {
                "world": world,
                "id": f"INV-{1000 + number}",
                "cents": int(rng.integers(1_000, 900_000)),
                "day": FIRST + dt.timedelta(days=int(rng.integers(365))),
                "memo": "m" * int(rng.integers(3, 30)),
                "position": position,
            }
            kinds[position not in chosen].append(row)
    return kinds


def changed(rows, **functions):
    return [row | {name: function(row) for name, function in functions.items()} for row in rows]


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_are_drawn_alike_are_not_told_apart(seed):
    planted, plain = tables(seed)
    found = separability(planted, plain)
    assert set(found) == {
        *("id rank", "id length", "id, last 1", "id, last 2", "cents % 100", "cents % 1000"),
        *("day weekday", "memo length", "position", TREE),
    }
    assert max(found.values()) < 0.5 + NOISE
    assert found[TREE] > 0.5 - NOISE


def weekend(row):
    day = row["day"]
    return day + dt.timedelta(days=5 - day.weekday())


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("id rank", {"id": lambda row: f"INV-{row['position'] // 6}"}),
        ("id, last 1", {"id": lambda row: row["id"][:-1] + "9"}),
        ("id, last 2", {"id": lambda row: row["id"][:-2] + "07"}),
        ("id length", {"id": lambda row: row["id"].replace("-", "--")}),
        ("cents % 100", {"cents": lambda row: row["cents"] // 100 * 100}),
        ("cents % 1000", {"cents": lambda row: row["cents"] // 1000 * 1000 + 990}),
        ("day weekday", {"day": weekend}),
        ("memo length", {"memo": lambda row: row["memo"] + "m" * 27}),
        ("position", {"position": lambda row: row["position"] // 6}),
    ],
)
def test_a_feature_that_tells_rows_apart_is_named(name, change):
    planted, plain = tables()
    found = separability(changed(planted, **change), plain)
    assert found[name] > 0.7
    assert found[TREE] > 0.7


def test_a_day_in_words_is_a_day():
    planted, plain = tables()
    planted = changed(planted, day=lambda row: f"{weekend(row)}")
    plain = changed(plain, day=lambda row: f"{row['day']}T12:00:00")
    assert separability(planted, plain)["day weekday"] > 0.7


def test_a_field_that_planted_rows_lack_tells_them_apart():
    planted, plain = tables()
    found = separability([row | {"memo": None} for row in planted], plain)
    assert found["memo length"] == 1.0
    assert found[TREE] == 1.0


def test_a_rank_is_among_the_rows_of_its_world():
    """Ids of a later world are higher; planted rows, the middle of each, are not."""
    rows = [
        {"world": world, "id": f"{100 * world + n}", "middle": 4 <= n <= 6}
        for world in range(9)
        for n in range(11)
    ]
    kinds = [
        [{"world": row["world"], "id": row["id"]} for row in rows if row["middle"] is middle]
        for middle in (True, False)
    ]
    assert separability(*kinds)["id rank"] == 0.5
    assert separability(*kinds)[TREE] > 0.95  # which two thresholds find


def test_ids_are_ordered_by_their_numbers():
    rows = [{"id": f"A-{number}"} for number in (8, 9, 10, 11, 99, 100, 101, 1000, 1001, 1002)]
    assert separability(rows[5:], rows[:5])["id rank"] == 1.0


def test_two_features_that_tell_only_together_are_found_by_the_tree():
    rng = stream(1, "together")
    kinds = [], []
    for _ in range(2_000):
        first, second = (int(n) for n in rng.integers(0, 100, 2))
        kinds[(first < 70) != (second < 30)].append({"a": first, "b": second})
    found = separability(*kinds)
    assert found[TREE] > 0.8
    assert found[TREE] > max(value for name, value in found.items() if name != TREE) + 0.03


def test_auc_is_the_chance_to_be_above_with_ties_as_halves():
    assert auc(np.array([1.0, 2.0]), np.array([0.0, 1.0])) == 0.875
    assert auc(np.array([1.0]), np.array([1.0])) == 0.5
    assert auc(np.array([0.0]), np.array([1.0, 2.0])) == 0.0


def test_a_few_rows_are_refused():
    rows = [{"id": "1"}] * 9
    with pytest.raises(FieldError, match="planted"):
        separability(rows[:4], rows)
    with pytest.raises(FieldError, match="plain"):
        separability(rows, rows[:4])


def test_values_without_features_say_nothing():
    rows = [{"paid": True, "rate": 0.5, "lines": (1, 2)}] * 9
    assert separability(rows, rows) == {TREE: 0.5}

"""Norms over persons: figures, anchors and the human view, by hand."""

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import stats

from owa_bench.errors import ScoringError
from owa_bench.scoring.estimate.statistic_key import StatisticKey
from owa_bench.scoring.verdict.norms import (
    human_anchors,
    human_position,
    human_table,
    median_interval,
    norm_figure,
    norm_tables,
    with_norms,
)
from tests.builders.episodes import PROTOCOL


@pytest.mark.parametrize(
    ("count", "level", "place", "coverage"),
    [
        (1, 0.95, 1, 0.0),
        (2, 0.95, 1, 0.5),
        (5, 0.95, 1, 1 - 2 / 32),
        (6, 0.95, 1, 1 - 2 / 64),
        (8, 0.95, 1, 1 - 2 / 256),
        (9, 0.95, 2, 1 - 2 * 10 / 512),
        (9, 1 - 2 * 10 / 512, 2, 1 - 2 * 10 / 512),
        (9, 0.97, 1, 1 - 2 / 512),
        (3, 0.0, 2, 0.0),
        (4, 0.3, 2, 1 - 2 * 5 / 16),
    ],
)
def test_a_median_lies_between_order_statistics(count, level, place, coverage) -> None:
    values = [float(i) for i in range(count, 0, -1)]
    low, high, found = median_interval(values, level)
    assert (low, high) == (place, count + 1 - place)
    assert found == pytest.approx(coverage, abs=1e-12)


def test_a_figure_over_persons_by_hand() -> None:
    values = [0.2, 0.9, 0.4, 0.5]
    found = norm_figure(values, 0.9)
    sd = float(np.std(values, ddof=1))
    half = stats.t.ppf(0.95, 3) * sd / 2
    assert (found.persons, found.mean, found.median) == (4, 0.5, 0.45)
    assert found.sd == pytest.approx(sd, abs=1e-6)
    assert found.low == pytest.approx(0.5 - half, abs=1e-6)
    assert found.high == pytest.approx(0.5 + half, abs=1e-6)
    assert (found.median_low, found.median_high) == (0.2, 0.9)
    alone = norm_figure([0.3], 0.9)
    assert (alone.sd, alone.low, alone.high, alone.median) == (None, None, None, 0.3)
    with pytest.raises(ScoringError, match="at least one value"):
        median_interval([], 0.9)


@pytest.mark.parametrize(
    ("raw", "a", "b", "place"),
    [
        (0.3, 0.2, 0.6, 0.25),
        (0.1, 0.2, 0.6, 0.0),
        (0.7, 0.2, 0.6, 1.0),
        (0.5, 0.5, 0.5, 1.0),
        (0.4, 0.5, 0.5, 0.0),
        (0.5, 0.9, 0.5, 1.0),
    ],
)
def test_a_position_lies_between_baseline_and_adult(raw, a, b, place) -> None:
    assert human_position(raw, a, b) == pytest.approx(place)


def figures(**medians: tuple[float, float, float]) -> dict[str, Any]:
    return {
        name: SimpleNamespace(median=m, median_low=low, median_high=high)
        for name, (m, low, high) in medians.items()
    }


def norms(**changes: Any) -> SimpleNamespace:
    fields: dict[str, Any] = {
        "axes": figures(A=(0.8, 0.7, 0.9), G=(0.5, 0.4, 0.6), P=(0.3, 0.2, 0.4)),
        "baseline": {"A": (0.2, 0.1, 0.4), "P": (0.3, 0.2, 0.4)},
        "synthetic": False,
    }
    return SimpleNamespace(**(fields | changes))


def test_anchors_are_the_baselines_and_the_persons_own() -> None:
    found = human_anchors(norms(), PROTOCOL)  # type: ignore[arg-type]
    low = PROTOCOL.anchors["G"].low
    assert set(found) == {"A", "G"}  # of P the median is no more than the baseline
    assert found["A"] == ((0.2, 0.1, 0.4), (0.8, 0.7, 0.9))
    assert found["G"] == ((low, low, low), (0.5, 0.4, 0.6))
    bare = norms(baseline={"A": (0.2, None, None)})
    assert human_anchors(bare, PROTOCOL)["A"].a == (0.2, 0.2, 0.2)  # type: ignore[arg-type]


def test_the_composite_is_the_weighted_geometric_mean_of_the_places() -> None:
    weights = dict.fromkeys(PROTOCOL.index.weights, 0.0) | {"A": 1.0, "G": 3.0}
    index = msgspec.structs.replace(PROTOCOL.index, weights=weights)
    protocol = msgspec.structs.replace(PROTOCOL, index=index)
    given = norms(
        axes=figures(A=(0.8, 0.7, 0.9), G=(0.5, 0.4, 0.6), T=(0.9, 0.8, 1.0)),
        baseline={"A": (0.2, 0.1, 0.4), "G": (0.1, 0.0, 0.2)},
    )
    point = {StatisticKey(s, "raw"): x for s, x in {"A": 0.5, "G": 0.2, "T": 0.5}.items()}
    estimates: Any = SimpleNamespace(point=point)
    table = human_table(given, estimates, protocol)  # type: ignore[arg-type]
    assert table is not None
    first, second, last = table.rows

    def mean(a: float, g: float) -> float:
        return float((a * g**3) ** (1 / 4))

    assert first[:5] == ("A", 0.5, 0.2, 0.8, 0.5)
    moved = [mean(0.4 / 0.7, 0.25), mean(0.1 / 0.4, 0.25)]
    moved += [mean(0.3 / 0.5, 0.25), mean(0.3 / 0.7, 0.25)]
    assert first[5:] == pytest.approx(moved, abs=1e-6)
    assert second[:5] == ("G", 0.2, 0.1, 0.5, 0.25)
    moved = [mean(0.5, 0.2 / 0.5), 0.0, mean(0.5, 0.1 / 0.3), mean(0.5, 0.1 / 0.5)]
    assert second[5:] == pytest.approx(moved, abs=1e-6)
    assert last[0] == "composite"
    assert last[4] == pytest.approx(mean(0.5, 0.25), abs=1e-6)
    assert last[5:] == (None,) * 4
    assert "synthetic" not in table.note
    programs = norms(synthetic=True)
    assert "synthetic norms" in human_table(programs, estimates, protocol).note  # type: ignore[arg-type,union-attr]
    lost: Any = SimpleNamespace(point={StatisticKey("A", "raw"): np.nan})
    assert human_table(given, lost, protocol) is None  # type: ignore[arg-type]
    assert human_table(None, estimates, protocol) is None


def persons(count: int, median: float = 0.6, sd: float | None = 0.2) -> SimpleNamespace:
    return SimpleNamespace(persons=count, median=median, mean=0.5, sd=sd)


def test_figures_of_enough_persons_replace_thresholds() -> None:
    least = 4
    section = msgspec.structs.replace(PROTOCOL.norms, persons_min=least)
    protocol = msgspec.structs.replace(PROTOCOL, norms=section)
    given: Any = SimpleNamespace(
        thresholds={"span": persons(least, 5.5), "core": persons(least - 1, 0.9)},
        families={"s/f": persons(least), "s/g": persons(least - 1), "s/h": persons(least, sd=0.0)},
        group="experts",
        synthetic=False,
    )
    found = with_norms(protocol, given).norms
    assert (found.span, found.core) == (5.5, PROTOCOL.norms.core)
    assert found.measured == ("span", "experts")
    assert found.experts == {"s/f": (0.5, pytest.approx(0.2 / 2))}
    assert found.expert_counts == {"s/f": least}
    for changes in ({"group": "adults"}, {"synthetic": True}):
        other = SimpleNamespace(**(vars(given) | changes))
        assert with_norms(protocol, other).norms.experts == {}  # type: ignore[arg-type]
    none = msgspec.structs.replace(section, persons_min=None)
    unset = msgspec.structs.replace(PROTOCOL, norms=none)
    assert with_norms(unset, given) is unset
    assert with_norms(protocol, None) is protocol


def test_norms_are_shown_with_who_played() -> None:
    one = norm_figure([0.2, 0.4], 0.95)
    run = SimpleNamespace(
        person="ann",
        scripted=False,
        episodes=3,
        step_s=1.23456789,
        evidence_root="e" * 64,
        key_id="k",
    )
    given: Any = SimpleNamespace(
        synthetic=False,
        group="adults",
        public_key="",
        families={"s/f": one},
        axes={"A": one},
        thresholds={},
        runs=(run, SimpleNamespace(**(vars(run) | {"scripted": True}))),
    )
    table, people = norm_tables(given)
    assert [row[0] for row in table.rows] == ["s/f", "A"]
    assert dict(zip(table.columns, table.rows[0], strict=True))["mean"] == 0.3
    assert table.note.startswith("adults; unattended: they enter no gate")
    assert people.rows[0] == ("ann", "person", 3, 1.234568, "e" * 16, "k", "nobody")
    assert people.rows[1][1] == "program"

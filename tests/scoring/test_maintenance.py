"""Maintenance: unchanged systems pass, worn ones fail, and patches are no help."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.events import Intervention
from owa_bench.records.observables import Observables
from owa_bench.records.trace import Trace
from owa_bench.scoring.bootstrap import Sampling
from owa_bench.scoring.maintenance import (
    Day,
    checkpoint_days,
    decide,
    maintenance,
    ratios,
)
from owa_bench.scoring.observables import observe
from tests.builders.episodes import PRICES, PROTOCOL, episode

HOW = Sampling("tasks like these", None, 50)
RULES = PROTOCOL.closures


def window(free: int = 7, moved: int = 7, *, patch: bool = False) -> list[Trace]:
    """Return a checkpoint a day: first drift-free days, then days under drift."""
    extra = (Intervention(step=1, kind="patch", minutes=1.0),) if patch else ()
    return [
        episode(
            index=day,
            day=day,
            delta=None,
            realised=0.0 if day < free else 0.3,
            phase="checkpoint",
            extra=extra if day == free else (),
        )
        for day in range(free + moved)
    ]


@cache
def window_table() -> Observables:
    return observe(window(), PRICES)


def simulated(kept: float, seed: int, tasks: int = 60) -> str:
    """Return the verdict on daily means over tasks that keep a share in drift."""
    rng = np.random.default_rng(seed)
    skill = rng.uniform(0.3, 0.9, tasks)
    weights = rng.multinomial(tasks, np.full(tasks, 1 / tasks), 400) / tasks
    table = window_table()

    def day(number: int) -> Day:
        share = kept if number >= 7 else 1.0
        won = rng.random((10, tasks)) < skill * share
        values = won.mean(axis=0)
        return Day(float(values.mean()), weights @ values, HOW, ("p0/0",))

    return maintenance(table, (), RULES, 0.95, day).status


def test_days_are_told_apart() -> None:
    found = checkpoint_days(observe(window(3, 2), PRICES))
    assert found == ((0, 1, 2), (3, 4))


def test_an_unchanged_system_passes(
    record_property: Callable[[str, object], None],
) -> None:
    verdicts = [simulated(1.0, seed) for seed in range(60)]
    record_property("PASS of 60, unchanged", verdicts.count("PASS"))
    assert verdicts.count("PASS") >= 48


def test_a_worn_system_fails(
    record_property: Callable[[str, object], None],
) -> None:
    verdicts = [simulated(0.90, seed) for seed in range(60)]
    record_property("PASS of 60, keeps 90 percent", verdicts.count("PASS"))
    assert verdicts.count("PASS") <= 3


def test_one_bad_day_fails() -> None:
    assert decide(0.97, [1.0, 0.97, 0.94], 0.95) is False


def test_a_patched_window_fails() -> None:
    table = observe(window(patch=True), PRICES)
    found = maintenance(table, (), RULES, 0.95, lambda _: None)
    assert (found.status, found.reason) == ("FAIL", "1 human patches in the window")


@pytest.mark.parametrize(
    ("traces", "missing", "words"),
    [
        (window(7, 3), (), "3 consecutive checkpoint days under drift of 7"),
        (window(2, 7), (), "2 drift-free checkpoint days of 7"),
        (window(), ("M",), "no evidence on M"),
        (window(), (), "not computable on every day"),
        ([episode()], (), "0 consecutive"),
    ],
)
def test_what_is_not_tested_says_why(
    traces: list[Trace], missing: tuple[str, ...], words: str
) -> None:
    table = observe(traces, PRICES)
    found = maintenance(table, missing, RULES, 0.95, lambda _: None)
    assert found.status == "NOT TESTED"
    assert words in found.reason


def test_other_instances_are_no_baseline() -> None:
    def day(number: int) -> Day:
        return Day(0.5, np.full(9, 0.5), HOW, (f"p{number}/0",))

    found = maintenance(observe(window(), PRICES), (), RULES, 0.95, day)
    assert "same instances" in found.reason


def test_bad_input_is_refused() -> None:
    with pytest.raises(ScoringError):
        ratios(np.full((2, 3), 1.2), np.full((2, 3), 0.5))
    with pytest.raises(ScoringError):
        ratios(np.ones((2, 3)), np.ones((3, 3)))
    with pytest.raises(ScoringError):
        decide(None, [1.0], 0.95)
    assert math.isnan(ratios(np.zeros((1, 2)), np.zeros((1, 2))).mean[0])

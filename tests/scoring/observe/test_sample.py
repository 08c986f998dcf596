"""Which episodes the axes of one agent rest on."""

import msgspec
import numpy as np
import pytest

from owa_bench.records.trace import Trace
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.observe.sample import Sample, grouped_of, sample_of
from tests.builders.episodes import PRICES, PROTOCOL, episode, plan_of


def sample(traces: list[Trace], **changes: object) -> Sample:
    plan = msgspec.structs.replace(plan_of(traces), **changes)
    return sample_of(plan, observe(traces, PRICES), PROTOCOL, PRICES)


def base(found: Sample) -> list[int]:
    """Return the episodes of the base rows by index of their plan entry."""
    return found.table.index[found.base].tolist()


def numbered(*terms: dict) -> list[Trace]:
    return [episode(**({"index": i, "pair": f"p{i}"} | t)) for i, t in enumerate(terms)]


def test_holdout_goes_before_checkpoints_and_practice_counts_nowhere() -> None:
    days = [
        {"phase": "checkpoint", "day": 1},
        {"phase": "checkpoint", "day": 4},
        {"phase": "checkpoint", "day": 4},
        {"phase": "practice", "day": 9},
    ]
    assert base(sample(numbered(*days))) == [0, 1, 2]  # the mean of the window
    asked = {"phase": "holdout", "condition": "after", "window": (0, 4)}
    assert base(sample(numbered(*days, asked))) == [0, 1, 2]
    assert base(sample(numbered(*days, {"phase": "holdout"}))) == [4]
    practice = sample(numbered({"phase": "practice", "day": 0}))
    assert (len(practice.table), base(practice)) == (0, [])


def test_a_suite_of_the_days_is_read_from_its_checkpoints_beside_one_played_once() -> None:
    """A gain of one suite's holdout must not hide the checkpoints of another."""
    terms = (
        {"phase": "checkpoint", "day": 1},
        {"phase": "practice", "day": 1},
        {"phase": "holdout", "suite": "recall"},
        {"phase": "checkpoint", "day": 1, "suite": "recall"},
    )
    assert base(sample(numbered(*terms))) == [0, 2]


def test_honeypots_and_calendars_of_their_own_are_left_out() -> None:
    found = sample(numbered({}, {"honeypot": True}, {"calendar": "nested:DOM"}, {}))
    assert found.table.index.tolist() == [0, 3]


def test_axes_rest_on_budget_0_and_the_frontier_on_all() -> None:
    terms = [{"interventions": k} for k in (4, 0, None, 0)]
    found = sample(numbered(*terms))
    assert base(found) == [1, 3]
    assert found.table.index.tolist() == [0, 1, 2, 3]
    assert base(sample(numbered({"interventions": None}, {"interventions": 3}))) == []


def test_priced_rows_are_those_of_tasks_played_without_help_too() -> None:
    priced = {"interventions": 4, "priced": True}
    found = sample(
        numbered(
            {"pair": "a"},
            {"pair": "a", **priced},
            {"pair": "a", "interventions": 4},
            {"pair": "a", "delta": 0.5, **priced},
            {"pair": "b", **priced},
        )
    )
    assert (base(found), found.table.index[found.priced].tolist()) == ([0], [1])


def test_controls_of_crews_are_no_base_rows_whatever_their_size() -> None:
    found = sample(
        numbered(
            {"pair": "a", "role_cap": 1, "control": True},
            {"pair": "a", "role_cap": 3},
            {"pair": "a", "role_cap": 3, "muted": True, "control": True},
            {"pair": "b", "role_cap": 1},
            {"pair": "b", "role_cap": 3, "control": True},
        )
    )
    assert base(found) == [1, 3]
    assert found.crews.all()


def test_families_weigh_as_the_plan_says_and_sum_to_1() -> None:
    traces = numbered({"family": "b"}, {"family": "a"}, {"suite": "web", "family": "c"})
    plan = plan_of(traces)
    first, second = plan.suites
    first = msgspec.structs.replace(first, weight=3.0, family_weights=(("a", 4.0),))
    found = sample(traces, suites=(second, first))
    assert found.families == ("toolquest/a", "toolquest/b", "web/c")
    # Weights 3 and 1 of the suites; 4 and 1 of the families a and b.
    assert found.weights == pytest.approx(np.array([3 * 0.8, 3 * 0.2, 1.0]) / 4)
    native = msgspec.structs.replace(second, native=True)
    assert sample(traces, suites=(first, native)).families[-1] == "toolquest/b"


def test_drift_response_rests_on_grouped_suites_under_any_calendar() -> None:
    traces = numbered(
        {"interventions": 0, "calendar": "nested:DOM"},
        {"interventions": 2},
        {"suite": "web", "family": "c"},
        {"interventions": 0},
    )
    plan = plan_of(traces)
    grouped = msgspec.structs.replace(plan.suites[0], groups=(("DOM", ("web/d",)),))
    plan = msgspec.structs.replace(plan, suites=(grouped, plan.suites[1]))
    found = grouped_of(plan, observe(traces, PRICES), PROTOCOL, PRICES)
    assert found.table.index.tolist() == [0, 3]
    assert found.base.all()
    assert found.crews.all()
    native = msgspec.structs.replace(grouped, native=True)
    plan = msgspec.structs.replace(plan, suites=(native,))
    assert not len(grouped_of(plan, observe(traces, PRICES), PROTOCOL, PRICES).table)

"""$ by hand."""

import dataclasses
import math
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from owa_bench.errors import ScoringError
from owa_bench.records.trace import Trace
from owa_bench.scoring.axes.economics import _hourly, throughput
from tests.builders.episodes import PRICES, PROTOCOL, episode
from tests.builders.verdicts import axis

HELP = (("supervisor_min", 8.0, "human"),)  # 8 USD, an expert's 8 decisions


def worked(trace: Trace, **work: int) -> Trace:
    """Return the trace with another work of its episode."""
    start, *rest = trace.events
    return dataclasses.replace(trace, events=(msgspec.structs.replace(start, **work), *rest))


def test_more_actions_of_the_answer_key_are_no_more_of_an_experts_time() -> None:
    """A reads H_t, $ does not; more to read is more time (the control)."""
    few, many = (worked(episode(horizon=h, costs=HELP), decisions=8) for h in (4, 40))
    assert axis([few], "$").high_anchor == axis([many], "$").high_anchor
    long = worked(episode(horizon=4, costs=HELP), decisions=8, read=1400 * 8)
    assert axis([few], "$").high_anchor == pytest.approx(2 * axis([long], "$").high_anchor)


def test_a_suite_that_does_not_say_what_its_work_is_has_no_expert() -> None:
    silent = worked(episode(index=1, pair="b", costs=HELP), decisions=0)
    score = axis([episode(costs=HELP), silent], "$")
    why = "no episode of toolquest says what work it is: the card has no `work`"
    assert (score.value, score.reason) == (None, why)


def test_an_older_protocol_prices_actions_as_it_did() -> None:
    """Its runs are recomputed: 8 actions of 3 minutes are 24 USD."""
    rules = msgspec.structs.replace(PROTOCOL.economics, expert=None, expert_minutes=3.0)
    old = msgspec.structs.replace(PROTOCOL, economics=rules)
    score = axis([worked(episode(costs=HELP), decisions=0)], "$", old)
    assert score.high_anchor == pytest.approx(10**0.5 / 24)


def test_cost_parity_with_the_expert_reads_four_fifths() -> None:
    score = axis([episode(costs=HELP)], "$")
    assert score.raw == pytest.approx(1 / 8)
    assert score.value == pytest.approx(0.8)
    assert score.low_anchor == pytest.approx(0.01 / 8)
    assert score.high_anchor == pytest.approx(10**0.5 / 8)


def test_failures_cost_too() -> None:
    traces = [
        episode(index=0, pair="a", costs=HELP),
        episode(index=1, pair="b", costs=HELP, q_state=0.0),
    ]
    score = axis(traces, "$")
    assert score.raw == pytest.approx(1 / 16)
    assert score.value == pytest.approx(math.log(50) / math.log(100 * 10**0.5))
    assert score.details["beside"]["v / v_expert"]["value"] == pytest.approx(0.5)


def test_few_successes_cost_the_axis_in_proportion() -> None:
    """One of four at a thousandth of the expert's cost: 1 by price, .25 / .5 by s."""
    cheap = (("supervisor_min", 0.008, "human"),)
    traces = [episode(index=i, pair=f"p{i}", costs=cheap, q_state=float(i == 0)) for i in range(4)]
    score = axis(traces, "$")
    assert score.value == pytest.approx(0.5)
    assert score.details["beside"]["v / v_expert"]["value"] == pytest.approx(250)


def test_nothing_done_is_zero_and_nothing_spent_is_missing() -> None:
    assert axis([episode(costs=HELP, q_state=0.0)], "$").value == 0.0
    free = axis([episode(costs=())], "$")
    assert free.value is None
    assert "price above 0" in str(free.reason)


def test_an_unknown_price_is_missing_not_free() -> None:
    known = {"supervisor_min": PRICES.micro_usd_per_million["supervisor_min"]}
    card = msgspec.structs.replace(PRICES, micro_usd_per_million=known)
    score = axis([episode(costs=(("gpu_s", 1.0, "agent"),))], "$", prices=card)
    assert score.value is None
    assert "unknown" in str(score.reason)
    known_too = episode(index=1, pair="b", costs=HELP)
    found = axis([episode(costs=(("gpu_s", 1.0, "agent"),)), known_too], "$", prices=card)
    assert (found.used, found.cells) == (1, 2)


def test_the_evaluation_stream_does_not_count_outside_checkpoints() -> None:
    extra = (*HELP, ("gpu_s", 1e6, "evaluation"))
    assert axis([episode(costs=extra)], "$").raw == pytest.approx(1 / 8)
    moved = (("supervisor_min", 8.0, "evaluation"),)
    checked = episode(costs=moved, phase="checkpoint", day=1, delta=None)
    assert axis([checked], "$").raw == pytest.approx(1 / 8)


def test_bad_sums_are_refused() -> None:
    mixed = np.array([1.0, -1.0])
    for done, spent in ((np.ones(2), mixed), (mixed, np.ones(2))):
        with pytest.raises(ScoringError, match="negative"):
            throughput(done, spent)
    assert np.isnan(throughput(np.ones(1), np.zeros(1))).all()
    assert throughput(np.array([0.0, 1.0]), np.array([0.5, 0.5])).tolist() == [0.0, 2.0]


def test_an_expert_costs_the_minutes_of_reading_deciding_and_typing() -> None:
    """2 USD a minute, 24 minutes on average: an expert does 1 task per 48 USD.

    4200 / 1400 + 18 x 1 + 750 / 250 = 24 minutes a task.
    """
    assert PROTOCOL.economics.expert is not None
    rates = PROTOCOL.economics.expert
    assert (rates.reading, rates.typing, rates.decision["toolquest"]) == (1400.0, 250.0, 1.0)
    rules = PROTOCOL.economics
    protocol = msgspec.structs.replace(PROTOCOL, economics=rules)
    prices = {**PRICES.micro_usd_per_million, "supervisor_min": 2 * 10**12}
    card = msgspec.structs.replace(PRICES, micro_usd_per_million=prices)
    work = {"read": 4200, "written": 750}
    traces = [
        worked(episode(index=0, pair="a", costs=HELP), decisions=18, **work),
        worked(episode(index=1, pair="b", costs=()), decisions=36, **work),
        worked(episode(index=2, pair="c", costs=()), decisions=0, **work),
    ]
    score = axis(traces, "$", protocol, card)
    assert score.raw == pytest.approx(3 / 16)
    assert score.low_anchor == pytest.approx(0.01 / 48)
    assert score.high_anchor == pytest.approx(10**0.5 / 48)
    assert score.details["beside"]["v / v_expert"]["value"] == pytest.approx(9.0)
    assert score.details["beside"]["expert minutes an episode"]["value"] == pytest.approx(24.0)
    # A minute of simulated time each, half a second by the wall.
    assert score.details["tasks per simulated hour"] == pytest.approx(60.0)
    assert score.details["tasks per wall hour"] == pytest.approx(7200.0)


def test_a_millionth_of_a_usd_is_kept() -> None:
    cheap = {**PRICES.micro_usd_per_million, "api_calls": 10**6}
    card = msgspec.structs.replace(PRICES, micro_usd_per_million=cheap)
    score = axis([episode(costs=(("api_calls", 1.0, "agent"),))], "$", prices=card)
    assert score.raw == 1e6
    assert score.details["beside"]["USD an episode"]["value"] == 1e-6


def test_without_time_there_is_no_task_an_hour() -> None:
    nothing, second = np.zeros(2), np.array([0.5, 0.0])
    table = SimpleNamespace(u=np.array([True, False]), simulated_s=nothing, wall_s=second)
    found = _hourly(SimpleNamespace(table=table, base=np.ones(2, bool)))
    assert found == {"tasks per simulated hour": None, "tasks per wall hour": 7200.0}

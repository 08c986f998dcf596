"""CPU seconds of agents are measured by the harness, whatever becomes of the agent."""

import os
from dataclasses import replace

import msgspec
import pytest

from owa_bench.errors import ProtocolError
from owa_bench.records import price_card
from owa_bench.records.events import Resource
from owa_bench.records.plan import Budget
from owa_bench.reports import statement
from owa_bench.runs.store import files
from owa_bench.sandbox import process_tree
from tests.builders.episodes import PRICE_BYTES, PRICES, episode
from tests.builders.small_runs import played, run_options, small  # noqa: F401  fixtures
from tests.builders.verdicts import axis

pytestmark = pytest.mark.slow

BURNT_S = 0.27  # of .3: the kernel counts in hundredths


def may_make_groups():
    folder = process_tree.groups_folder()
    return folder is not None and os.access(folder, os.W_OK)


def measured(layout):
    (leaf,) = files.read_leaves(layout)
    trace = files.read_trace(layout, leaf)
    used = [e for e in trace.of(Resource) if e.meter == "cpu_s"]
    assert {event.source for event in used} == {"harness"}
    return trace, sum(event.amount for event in used)


def test_a_process_that_the_agent_starts_counts(played, small):  # noqa: F811
    _, used = measured(played(small("odd_agents:Burns"), in_process=False))
    assert 2 * BURNT_S <= used < 10 * BURNT_S


@pytest.mark.skipif(not may_make_groups(), reason="no control group may be made here")
def test_a_process_that_the_agent_ignores_counts(played, small):  # noqa: F811
    _, used = measured(played(small("odd_agents:BurnsUnseen"), in_process=False))
    assert BURNT_S <= used < 10 * BURNT_S


def test_an_agent_that_is_killed_is_counted(played, small):  # noqa: F811
    request = small("odd_agents:BurnsAndHangs", budget=Budget(act_s=3.0))
    trace, used = measured(played(request, in_process=False))
    assert trace.end.outcome == "agent_timeout"
    assert used >= BURNT_S


def test_in_process_the_thread_is_counted(played, small):  # noqa: F811
    _, used = measured(played(small("odd_agents:Burns")))
    assert used >= BURNT_S


def test_an_agent_that_uses_nothing_else_has_a_cost_and_reads_zero(
    played,  # noqa: F811
    small,  # noqa: F811
):
    layout = played(small("odd_agents:Burns"), in_process=False)
    [verdict] = statement.write(layout.root, None).verdicts
    score = next(axis for axis in verdict.axes if axis.symbol == "$")
    assert score.value == 0.0
    assert score.details["beside"]["USD an episode"]["value"] > 0


@pytest.mark.parametrize("hosting", sorted(price_card.UNMEASURED))
def test_an_agent_that_cannot_be_measured_has_no_throughput(hosting):
    start, *rest = episode().events
    first = msgspec.structs.replace(start, hosting=hosting)
    trace = replace(episode(), events=(first, *rest))
    score = axis([trace], "$")
    assert score.value is None
    assert f"`{hosting}` hosting is not measured" in str(score.reason)


def test_seconds_of_the_wall_have_no_price():
    assert PRICES.price("wall_s") == 0
    priced = PRICE_BYTES.replace(b"wall_s = 0 ", b"wall_s = 5 ")
    with pytest.raises(ProtocolError, match="never priced"):
        price_card.load(priced)

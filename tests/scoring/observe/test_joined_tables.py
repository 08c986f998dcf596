"""A table that is observed a few episodes at a time is the table of all at once."""

from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owa_bench.records.events import Fault, Incident, Probe, Resource, Tracking
from owa_bench.scoring.observe import observables
from owa_bench.scoring.observe.observables import observe
from tests.builders.episodes import PRICES, episode

EXTRAS = (
    (),
    (Probe(step=1, item="a", lag_days=1.0, correct=True, returned=(("x", True), ("y", False))),),
    (Probe(step=1, item="bb", lag_days=1.0, correct=False, returned=(("x", True),)),),
    (
        Fault(step=1, kind="gripper", injected=True, recovered=False),
        Tracking(step=1, task="t", error=0.1, tolerance=0.2),
    ),
    (Incident(step=1, severity="major", source="env"),),
    (Resource(step=1, meter="paper", amount=3.0, source="env"),),
    (Resource(step=1, meter="ink", amount=2.0, source="env"),),
)


def same(one, other):
    """Hold that two tables have the same columns: types, shapes and values."""
    for item in fields(one):
        mine, theirs = getattr(one, item.name), getattr(other, item.name)
        if is_dataclass(mine):
            same(mine, theirs)
        elif isinstance(mine, np.ndarray):
            assert mine.dtype == theirs.dtype, item.name
            np.testing.assert_array_equal(mine, theirs, err_msg=item.name)
        else:
            assert mine == theirs, item.name


def traces(draws):
    return [
        episode(
            index=index,
            arm=f"agent{index % 3}",
            pair="p" * (1 + index % 5),
            delta=None if index % 4 == 0 else 0.5,
            classes=("D1",) if index % 2 else (),
            categories=("read", f"kind{extra}"),
            beliefs=(("class", 0.5, True),) * (index % 3),
            violations=(("rule", "disqualify"),) if index % 7 == 6 else (),
            extra=EXTRAS[extra],
        )
        for index, extra in draws
    ]


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, len(EXTRAS) - 1)),
        max_size=14,
        unique_by=lambda draw: draw[0],
    ),
    st.integers(1, 6),
)
def test_in_parts_is_at_once(draws, at_once):
    given_traces = traces(draws)
    whole = observe(sorted(given_traces, key=lambda trace: trace.start.index), PRICES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(observables, "_AT_ONCE", at_once)
        same(observe(iter(given_traces), PRICES), whole)


def test_a_mask_of_all_copies_nothing_and_one_of_some_keeps_their_entries():
    table = observe(traces([(0, 1), (1, 3), (2, 2)]), PRICES)
    assert table.take(np.ones(3, dtype=np.bool_)) is table
    some = table.take(np.array([False, True, True]))
    assert some.index.tolist() == [1, 2]
    assert some.probes.row.tolist() == [1]

"""Kinds of tools in a placement: in use, lacking, given up; what of a table counts."""

import numpy as np
import pytest

from owa_bench.records.placement import KIND_TRIES
from owa_bench.scoring.placement.kinds import KindCount, KindUse
from owa_bench.scoring.placement.worlds import TraceEvidence
from tests.builders.columns import Columns

SHOWN = KindUse(100, 2, "a")


def seen(**kinds):
    return KindCount(kinds, asked=3, least=2)


@pytest.mark.parametrize(
    ("used", "needed", "hopeless"),
    [
        (0, KIND_TRIES - 1, False),
        (0, KIND_TRIES, True),
        (1, KIND_TRIES, True),
        (2, KIND_TRIES, False),
    ],
)
def test_a_kind_is_given_up_after_so_many_worlds_that_need_it(used, needed, hopeless):
    found = seen(api=SHOWN, browser=SHOWN, files=KindUse(needed, used, "b"))
    assert found.hopeless == hopeless
    assert found.enough == (used >= 2)


def test_one_kind_that_may_still_come_is_hope_beside_others_that_are_given_up():
    gone = KindUse(KIND_TRIES, 0, "b")
    assert not seen(api=SHOWN, browser=SHOWN, files=gone, cloud=KindUse(1, 0, "c")).hopeless
    assert seen(api=SHOWN, browser=SHOWN, files=gone, cloud=gone).hopeless


def test_where_no_world_needs_a_third_kind_there_is_no_hope():
    assert seen(api=SHOWN, browser=KindUse(1, 0, "a")).hopeless
    assert not seen(api=SHOWN, browser=KindUse(1, 0, "a"), files=KindUse(1, 0, "a")).hopeless


def test_an_agent_that_uses_a_kind_in_a_quarter_of_its_worlds_is_given_up_in_1_of_100():
    miss = 0.75**KIND_TRIES + KIND_TRIES * 0.25 * 0.75 ** (KIND_TRIES - 1)
    assert round(miss, 3) == 0.009


def test_the_words_name_what_is_in_use_and_where_the_rest_was_needed():
    lacking = KindUse(28, 0, "projforge")
    found = seen(api=SHOWN, browser=KindUse(9, 1, "changesurf"), cloud=lacking, files=lacking)
    assert found.words == (
        "1 of 3 kinds of tools: api; browser in 1 of 9 worlds of changesurf; "
        "cloud, files in 0 of 28 worlds of projforge"
    )
    assert seen(api=SHOWN, browser=SHOWN, files=SHOWN, cloud=lacking).words == (
        "3 of 3 kinds of tools"
    )
    assert seen(api=SHOWN).words == "1 of 3 kinds of tools: api; no world needs another"
    assert seen().words == "0 of 3 kinds of tools"


def test_worlds_count_that_were_played_under_drift_without_help():
    rows = [  # pair, delta, help, needs the kind, used with success
        ("a", 0.25, 0, True, True),
        ("a", 0.5, 0, True, False),
        ("b", 0.25, 0, True, False),
        ("c", 0.0, 0, True, True),
        ("d", 0.25, 2, True, True),
        ("e", 0.25, 0, False, False),
        ("f", 0.25, 0, True, True),  # not among those that count
    ]
    pair, delta, helps, needed, used = (np.array(column) for column in zip(*rows, strict=True))
    table = Columns(
        index=np.arange(len(rows)),
        pair=pair,
        suite=np.array(["s"] * len(rows)),
        delta=delta,
        interventions=helps,
        needs_tools=needed,
        used=used[:, None],
        offered=needed[:, None],
        categories=("browser",),
    )
    evidence = TraceEvidence(table, frozenset(), frozenset(), 1, lambda stage: ())
    assert evidence.kinds(range(6)) == {"browser": KindUse(2, 1, "s")}
    assert evidence.kinds([5]) == {}

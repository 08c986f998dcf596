"""A committed table of the control battery must say what its instances score."""

import pytest
import sweep
from sweep_grounds import Cell

SCORES = {
    "oracle": 1.0,
    "noop": 0.0,
    "random": 0.1,
    "plausible_wrong": 0.4,
    "over_doer": 0.8,
    "leak_probe": 0.0,
}


def played(**changed):
    cell = Cell("restock", 1, "none")
    return sweep.Played(cell, 7, SCORES | changed, "finished", 1, 0.0)


def test_a_row_fits_the_instances_it_was_made_of():
    one = sweep.table([played()])
    two = sweep.table([played(), played(plausible_wrong=0.2)])
    assert list(sweep.stale_rows(one, [played()])) == []
    assert list(sweep.stale_rows(two, [played(), played(plausible_wrong=0.2)])) == []


@pytest.mark.parametrize(
    "changed", [{"oracle": 0.9}, {"noop": 0.01}, {"over_doer": 0.9}, {"leak_probe": 1}]
)
def test_an_instance_beyond_its_row_makes_the_table_stale(changed):
    two = sweep.table([played(), played(plausible_wrong=0.2)])
    assert len(list(sweep.stale_rows(two, [played(**changed)]))) == 1


def test_a_row_of_one_instance_must_be_equal():
    one = sweep.table([played()])
    assert len(list(sweep.stale_rows(one, [played(random=0.2)]))) == 1


def test_a_cell_without_a_row_is_named():
    assert "no row" in next(sweep.stale_rows("", [played()]))

"""The scores of a run in three lines, without a signature."""

import pytest

from owa_bench.errors import RunDirectoryError
from owa_bench.report.scores import score
from tests.report.small_run import make_plan, make_run


def test_a_run_is_scored_by_arm_and_equal_to_itself(tmp_path):
    layout = make_run(tmp_path / "run", make_plan(1))
    found = score(str(layout.root))
    assert set(found) == {arm.name for arm in make_plan(1).arms}
    verdict = next(iter(found.values()))
    values = {axis.symbol: axis.value for axis in verdict.axes}
    assert set(values) >= set("AGPMTRSEW$")
    assert score(layout.root) == found


def test_no_run_is_named(tmp_path):
    with pytest.raises(RunDirectoryError):
        score(tmp_path / "nothing")

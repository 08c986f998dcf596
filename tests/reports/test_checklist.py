"""Checklist: each item says what the run has, and `not` where it has nothing."""

from msgspec.structs import replace

from owa_bench.reports.check.assurance import assess
from owa_bench.reports.composition import compose
from owa_bench.reports.read import bundle
from owa_bench.reports.read.terms import checklist_table
from tests.builders.run_directory import make_plan, make_run


def items(run, **changes):
    """Return the third column of a run's checklist by item."""
    judgement = compose(run, assess(run, (), signed=False)).judgement
    plan = replace(run.plan, **changes)
    table = checklist_table(plan, run.protocol, judgement, None)
    return {row[0]: row[2] for row in table.rows}


def test_what_a_run_lacks_is_said(tmp_path):
    run = bundle.read(make_run(tmp_path / "run", make_plan(1)).root)
    found = items(run)
    assert sorted(found) == [1, 2, 3, 4, 5]
    assert "not measured on people" in found[1]
    assert found[2].startswith("not played")
    assert run.plan.protocol_digest[:16] in found[3]
    assert "not computable" in found[4]
    assert found[5].count("not ablated here") == 2


def test_tools_that_are_off_and_ceilings_are_an_ablation_of_t(tmp_path):
    run = bundle.read(make_run(tmp_path / "run", make_plan(1)).root)
    entries = tuple(replace(e, tools_off=("search",)) for e in run.plan.entries)
    assert "T: without tools search" in items(run, entries=entries)[5]
    budget = replace(run.plan.budget, episode_meters=(("api_calls", 9.0),))
    assert "T: ceilings an episode api_calls 9" in items(run, budget=budget)[5]


def test_every_report_of_a_battery_holds_it(tmp_path):
    for battery in ("toolquest", None):
        plan = make_plan(1, battery=battery)
        run = bundle.read(make_run(tmp_path / str(battery), plan).root)
        tables = compose(run, assess(run, (), signed=False)).run.tables
        titles = [table.title for table in tables]
        assert ("checklist of reproducibility" in titles) == (battery is not None)

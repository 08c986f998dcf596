"""Tables of a run: counts and sums are those of the report."""

import csv

import pytest

import owa_bench
from owa_bench.errors import RunDirectoryError
from owa_bench.records.events import EpisodeEnd, Violation
from owa_bench.reports import composition
from owa_bench.reports.read import bundle
from owa_bench.reports.read.run_tables import CostRow, EpisodeRow, RowTable, StepRow
from tests.builders.run_directory import ARMS, make_plan, make_run


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("tables") / "run", make_plan(2))


@pytest.fixture(scope="module")
def run(layout):
    return owa_bench.open_run(str(layout.root))


def test_counts_and_costs_are_those_of_the_report(run, layout):
    verdicts = composition.score(layout.root)
    for arm in ARMS:
        own = [row for row in run.episodes() if row.arm == arm]
        assert len(own) == verdicts[arm].counted
        for stream, total in verdicts[arm].cost_micro_usd.items():
            assert _micro(getattr(row, f"usd_{stream}") for row in own) == total
            of_meters = [row for row in run.costs() if (row.arm, row.stream) == (arm, stream)]
            assert _micro(row.usd for row in of_meters) == total


def _micro(costs):
    return sum(round(1e6 * cost) for cost in costs)


def test_steps_are_those_of_the_episodes(run):
    steps, episodes = run.steps(), run.episodes()
    assert len(steps) == sum(row.steps for row in episodes) > 0
    drifted = {row.attempt for row in episodes if row.delta}
    assert {row.attempt for row in steps if row.drift} == drifted
    assert all(row.drift == "" for row in steps if row.step > 1)
    assert "\n".join(row.subgoals for row in steps).strip()
    assert run.text(steps[0].observation)


def test_a_disqualified_episode_has_nothing_here_either(tmp_path):
    def edit(entry, events):
        end = next(i for i, e in enumerate(events) if isinstance(e, EpisodeEnd))
        breach = Violation(step=4, rule="r", severity="disqualify", evidence="e")
        return [*events[:end], breach, *events[end:]] if entry.index == 0 else events

    layout = make_run(tmp_path / "run", make_plan(1), edit=edit)
    first, other = owa_bench.open_run(layout.root).episodes()[0:4:2]
    assert (first.success, first.q_state, first.quality) == (False, 0.0, 0.0)
    assert first.disqualified
    assert "disqualify" in first.violations
    assert other.quality > 0


@pytest.mark.parametrize("name", ["episodes", "steps", "costs"])
def test_tables_leave_as_csv_arrow_and_pandas_row_by_row(run, tmp_path, name):
    table = getattr(run, name)()
    table.write_csv(tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == table.columns
    assert len(rows) == len(table)
    assert rows[1][0] == table[1].attempt
    pytest.importorskip("pyarrow")
    assert table.to_arrow().to_pylist() == table.to_dicts()
    pandas = pytest.importorskip("pandas")
    assert isinstance(table.to_pandas(), pandas.DataFrame)
    assert list(table.to_pandas().columns) == list(table.columns)
    assert len(table.to_pandas()) == len(table)


@pytest.mark.parametrize("kind", [EpisodeRow, StepRow, CostRow])
def test_an_empty_table_has_its_columns_and_types(kind):
    pytest.importorskip("pyarrow")
    empty = RowTable(kind, [])
    assert tuple(empty.to_arrow().column_names) == empty.columns
    assert len(empty) == 0


def test_duckdb_counts_what_the_report_counts(run, layout, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    run.episodes().write_parquet(tmp_path / "episodes.parquet")
    path = tmp_path / "episodes.parquet"
    found = duckdb.sql(f"SELECT arm, count(*) FROM '{path}' GROUP BY arm").fetchall()
    verdicts = composition.score(layout.root)
    assert dict(found) == {arm: verdicts[arm].counted for arm in ARMS}


def test_rows_are_of_counted_attempts_alone(layout):
    read = bundle.read(layout.root)
    counted = [leaf.attempt_id for leaf in read.counting_leaves if leaf is not None]
    assert [row.attempt for row in owa_bench.open_run(layout.root).episodes()] == (counted)


def test_what_is_no_run_is_named(tmp_path):
    with pytest.raises(RunDirectoryError, match="nothing"):
        owa_bench.open_run(tmp_path / "nothing")

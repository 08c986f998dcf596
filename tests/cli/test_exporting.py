"""`owa-bench export`: files for other tools, counts as the report has them."""

import csv
import json

import pytest

from owa_bench.reports import composition


def test_tables_leave_as_csv_with_the_counts_of_the_report(owa, run, place):
    said = owa("export run --to csv --out tables")
    assert said.code == 0
    with (place / "tables" / "episodes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    verdicts = composition.score(run.root)
    for arm, verdict in verdicts.items():
        assert sum(row["arm"] == arm for row in rows) == verdict.counted > 0
    assert f"episodes: {len(rows)} rows in tables/episodes.csv" in said.out
    found = json.loads(owa("export run --to csv --out tables --json").out)
    assert [each["name"] for each in found] == ["episodes", "steps", "costs"]


def test_duckdb_and_pandas_read_the_parquet(owa, run, place):
    duckdb = pytest.importorskip("duckdb")
    pandas = pytest.importorskip("pandas")
    assert owa("export run --to parquet --out tables").code == 0
    path = place / "tables" / "episodes.parquet"
    sums = f"SELECT arm, count(*), sum(usd_agent) FROM '{path}' GROUP BY arm"
    frame = pandas.read_parquet(path)
    for arm, count, cost in duckdb.sql(sums).fetchall():
        verdict = composition.score(run.root)[arm]
        assert count == verdict.counted == (frame.arm == arm).sum()
        assert cost == pytest.approx(verdict.cost_micro_usd["agent"] / 1e6)


def test_a_format_that_is_none_and_an_unrevealed_run_are_refused(owa, run):
    assert owa("export run --to excel --out tables").code == 2
    pytest.importorskip("minari")
    said = owa("export run --to minari --out sets")
    assert said.code == 2
    assert "owa-bench escrow reveal" in said.err

"""Text of others in exported tables: no spreadsheet takes it for a formula."""

import csv
import io

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import owa_bench
from owa_bench.cli import measuring
from owa_bench.records import csv_tables
from owa_bench.records.csv_tables import text_of_cell, write_csv
from owa_bench.records.events import EpisodeEnd
from tests.builders.run_directory import make_plan, make_run

FORMULAS = (
    '=HYPERLINK("http://example.org";"see")',
    "+1+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    "  =1+1",
    "\ufeff=1+1",
    "\uff1d1+1",
    "'=1+1",
    'a;=1+1;"',
)


def formulas_of(text):
    """Return the cells of a CSV text that a spreadsheet would run.

    Spreadsheets split cells at commas, semicolons or tabs, by the settings of the
    person; blanks and marks before a formula do not count.
    """
    found = []
    for mark in ",;\t":
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=mark):
            bare = [cell.lstrip(" \t\r\n\ufeff") for cell in row]
            found += [cell for cell in bare if cell[:1] in tuple("=+-@\uff1d\uff0b")]
    return [cell for cell in found if not _is_number(cell.partition(",")[0])]


def _is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


@pytest.fixture
def exported(tmp_path):
    """Return a function that exports a run: its arm, agent and reasons are a text."""

    def export(formula):
        plan = make_plan(1)
        arms = (msgspec.structs.replace(plan.arms[0], name=formula, agent=formula), plan.arms[1])
        entries = tuple(
            msgspec.structs.replace(entry, arm=formula)
            if entry.arm == arms[0].name or entry.arm == "agentic"
            else entry
            for entry in plan.entries
        )
        plan = msgspec.structs.replace(plan, arms=arms, entries=entries)

        def edit(entry, events):
            return [
                msgspec.structs.replace(event, reason=formula)
                if isinstance(event, EpisodeEnd)
                else event
                for event in events
            ]

        layout = make_run(tmp_path / "run", plan, edit=edit)
        owa_bench.open_run(layout.root).write_tables(tmp_path / "tables", "csv")
        return [path.read_bytes().decode() for path in (tmp_path / "tables").glob("*.csv")]

    return export


@pytest.mark.parametrize("formula", FORMULAS)
def test_text_of_others_is_no_formula(exported, formula):
    texts = exported(formula)
    assert len(texts) == 3
    assert [formulas_of(text) for text in texts] == [[], [], []]


@pytest.mark.parametrize("formula", FORMULAS[:4])
def test_it_would_be_one_as_it_is(exported, monkeypatch, formula):
    """The control: the same text, written as it is."""
    monkeypatch.setattr(csv_tables, "_cell", lambda value: value)
    assert any(formulas_of(text) for text in exported(formula))


@given(
    st.text(alphabet="'=+-@\t\r\n a,;\"\0\ufeff\uff1d").filter(lambda t: "\0" not in t)
    | st.text().filter(lambda t: "\0" not in t and t.isprintable())
)
def test_the_text_comes_back(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    write_csv(path, ("name", "number"), [(text, -1.5)])
    with path.open(encoding="utf-8", newline="") as file:
        [[cell, number]] = [*csv.reader(file)][1:]
    assert text_of_cell(cell) == text
    assert number == "-1.5"
    assert not formulas_of(path.read_bytes().decode())


def test_a_table_of_ours_is_read_back_by_measure(tmp_path):
    write_csv(tmp_path / "t.csv", ("agent", "value"), [("=1+1", 0.5), ("b", -1.0)])
    columns = measuring._read_csv(tmp_path / "t.csv")
    assert columns == {"agent": ["=1+1", "b"], "value": ["0.5", "-1.0"]}

"""The sweep of cases: it keeps what was played, and its tables have a row a cell."""

import json

from benchmarks import cases as sweep


def test_what_was_played_is_not_played_again(tmp_path):
    kept = sweep.KeptPlays(tmp_path / "kept.jsonl")
    assert kept.of("one", lambda: {"q": 0.5})["q"] == 0.5
    again = sweep.KeptPlays(tmp_path / "kept.jsonl")
    assert again.of("one", lambda: {"q": 0.0})["q"] == 0.5
    assert json.loads((tmp_path / "kept.jsonl").read_text())["name"] == "one"


def test_the_table_of_traps_has_a_cost_for_each_that_matters():
    head, _, *rows = sweep.ablations(["credits"], 1)
    assert "mean cost" in head
    assert len(rows) > len(sweep.TIERS)
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert "sets" in row or 0.0 < float(cells[4]) <= 0.4


def test_a_chain_of_releases_is_played_and_its_tools_are_counted(tmp_path):
    kept = sweep.KeptPlays(tmp_path / "kept.jsonl")
    (said,) = sweep.chain(kept, "credits", 3, 1)
    assert "q = 1.000 in 1 of 1" in said
    assert "distinct tools" in said

import json

import pytest

from owa_bench.envs.toolquest import table
from owa_bench.envs.toolquest.table import DataTable, TableError

SHOPS = DataTable(("id", "town"), ((1, "Ulm"), (2, "Bonn"), (3, "Ulm")), (4,))
SALES = DataTable(("shop", "id", "sum"), ((1, "a", 5), (1, "b", 7), (3, "c", 1)), (5, 6))


def test_finds_the_nearest_list_of_objects():
    document = {"meta": {"tags": ["x"]}, "data": {"rows": [{"a": 1}, {"b": 2}]}}
    found = table.find_rows(document)
    assert found == DataTable(("a", "b"), ((1, None), (None, 2)))
    with pytest.raises(TableError, match="no list of objects"):
        table.find_rows({"a": 1})


def test_join_group_and_sort():
    request = {
        "join": {"left": "id", "right": "shop"},
        "group": ["town"],
        "aggregate": {"sales": "count", "most": "max:sum", "all": "sum:sum"},
        "sort": ["-all"],
    }
    made = table.transform(SHOPS, SALES, request)
    assert made.columns == ("town", "sales", "most", "all")
    assert made.rows == (("Ulm", 3, 7, 13),)
    assert made.steps == (4, 5, 6)


def test_a_table_that_grows_without_end_is_refused_before_it_is_made():
    many = DataTable(("shop", "x"), ((1, 1),) * 1000, (1,))
    with pytest.raises(TableError, match="4,000,000 cells, more than 1,000,000"):
        table.join(many, many, {"left": "shop", "right": "shop"})
    with pytest.raises(TableError, match="filter or choose columns first"):
        table.stack([many] * 501)
    assert len(table.stack([many] * 500).rows) == 500_000


def test_left_join_keeps_the_lonely_and_renames_clashes():
    joined = table.join(SHOPS, SALES, {"left": "id", "right": "shop", "kind": "left"})
    assert joined.columns == ("id", "town", "shop", "right_id", "sum")
    assert (2, "Bonn", None, None, None) in joined.rows


def test_stack_goes_by_name():
    other = DataTable(("town", "id"), (("Kiel", 9),), (8,))
    assert table.stack([SHOPS, other]).rows[-1] == (9, "Kiel")
    assert table.stack([SHOPS, other]).steps == (4, 8)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"columns": ["nope"]}, "no column `nope`"),
        ({"aggregate": {"x": "mean:id"}}, "count, sum:x"),
        ({"aggregate": {"x": "sum:town"}}, "cannot be taken"),
    ],
)
def test_nonsense_is_words(request_, words):
    with pytest.raises(TableError, match=words):
        table.transform(SHOPS, None, request_)


def test_sorting_mixed_values_is_total():
    mixed = DataTable(("x",), (("b",), (None,), (2,), ("a",), (True,)))
    assert table.sort(mixed, ["x"]).rows == ((True,), (2,), ("a",), ("b",), (None,))


def test_view_shows_what_fits():
    long = DataTable(("x",), tuple((f"{i:04d}" * 10,) for i in range(100)))
    text = table.view(long, "art:1", 10, 100, 1000)
    assert len(text) <= 1000
    shown = json.loads(text)
    assert shown["rows"][0] == ["0010" * 10]
    assert shown["next_offset"] == 10 + len(shown["rows"])
    assert shown["total"] == 100


def test_a_row_that_never_fits_is_words():
    with pytest.raises(TableError, match="fewer `columns`"):
        table.view(DataTable(("x",), (("y" * 900,),)), "art:1", 0, 1, 800)

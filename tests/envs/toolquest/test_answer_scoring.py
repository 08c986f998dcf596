import pytest

from owa_bench.envs.toolquest import answers, wire_format
from owa_bench.envs.toolquest.state import Artefact
from owa_bench.envs.toolquest.table import DataTable, TableError
from owa_bench.envs.toolquest.world import Field
from tests.builders.api_worlds import small_world

WORLD = small_world()
RIGHT = WORLD.expected_rows


def score(rows, columns=("id", "price")):
    return answers.artefact_score(WORLD, Artefact("a", columns, tuple(rows)))


def test_right_in_any_order_of_rows_and_columns():
    assert score(RIGHT) == 1.0
    assert score(reversed(RIGHT)) == 1.0
    assert score([row[::-1] for row in RIGHT], ("price", "id")) == 1.0
    assert score([(f" {key} ", float(price)) for key, price in RIGHT]) == 1.0


def test_a_dropped_row_or_changed_cell_costs_its_share():
    assert score(RIGHT[1:]) == pytest.approx(2 * 10 / 21)
    changed = ((RIGHT[0][0], RIGHT[0][1] + 1), *RIGHT[1:])
    assert score(changed) == pytest.approx(10 / 11)
    assert score((*RIGHT, ("r-99", 1))) == pytest.approx(2 * 11 / 23)
    assert score((*RIGHT, RIGHT[0])) == pytest.approx(2 * 11 / 23)


def test_wrong_shapes_score_nothing():
    assert answers.artefact_score(WORLD, None) == 0.0
    assert score([]) == 0.0
    assert score([(price,) for _, price in RIGHT], ("price",)) == 0.0
    assert score([(key, str(price)) for key, price in RIGHT]) == 0.0
    assert score([(key, True) for key, _ in RIGHT]) == 0.0


def test_a_column_too_many_costs():
    wide = [(*row, "x") for row in RIGHT]
    assert score(wide, ("id", "price", "kind")) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("rows", "width"),
    [
        ([("a", 1), ("b", 1)], 1),
        ([("a", 1, 5), ("a", 2, 5)], 2),
        ([("a", 1), ("a", 1)], 2),
        ([], 1),
    ],
)
def test_key_width(rows, width):
    assert answers.key_width(rows) == width


@pytest.mark.parametrize("text", ["1e1000000", "-1e99999", "1e-1000000", "1e99999999999999999999"])
def test_a_number_that_would_take_minutes_to_write_is_no_number(text):
    sent = DataTable(("id", "price"), ((RIGHT[0][0], text),))
    with pytest.raises(TableError, match="must be a number"):
        answers.judged_answer(WORLD, sent)
    price = Field(key="price", name="price", kind="money", about="", decimal=True)
    assert wire_format.from_wire(price, text) is None

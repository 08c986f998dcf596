"""What goes where in a form, and which rows a question is about."""

import dataclasses

from owa_bench.skills.clerk.habits import ALL
from owa_bench.skills.pages import Item
from owa_bench.skills.surfing import questions
from owa_bench.skills.surfing.fields import Field
from owa_bench.skills.surfing.matching import matched
from owa_bench.skills.surfing.sight import Row


def text(label, place=1):
    item = Item(place, "textbox", label, "", ("required",), (), "")
    return Field(label, "text", (item,))


def choice(label, *options):
    return Field(label, "choice", (Item(9, "combobox", label, "", (), options, ""),))


def test_values_find_their_fields_by_word_by_kind_and_by_shape():
    form = [text("Departure"), text("Who asks"), choice("Kind", "New", "Renewal")]
    given = {"on behalf of": "Ada Berg", "which is": "New", "leaving on": "2041-03-19"}
    names = matched(form, given, ALL)
    assert names == {0: "leaving on", 1: "on behalf of", 2: "which is"}


def test_without_the_habits_only_equal_words_match():
    habits = dataclasses.replace(ALL, guesses=False, weighs=False)
    form = [text("Who asks"), text("Voucher")]
    given = {"on behalf of": "Ada Berg", "voucher": "SPRING10"}
    assert matched(form, given, habits) == {1: "voucher"}


def test_a_field_that_nothing_fits_stays_empty():
    note = Field("Private note", "text", (Item(1, "textbox", "n", "", (), (), ""),))
    assert matched([note], {"which is": "Yes"}, ALL) == {}


ROWS = [
    Row("T-1", {"No.": "T-1", "With": "4120", "On": "13/12/2033", "Sum": "5.00"}, ()),
    Row("T-2", {"No.": "T-2", "With": "4120", "On": "05/11/2033", "Sum": "7.00"}, ()),
    Row("T-3", {"No.": "T-3", "With": "4130", "On": "20/12/2033", "Sum": "9.00"}, ()),
]


def test_the_rows_of_a_question_hold_every_value_that_it_names():
    asked = "What do the transactions of account 4120 in December 2033 come to? Say so."
    question = questions.understood(asked)
    first = questions.day_first(ROWS)
    assert first is True
    found = questions.chosen(question, ROWS, day_first=first)
    assert [row.title for row in found.rows] == ["T-1"]
    assert found.met == question.marks == 2


def test_a_question_that_no_row_answers_finds_none():
    question = questions.understood("What was paid to Nobody Ltd in all? Say so.")
    assert questions.chosen(question, ROWS, day_first=None).rows == ()


def test_the_amount_is_the_one_under_the_label_that_is_asked_for():
    cells = {"Per night": "EUR 80.00", "Security deposit": "EUR 20.00", "No.": "R1"}
    labels = questions.money_labels([cells])
    assert questions.money_of(cells, "How high is the deposit for", labels) == (
        "Security deposit"
    )
    assert questions.money_of(cells, "What does a night in cost", labels) == "Per night"

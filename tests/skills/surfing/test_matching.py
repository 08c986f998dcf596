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


def note(label, told="", *, required=False):
    states = ("required",) if required else ()
    item = Item(5, "textbox", label, "", states, (), "", told)
    return Field(label, "text", (item,))


def test_a_note_says_which_value_a_field_takes():
    money = note("Money", "In EUR, such as 1234.50", required=True)
    day = note("Latest", "Format: DD.MM.YYYY", required=True)
    given = {"paid into": "4110 Postage", "the sum of": "EUR 5.00", "by": "2041-03-19"}
    assert matched([money, day], given, ALL) == {0: "the sum of", 1: "by"}
    assert matched([money], {"paid into": "4110 Postage"}, ALL) == {}


def test_what_a_form_needs_goes_before_what_may_stay_empty():
    form = [note("Private note"), note("Purpose", required=True)]
    assert matched(form, {"with the note": "Hello there"}, ALL) == {1: "with the note"}
    assert matched(form[:1], {"with the note": "Hello"}, ALL) == {0: "with the note"}


def test_an_optional_field_takes_nothing_twice_but_others_may():
    tried = {"with the note": {"Private note"}}
    given = {"with the note": "Hello there", "speed": "Standard"}
    assert matched([note("Private note")], given, ALL, tried) == {}
    assert matched([note("Note to us")], given, ALL, tried) == {0: "with the note"}
    # In the goal's order: the note comes before what is for a later page.
    needed = [note("Purpose", required=True)]
    assert matched(needed, given, ALL, tried) == {0: "with the note"}


def test_a_remark_in_a_label_is_not_what_it_asks_for():
    form = [note("Old code (where it applies)"), note("Plot", required=True)]
    given = {"at": "North Quay 8", "old permit": "OLD-352"}
    assert matched(form, given, ALL) == {0: "old permit", 1: "at"}


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


def test_quoted_words_may_be_what_rows_say():
    asked = "What have all tickets that say `Phone is dead` cost so far? Say so."
    question = questions.understood(asked)
    assert question.subjects == ("Phone is dead",)
    about = [Row("H-1", {"About": "Phone is dead"}, ()), Row("H-2", {"About": "x"}, ())]
    found = questions.chosen(questions.by_value(question), about, day_first=None)
    assert [row.title for row in found.rows] == ["H-1"]


def test_dates_that_a_list_folds_away_are_told_by_rows_own_pages():
    asked = "What do the transactions of account 4120 in May 2037 come to? Say so."
    question = questions.understood(asked)
    folded = [Row("T-1", {"With": "4120"}, ()), Row("T-2", {"With": "4130"}, ())]
    found = questions.chosen(question, folded, day_first=None)
    assert [row.title for row in found.rows] == ["T-1"]
    assert found.met < question.marks
    own = {"With": "4120", "On": "21 May 2037"}
    assert questions.meets(question, own)
    assert not questions.meets(question, {**own, "On": "21 June 2037"})
    assert not questions.meets(question, {**own, "With": "4130"})


def test_the_amount_is_the_one_under_the_label_that_is_asked_for():
    cells = {"Per night": "EUR 80.00", "Security deposit": "EUR 20.00", "No.": "R1"}
    labels = questions.money_labels([cells])
    assert questions.money_of(cells, "How high is the deposit for", labels) == (
        "Security deposit"
    )
    assert questions.money_of(cells, "What does a night in cost", labels) == "Per night"

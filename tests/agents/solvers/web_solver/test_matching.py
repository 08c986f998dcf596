"""What goes where in a form, and which rows a question is about."""

import dataclasses

from owa_bench.agents.solvers.api_solver.http_session import ALL_SKILLS
from owa_bench.agents.solvers.pages import PageControl
from owa_bench.agents.solvers.web_solver import matching
from owa_bench.agents.solvers.web_solver.matching import assign_arguments
from owa_bench.agents.solvers.web_solver.page_view import ViewField, ViewRow


def text(label, place=1):
    item = PageControl(place, "textbox", label, "", ("required",), (), "")
    return ViewField(label, "text", (item,))


def choice(label, *options):
    return ViewField(label, "choice", (PageControl(9, "combobox", label, "", (), options, ""),))


def test_values_find_their_fields_by_word_by_kind_and_by_shape():
    form = [text("Departure"), text("Who asks"), choice("Kind", "New", "Renewal")]
    given = {"on behalf of": "Ada Berg", "which is": "New", "leaving on": "2041-03-19"}
    names = assign_arguments(form, given, ALL_SKILLS)
    assert names == {0: "leaving on", 1: "on behalf of", 2: "which is"}


def test_without_the_habits_only_equal_words_match():
    habits = dataclasses.replace(ALL_SKILLS, guesses=False, weighs=False)
    form = [text("Who asks"), text("Voucher")]
    given = {"on behalf of": "Ada Berg", "voucher": "SPRING10"}
    assert assign_arguments(form, given, habits) == {1: "voucher"}


def test_a_field_that_nothing_fits_stays_empty():
    note = ViewField("Private note", "text", (PageControl(1, "textbox", "n", "", (), (), ""),))
    assert assign_arguments([note], {"which is": "Yes"}, ALL_SKILLS) == {}


def note(label, told="", *, required=False):
    states = ("required",) if required else ()
    item = PageControl(5, "textbox", label, "", states, (), "", told)
    return ViewField(label, "text", (item,))


def test_a_note_says_which_value_a_field_takes():
    money = note("Money", "In EUR, such as 1234.50", required=True)
    day = note("Latest", "Format: DD.MM.YYYY", required=True)
    given = {"paid into": "4110 Postage", "the sum of": "EUR 5.00", "by": "2041-03-19"}
    assert assign_arguments([money, day], given, ALL_SKILLS) == {0: "the sum of", 1: "by"}
    assert assign_arguments([money], {"paid into": "4110 Postage"}, ALL_SKILLS) == {}


def test_what_a_form_needs_goes_before_what_may_stay_empty():
    form = [note("Private note"), note("Purpose", required=True)]
    assert assign_arguments(form, {"with the note": "Hello there"}, ALL_SKILLS) == {
        1: "with the note"
    }
    assert assign_arguments(form[:1], {"with the note": "Hello"}, ALL_SKILLS) == {
        0: "with the note"
    }


def test_an_optional_field_takes_nothing_twice_but_others_may():
    tried = {"with the note": {"Private note"}}
    given = {"with the note": "Hello there", "speed": "Standard"}
    assert assign_arguments([note("Private note")], given, ALL_SKILLS, tried) == {}
    assert assign_arguments([note("Note to us")], given, ALL_SKILLS, tried) == {0: "with the note"}
    # In the goal's order: the note comes before what is for a later page.
    needed = [note("Purpose", required=True)]
    assert assign_arguments(needed, given, ALL_SKILLS, tried) == {0: "with the note"}


def test_a_remark_in_a_label_is_not_what_it_asks_for():
    form = [note("Old code (where it applies)"), note("Plot", required=True)]
    given = {"at": "North Quay 8", "old permit": "OLD-352"}
    assert assign_arguments(form, given, ALL_SKILLS) == {0: "old permit", 1: "at"}


ROWS = [
    ViewRow("T-1", {"No.": "T-1", "With": "4120", "On": "13/12/2033", "Sum": "5.00"}, ()),
    ViewRow("T-2", {"No.": "T-2", "With": "4120", "On": "05/11/2033", "Sum": "7.00"}, ()),
    ViewRow("T-3", {"No.": "T-3", "With": "4130", "On": "20/12/2033", "Sum": "9.00"}, ()),
]


def test_the_rows_of_a_question_hold_every_value_that_it_names():
    asked = "What do the transactions of account 4120 in December 2033 come to? Say so."
    question = matching.parse_question(asked)
    first = matching.day_first(ROWS)
    assert first is True
    found = matching.select_rows(question, ROWS, day_first=first)
    assert [row.title for row in found.rows] == ["T-1"]
    assert found.met == question.marks == 2


def test_a_question_that_no_row_answers_finds_none():
    question = matching.parse_question("What was paid to Nobody Ltd in all? Say so.")
    assert matching.select_rows(question, ROWS, day_first=None).rows == ()


def test_quoted_words_may_be_what_rows_say():
    asked = "What have all tickets that say `Phone is dead` cost so far? Say so."
    question = matching.parse_question(asked)
    assert question.subjects == ("Phone is dead",)
    about = [ViewRow("H-1", {"About": "Phone is dead"}, ()), ViewRow("H-2", {"About": "x"}, ())]
    found = matching.select_rows(matching.without_subjects(question), about, day_first=None)
    assert [row.title for row in found.rows] == ["H-1"]


def test_dates_that_a_list_folds_away_are_told_by_rows_own_pages():
    asked = "What do the transactions of account 4120 in May 2037 come to? Say so."
    question = matching.parse_question(asked)
    folded = [ViewRow("T-1", {"With": "4120"}, ()), ViewRow("T-2", {"With": "4130"}, ())]
    found = matching.select_rows(question, folded, day_first=None)
    assert [row.title for row in found.rows] == ["T-1"]
    assert found.met < question.marks
    own = {"With": "4120", "On": "21 May 2037"}
    assert matching.meets_conditions(question, own)
    assert not matching.meets_conditions(question, {**own, "On": "21 June 2037"})
    assert not matching.meets_conditions(question, {**own, "With": "4130"})


def test_the_amount_is_the_one_under_the_label_that_is_asked_for():
    cells = {"Per night": "EUR 80.00", "Security deposit": "EUR 20.00", "No.": "R1"}
    labels = matching.money_labels([cells])
    assert matching.amount_label(cells, "How high is the deposit for", labels) == (
        "Security deposit"
    )
    assert matching.amount_label(cells, "What does a night in cost", labels) == "Per night"

"""Pages as a reader takes them in: tables, cards, facts, fields."""

from owa_bench.agents.solvers.web_solver import page_view
from owa_bench.agents.solvers.web_solver.page_view import fields, fill_calls

HEAD = "url: https://inn.test/a\ntitle: Rooms - Inn\nInn\n"
TABLE = (
    HEAD
    + """[1] link "Home"
# Rooms
2 in all
| No. | Room | Rate | Options |
| R1 |  | 10.50 |  |
[2] link "Blue"
[3] link "Book: Blue"
| R2 |  | 12.00 |  |
[4] link "Red"
-- Pages --
[5] link "More rows"
Inn. All rights reserved."""
)
CARDS = (
    HEAD
    + """# Rooms
[2] link "Blue"
No.
R1
Rate
10.50
[3] button "Details: Blue"
-- Pages --
[5] link "More rows"
We are closed today.
Inn. All rights reserved."""
)
FORM = (
    HEAD
    + """# Your booking
-- Arrival date --
-- Arrival date: Day --
"""
    + "\n".join(f'[{i}] radio "{i}" (not checked)' for i in range(1, 32))
    + """
[36] combobox "Month" = "Choose ..." options: Choose ... | January | February
[37] combobox "Year" = "Choose ..." options: Choose ... | 2030 | 2031
[38] combobox "Guests" = "Choose ..." (required) options: Choose ... | 1 | 2
[39] switch "Insurance" (checked)
[40] textbox "Secret" = "****" (required)
[41] button "Send\""""
)


def test_a_tables_row_has_its_links_name_in_the_empty_cell():
    rows = page_view.rows(page_view.parse_page(TABLE), {"Home"})
    assert [row.title for row in rows] == ["Blue", "Red"]
    assert rows[0].cells == {"No.": "R1", "Room": "Blue", "Rate": "10.50", "Options": ""}
    assert [item.name for item in rows[0].items] == ["Blue", "Book: Blue"]


def test_what_every_page_says_is_no_card():
    boilerplate = {"We are closed today.", "Inn. All rights reserved."}
    rows = page_view.rows(page_view.parse_page(CARDS), boilerplate)
    assert [row.title for row in rows] == ["Blue"]
    assert rows[0].cells["Rate"] == "10.50"


def test_a_page_that_was_cut_is_joined_without_a_second_head():
    first = HEAD + "# Rooms\none\n[2 more lines below: read from line 6]"
    whole = page_view.join_continuation(first, "url: u\ntitle: t\ntwo\nthree")
    assert page_view.continuation_line(first) == 6
    assert page_view.parse_page(whole).lines[-3:] == ("one", "two", "three")


def test_refusals_are_notices():
    seen = page_view.parse_page("error: it is gone\n" + HEAD + "# Rooms\n! Too fast.")
    assert seen.notices == ("it is gone", "Too fast.")


def test_a_date_in_parts_is_one_field_and_what_follows_is_another():
    found = fields(page_view.parse_page(FORM).items)
    kinds = [(field.label, field.kind) for field in found]
    assert kinds == [
        ("Arrival date", "date"),
        ("Guests", "choice"),
        ("Insurance", "check"),
        ("Secret", "text"),
    ]
    calls = list(fill_calls(found[0], "2031-02-24", ""))
    assert [call.arguments["ref"] for call in calls] == [24, 36, 37]
    assert not list(fill_calls(found[2], "Yes", ""))
    assert [c.tool for c in fill_calls(found[2], "No", "")] == ["click"]
    assert not list(fill_calls(found[3], "abcd", ""))


def test_the_line_after_a_control_is_its_note():
    page = """# Transfer
[1] textbox "Money" = "" (required)
In EUR, such as 1234.50
More words
[2] textbox "Memo" = ""
-- Speed --
not a note
[3] button "Send\""""
    notes = [item.note for item in page_view.parse_page(HEAD + page).items]
    assert notes == ["In EUR, such as 1234.50", "", ""]

"""What pages are made of: plain values, each with its canonical reference.

`ref` is canonical and never leaves the server; `ident`, `css` and `name` are what the
page carries instead. The HTML, the hints and the measures all read these.
"""

from typing import NamedTuple

from owa_bench.worlds.site import Control, ListForm, Placement


class Choice(NamedTuple):
    """One option of a field; `value` is its alias."""

    ref: str
    ident: str
    value: str
    text: str
    chosen: bool


class Field(NamedTuple):
    """One thing a person fills in. `parts` are the fields of a date in pieces."""

    ref: str
    ident: str
    name: str
    css: str
    label: str
    control: Control
    placement: Placement
    value: str = ""
    choices: tuple["Choice", ...] = ()
    parts: tuple["Field", ...] = ()
    hint: str = ""
    error: str = ""
    secret: bool = False
    required: bool = False


class Button(NamedTuple):
    """A link (with `href`) or a button that sends its form, with what it says.

    `name` and `value` go along with the form. `sign` is shown in place of the text,
    which then is the accessible name.
    """

    ref: str
    ident: str
    css: str
    text: str
    href: str = ""
    name: str = ""
    value: str = ""
    sign: str = ""
    about: str = ""


class Cell(NamedTuple):
    """A column's words and a value."""

    key: str
    label: str
    text: str


class Row(NamedTuple):
    """A row of a list: its link, its cells, those folded away, its actions."""

    key: str
    link: Button
    cells: tuple[Cell, ...]
    drawer: tuple[Cell, ...]
    more: str
    actions: tuple[Button, ...]


class Listing(NamedTuple):
    """The rows of a collection in one of its forms."""

    form: ListForm
    caption: str
    headers: tuple[str, ...]
    rows: tuple[Row, ...]
    empty: str = "Nothing found."


class Facts(NamedTuple):
    """Label and value pairs: a row's own page, a review, a message."""

    cells: tuple[Cell, ...]


class Form(NamedTuple):
    """Fields and buttons that are sent together; `trap` is an input nobody sees."""

    ident: str
    action: str
    method: str
    hidden: tuple[tuple[str, str], ...]
    fields: tuple[Field, ...]
    buttons: tuple[Button, ...]
    trap: Field | None = None
    decoys: tuple[Field, ...] = ()


class Links(NamedTuple):
    """A row of links with what they are for."""

    label: str
    buttons: tuple[Button, ...]


class Words(NamedTuple):
    """A paragraph."""

    text: str


Block = Listing | Facts | Form | Links | Words


class Page(NamedTuple):
    """A page: what is on it, and which cells of the database it shows."""

    key: str
    title: str
    heading: str
    menu: tuple[Button, ...]
    blocks: tuple[Block, ...]
    notice: str = ""
    shown: tuple[tuple[str, str | int, str], ...] = ()
    status: int = 200


def forms(page: Page) -> list[Form]:
    """Return the forms of a page."""
    return [block for block in page.blocks if isinstance(block, Form)]


def fields(page: Page) -> list[Field]:
    """Return the fields of a page, a date's parts in place of the date."""
    found: list[Field] = []
    for form in forms(page):
        for field in form.fields:
            found.extend(field.parts or (field,))
    return found


def buttons(page: Page) -> list[Button]:
    """Return every link and button of a page."""
    found = list(page.menu)
    for block in page.blocks:
        if isinstance(block, (Form, Links)):
            found.extend(block.buttons)
        if isinstance(block, Listing):
            for row in block.rows:
                found.extend((row.link, *row.actions))
    return found

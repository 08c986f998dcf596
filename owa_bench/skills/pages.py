"""Page text as data: the numbered controls of a browser suite's observation.

[3] textbox "Guests" = "2" (required)
[4] combobox "Room" = "Blue" options: Blue | Red
"""

import re
from typing import NamedTuple

_LINE = re.compile(
    r'\[(?P<ref>\d+)\] (?P<role>\w+) "(?P<name>.*?)"'
    r'(?: = "(?P<value>.*?)")?(?: \((?P<states>[^()]*)\))?'
    r"(?: options: (?P<options>.*))?"
)
_MORE = re.compile(r", and \d+ more$")  # what a long list of options ends with
_MARKS = ("! ", "# ", "- ")  # what stands at the head of a notice, heading or point
_GROUP = re.compile(r"-- (?:dialog: )?(.*) --")


class PageControl(NamedTuple):
    """A control as the page text tells of it; `group` is what it stands under.

    `note` is the line of text right after it, such as a hint or what is wrong.
    """

    ref: int
    role: str
    name: str
    value: str
    states: tuple[str, ...]
    options: tuple[str, ...]
    group: str
    note: str = ""


def items(text: str) -> tuple[PageControl, ...]:
    r"""Return the controls of a page text, in reading order.

    >>> [(i.ref, i.name, i.group) for i in items('-- Stay --\n[2] button "Book"')]
    [(2, 'Book', 'Stay')]
    """
    found: list[PageControl] = []
    group, noted = "", True
    for line in text.splitlines():
        heading = _GROUP.fullmatch(line)
        match = _LINE.fullmatch(line)
        if heading is not None:
            group = heading.group(1)
        elif line.startswith("| "):
            group = next((c for c in line.strip("| ").split(" | ") if c), group)
        elif match is not None:
            found.append(_item(match, group))
        elif not noted and not line.startswith(_MARKS):
            found[-1] = found[-1]._replace(note=line)
        noted = match is None
    return tuple(found)


def _item(match: re.Match[str], group: str) -> PageControl:
    states = match["states"]
    options = _MORE.sub("", match["options"] or "")
    return PageControl(
        ref=int(match["ref"]),
        role=match["role"],
        name=match["name"],
        value=match["value"] or "",
        states=tuple(states.split(", ")) if states else (),
        options=tuple(options.split(" | ")) if options else (),
        group=group,
    )


def control(line: str) -> PageControl | None:
    """Return the control that a line tells of, None for any other line."""
    match = _LINE.fullmatch(line)
    return None if match is None else _item(match, "")


def is_open(item: PageControl) -> bool:
    """Return whether a control can be acted on."""
    return "disabled" not in item.states

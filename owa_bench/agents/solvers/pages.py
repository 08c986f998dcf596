"""Page text as data (controls of a browser suite), and words that mean the same.

[3] textbox "Guests" = "2" (required) [4] combobox "Room" = "Blue" options: Blue | Red
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

# Each line is one meaning; a word may stand in several.
_MEANINGS = (
    "continue next proceed forward onward onwards go ahead",
    "submit send confirm finish complete place apply book save store",
    "cancel withdraw revoke undo retract",
    "reverse undo correct storno",
    "change edit amend alter modify update",
    "book reserve reservation booking stay",
    "buy purchase order basket cart",
    "return refund",
    "transfer move shift money",
    "sign login logon enter identify",
    "name called user username account member login",
    "password passphrase secret",
    "code digits verification one-time",
    "mail mailbox inbox messages letters post",
    "search find look filter",
    "arrival arrive arrives arriving checkin check-in start from begin beginning first coming",
    "departure depart departing checkout check-out end until to leaving leave leaves last",
    "guests people persons travellers visitors party",
    "quantity amount number count pieces units items many",
    "price cost costs rate total sum fee charge value much figure",
    "sum amount much value figure",
    "deposit security bond",
    "late lateness delay overdue",
    "reason cause why because ground grounds",
    "note remark remarking comment memo message wish wishes request requests",
    "colour color shade",
    "size measure",
    "products catalogue goods items articles shop range",
    "orders history purchases",
    "answer reply response result finding findings desk report",
    "home start main front welcome",
    "more further additional rest later",
    "details show open view see",
    "room rooms sleep",
    "person name who whose guest applicant customer behalf holder traveller for",
    "address where place location street at deliver drop-off",
    "delivery deliver shipping ship dispatch courier carrier transport",
    "voucher coupon promo discount",
    "gift present wrapped wrapping wrap",
    "payment pay paid settle",
    "meals board catering food breakfast dining",
    "insurance insure insured cover cancellation",
    "refund back money credit",
    "source from taken debit drawn charge out",
    "target into to paid credit receiving recipient",
    "date day when effective as posting carried executed deadline due needed valid",
    "receipt proof confirmation",
    "months duration term period",
    "document enclosure attachment enclosing attach enclosed papers",
    "kind type which class category sort",
    "permit permits licence license",
    "application applications file apply",
    "former old previous prior earlier",
    "declare declared true truth truthful",
    "contact answer notify notified notification inform informed updates",
    "speed urgent urgency priority express",
    "team queue group responsible assign route",
    "subject title saying about wrong",
    "problem ticket issue case fault incident",
    "machines devices computers",
    "no not skip decline without",
)
_FILLERS = frozenset(
    ["a", "an", "the", "of", "your", "my", "our", "it", "is", "this", "that", "with"]
)
_WORD = re.compile(r"[\w-]+")


def meanings(word: str) -> frozenset[str]:
    """Return what a word may mean: the first words of its lines, or itself."""
    return _lines().get(word) or _lines().get(_bare(word)) or frozenset({_bare(word)})


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text in small letters, fillers left out."""
    found = _WORD.findall(text.lower())
    return tuple(word for word in found if word not in _FILLERS)


def alike(first: str, second: str) -> float:
    """Return how many words of two names mean the same, as a share of all of both.

    Args:
        first: A name.
        second: Another name.
    Returns: A share in [0, 1].

    >>> alike("Arrival date", "Check-in date")
    1.0
    """
    one, two = list(map(meanings, words(first))), list(map(meanings, words(second)))
    if not one or not two:
        return 0.0
    met = min(_meetings(one, two), _meetings(two, one))
    return met / (len(one) + len(two) - met)


def nearest(wanted: str, names: Iterable[str]) -> list[str]:
    """Return names by how alike they are to what is wanted, the best first.

    Args:
        wanted: A name.
        names: Names to choose from.
    """
    return sorted(names, key=lambda name: -alike(wanted, name))


def _meetings(some: list[frozenset[str]], others: list[frozenset[str]]) -> int:
    return sum(any(each & other for other in others) for each in some)


def _bare(word: str) -> str:
    return word.rstrip("s") if len(word) > len("ads") else word


@cache
def _lines() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in _MEANINGS:
        names = line.split()
        for word in {*names, *map(_bare, names)}:
            found.setdefault(word, set()).add(names[0])
    return {word: frozenset(means) for word, means in found.items()}


# --- controls of a page text ----------------------------------------------------------


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

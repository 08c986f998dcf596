"""Fragments made of gathered values, configuration of a seat, sentences into facts."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

_SEARCHED = 2000


def build(
    family: str,
    item: Mapping[str, Any],
    values: Mapping[str, str],
    before: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the fragment of an item.

    Args:
        family: Of the task.
        item: As the goal has it.
        values: Of its clauses, by name.
        before: The fragments that it builds on.
    """
    return _MAKERS[family.rpartition("/")[2]](item, values, before)


def _schema(
    item: Mapping[str, Any], values: Mapping[str, str], before: Mapping[str, Any]
) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name in item["clauses"]:
        value = values[name]
        match name.rpartition(".")[2]:
            case "tag":
                fields["tag"] = {"type": "string", "const": value}
            case "kinds":
                fields["kind"] = {"type": "string", "enum": value.split(" and ")}
            case "limit":
                limits = {"minLength": 1, "maxLength": int(value)}
                fields["name"] = {"type": "string", **limits}
            case "range":
                low, high = (int(number) for number in value.split(" and "))
                fields["amount"] = {"type": "integer", "minimum": low, "maximum": high}
    return {"properties": fields, "required": sorted(fields)}


def _booking(
    item: Mapping[str, Any], values: Mapping[str, str], before: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    own = {name.rpartition(".")[2]: values[name] for name in item["clauses"]}
    open_for, first, period = (int(word) for word in own["hours"].split()[::2])
    length = int(own["length"])
    ends = (int(job["start"]) + int(job["length"]) for job in before.values())
    start = max(ends, default=0) + int(own["gap"])

    def is_open(hour: int) -> bool:
        return hour >= first and (hour - first) % period < open_for

    while start < _SEARCHED and not all(map(is_open, range(start, start + length))):
        start += 1
    return {"site": item["site"], "start": start, "length": length, "key": own["key"]}


def _runbook(
    item: Mapping[str, Any], values: Mapping[str, str], before: Mapping[str, Any]
) -> dict[str, Any]:
    part, order = values[f"{item['name']}.cause"], values[f"{item['name']}.order"]
    moves = ["drain", "switch"] if order.startswith("drain") else ["switch", "drain"]
    return {
        "steps": [
            {"do": "set", "part": part, "value": values[f"{part}.flag"]},
            {"do": "pin", "part": part, "value": values[f"{part}.version"]},
            *({"do": move} for move in moves),
            {"do": "start"},
        ]
    }


def _function(
    item: Mapping[str, Any], values: Mapping[str, str], before: Mapping[str, Any]
) -> dict[str, Any]:
    first = values[f"{item['module']}.layout"].split()[0]
    second = "count" if first == "amount" else "amount"
    amount = "amount"
    if cap := values.get(f"{item['name']}.cap"):
        amount = f"min(amount, {cap})"
    bonus = values.get(f"{item['name']}.bonus", "0")
    calls = [one.split(".") for one in item.get("imports", "").split(" and ") if one]
    text = f"def {item['name']}(rows):\n"
    for module, name in calls:
        text += f"    from app.{module} import {name}\n"
    text += f"    total = sum({amount} * count + {bonus}\n"
    text += f"                for {first}, {second} in rows if count >= 3)\n"
    for module, name in calls:
        same = values[f"{module}.layout"].startswith(first)
        rows = "rows" if same else "[(b, a) for a, b in rows]"
        text += f"    total += {name}({rows})['total']\n"
    tag = values[f"{item['name']}.tag"]
    return {"source": f"{text}    return {{'tag': {tag!r}, 'total': total}}"}


_MAKERS = {
    "contract": _schema,
    "negotiate": _schema,
    "schedule": _booking,
    "duties": _booking,
    "incident": _runbook,
    "codebase": _function,
}
BUILDS_ON = ("schedule", "duties")  # whose fragments depend on those they build on


# --- configuration of a seat ----------------------------------------------------------


CREWS = "hand_off"  # the tool of crews


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatConfig:
    """How a seat works.

    `tells` what it knows that others' items need; `asks` for what it lacks; `answers` what it was
    asked; `patience` ticks it waits for a message before it looks into others' documents;
    `longest`: takes the item that most others wait for, else the first; `helps`: takes items of
    other roles too; `settles` by proposals, else by arbitration alone; `hub`: tells the lead alone,
    who passes it on; `checks`: in the last seat, reads what others merged and does anew what is
    wrong by what it knows.
    """

    tells: bool = False
    asks: bool = False
    answers: bool = False
    patience: int = 0
    longest: bool = False
    helps: bool = True
    settles: bool = False
    hub: bool = False
    checks: bool = False


ALONE = SeatConfig(longest=True)
IN_ORDER = SeatConfig(asks=True, answers=True, patience=4, helps=False)
ASKING = SeatConfig(asks=True, answers=True, patience=4, longest=True)
TEAM = SeatConfig(tells=True, answers=True, longest=True, patience=6, settles=True)
STAR = SeatConfig(
    tells=True, answers=True, longest=True, patience=6, settles=True, hub=True, checks=True
)
# Partners that no policy of ours is trained with.
QUIET = SeatConfig(patience=2, helps=False)
ANSWERING = SeatConfig(answers=True, patience=8, helps=False)


# --- sentences into facts -------------------------------------------------------------


_LOOSE = ("It used to be", "Until last", "An early draft", "Some say")
_PLAIN = ("For the record, ", "As agreed, ", "Note that ", "Notice: ")
_GROUNDS = {
    "Since the last change, ": "change",
    "By the word of who decides, ": "word",
    "By law, ": "law",
    "By contract, ": "contract",
    "By habit, ": "habit",
    "On one reading, ": "reading",
}
_W, _V = r"(?P<s>[a-z]+)", r"(?P<v>[a-z]+-\d+)"
_PAIR = r"(?P<v>[a-z]+-\d+ and [a-z]+-\d+)"
_N, _NN = r"(?P<v>\d+|2 times \d+)", r"(?P<v>\d+ and \d+)"
_O = r"(?P<v>drain before the switch|switch before the drain)"
_L = r"(?P<v>amount first|count first)"
_HOURS = r"for (?P<n>\d+) hours from hour (?P<f>\d+) on, and again every (?P<e>\d+) hours"
_PATTERNS = {
    "tag": (f"the tag of {_W} is {_V}", f"{_W} carries the tag {_V}", f"{_V} is the tag on {_W}"),
    "kinds": (
        f"the kinds of {_W} are {_PAIR}",
        f"{_W} knows two kinds, {_PAIR}",
        f"{_PAIR} are the kinds that {_W} knows",
    ),
    "limit": (
        f"a name on {_W} has at most {_N} letters",
        f"{_N} letters are the most for a name on {_W}",
        f"names on {_W} stop at {_N} letters",
    ),
    "range": (
        f"amounts on {_W} lie between {_NN}",
        f"the least and the greatest amount on {_W} are {_NN}",
        f"{_W} takes amounts between {_NN}",
    ),
    "length": (
        f"{_W} takes {_N} hours",
        f"the job {_W} is done in {_N} hours",
        f"{_N} hours are what {_W} takes",
    ),
    "gap": (
        f"{_W} must wait {_N} hours",
        f"before {_W} begins, {_N} hours must pass",
        f"{_N} hours of rest come before {_W}",
    ),
    "hours": (
        f"{_W} is open {_HOURS}",
        f"the hours of {_W} are {_HOURS}",
        f"at {_W} the doors are open {_HOURS}",
    ),
    "key": (
        f"the booking key of {_W} is {_V}",
        f"{_W} is booked with {_V}",
        f"{_V} is the key for {_W}",
    ),
    "layout": (
        f"rows of {_W} come with the {_L}",
        f"{_W} takes rows with the {_L}",
        f"with the {_L} is how {_W} takes rows",
    ),
    "cap": (
        f"{_W} caps amounts at {_N}",
        f"{_N} is the cap on amounts of {_W}",
        f"amounts count up to {_N} on {_W}",
    ),
    "bonus": (
        f"{_W} adds {_N} for each row",
        f"{_N} is what {_W} adds for each row",
        f"for each row {_W} gets {_N} more",
    ),
    "cause": (
        f"{_W} went down because of (?P<v>[a-z]+)",
        f"the fault at {_W} lies with (?P<v>[a-z]+)",
        f"(?P<v>[a-z]+) is what brought {_W} down",
    ),
    "order": (
        f"on {_W} one must {_O}",
        f"the rule for {_W} is to {_O}",
        f"to {_O} is what {_W} asks for",
    ),
    "flag": (
        f"{_W} runs with the flag {_V}",
        f"the flag of {_W} is {_V}",
        f"{_V} is the flag that {_W} wants",
    ),
    "version": (
        f"{_W} is sound at version {_V}",
        f"the last good version of {_W} is {_V}",
        f"{_V} is the version at which {_W} works",
    ),
}
_COMPILED = tuple(
    (attribute, re.compile(pattern, re.IGNORECASE))
    for attribute, patterns in _PATTERNS.items()
    for pattern in patterns
)
_RANKS = ("change", "word", "law", "", "contract", "habit", "reading")  # strongest first


class ClauseFact(NamedTuple):
    """The value of a clause, on what ground ("" where nobody contests it)."""

    clause: str
    value: str
    ground: str
    sentence: str

    @property
    def rank(self) -> int:
        """How strong the ground is, 0 first."""
        return _RANKS.index(self.ground)

    @property
    def contested(self) -> bool:
        """Whether somebody else has another value that must be settled with this."""
        return self.ground not in ("", "change")


def read_facts(text: str) -> Iterator[ClauseFact]:
    """Yield what a text says that holds; former, drafted and wrong values are left."""
    for part in re.split(r"(?<=[.])\s+|\n", text):
        sentence = part.strip()
        if not sentence.endswith(".") or sentence.startswith(_LOOSE):
            continue
        body, ground = sentence.removesuffix("."), ""
        for frame in _PLAIN:
            body = body.removeprefix(frame)
        for frame, name in _GROUNDS.items():
            if body.startswith(frame):
                body, ground = body.removeprefix(frame), name
        for attribute, pattern in _COMPILED:
            if found := pattern.fullmatch(body):
                yield ClauseFact(
                    clause=f"{found['s'].lower()}.{attribute}",
                    value=_value(attribute, found),
                    ground=ground,
                    sentence=sentence,
                )
                break


def _value(attribute: str, found: re.Match[str]) -> str:
    if attribute == "hours":
        return f"{found['n']} from {found['f']} every {found['e']}"
    value = found["v"].lower()
    if value.startswith("2 times "):
        return str(2 * int(value.removeprefix("2 times ")))
    return value

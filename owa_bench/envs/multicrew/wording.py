"""Texts: sentences of documents, what each seat is told, the board, the tools."""

import re
from functools import lru_cache
from typing import Any

from owa_bench.envs.multicrew.draws import ROLES
from owa_bench.envs.multicrew.generate import family_of
from owa_bench.envs.multicrew.world import CrewItem, CrewWorld, Document, DocumentLine
from owa_bench.shells.standard_tools import tool_of

_CACHED = 4096  # documents; seats and arms read the same ones
# By attribute: what a sentence says of a subject {s} and a value {v}.
_CORES = {
    "tag": ("the tag of {s} is {v}", "{s} carries the tag {v}", "{v} is the tag on {s}"),
    "kinds": (
        "the kinds of {s} are {v}",
        "{s} knows two kinds, {v}",
        "{v} are the kinds that {s} knows",
    ),
    "limit": (
        "a name on {s} has at most {v} letters",
        "{v} letters are the most for a name on {s}",
        "names on {s} stop at {v} letters",
    ),
    "range": (
        "amounts on {s} lie between {v}",
        "the least and the greatest amount on {s} are {v}",
        "{s} takes amounts between {v}",
    ),
    "length": (
        "{s} takes {v} hours",
        "the job {s} is done in {v} hours",
        "{v} hours are what {s} takes",
    ),
    "gap": (
        "{s} must wait {v} hours",
        "before {s} begins, {v} hours must pass",
        "{v} hours of rest come before {s}",
    ),
    "hours": ("{s} is open {v}", "the hours of {s} are {v}", "at {s} the doors are open {v}"),
    "key": ("the booking key of {s} is {v}", "{s} is booked with {v}", "{v} is the key for {s}"),
}
_CORES |= {
    "layout": (
        "rows of {s} come with the {v}",
        "{s} takes rows with the {v}",
        "with the {v} is how {s} takes rows",
    ),
    "cap": (
        "{s} caps amounts at {v}",
        "{v} is the cap on amounts of {s}",
        "amounts count up to {v} on {s}",
    ),
    "bonus": (
        "{s} adds {v} for each row",
        "{v} is what {s} adds for each row",
        "for each row {s} gets {v} more",
    ),
    "cause": (
        "{s} went down because of {v}",
        "the fault at {s} lies with {v}",
        "{v} is what brought {s} down",
    ),
    "order": ("on {s} one must {v}", "the rule for {s} is to {v}", "to {v} is what {s} asks for"),
    "flag": (
        "{s} runs with the flag {v}",
        "the flag of {s} is {v}",
        "{v} is the flag that {s} wants",
    ),
    "version": (
        "{s} is sound at version {v}",
        "the last good version of {s} is {v}",
        "{v} is the version at which {s} works",
    ),
    "say": (
        "the say on {s} is with {v}",
        "{v} decides about {s}",
        "who asks about {s} should ask {v}",
    ),
}
_STANDING = {
    "holds": ("{0}.", "For the record, {0}.", "As agreed, {0}.", "Note that {0}."),
    "former": ("It used to be that {0}.", "Until last spring, {0}."),
    "draft": ("An early draft had it that {0}.", "Some say, wrongly, that {0}."),
}
_GROUND = {
    "change": "Since the last change",
    "word": "By the word of who decides",
    "law": "By law",
    "contract": "By contract",
    "habit": "By habit",
    "reading": "On one reading",
}
_FILLERS = (
    "The kettle stands on the second floor.",
    "Please return the ladder to the shed.",
    "Visitors sign in at the gate.",
    "The next inspection is not yet announced.",
    "The old register was lost in the move.",
)


def hours_text(value: str) -> str:
    """Return the hours of a site in words.

    >>> hours_text("6 from 2 every 15")
    'for 6 hours from hour 2 on, and again every 15 hours'
    """
    open_for, _, rest = value.partition(" from ")
    first, _, period = rest.partition(" every ")
    return f"for {open_for} hours from hour {first} on, and again every {period} hours"


def sentence(line: DocumentLine) -> str:
    """Return a line of a document as a sentence."""
    if line.standing == "filler":
        return _FILLERS[line.style % len(_FILLERS)]
    value = hours_text(line.value) if line.attribute == "hours" else line.value
    if line.halves:
        value = f"2 times {int(value) // 2}"
    cores = _CORES[line.attribute]
    core = cores[line.style % len(cores)].format(s=line.subject, v=value)
    if line.ground:
        return f"{_GROUND[line.ground]}, {core}."
    frames = _STANDING[line.standing]
    text = frames[line.style // len(cores) % len(frames)].format(core)
    return text[0].upper() + text[1:]


@lru_cache(_CACHED)
def document_text(document: Document) -> str:
    """Return a document as its reader sees it."""
    lines = "\n".join(sentence(line) for line in document.lines)
    return f"{document.name}, kept by {document.owner}:\n{lines}"


def notice_text(notice: DocumentLine | str) -> str:
    """Return a notice as everybody sees it."""
    return notice if isinstance(notice, str) else sentence(notice)


def board_text(world: CrewWorld, text: str) -> str:
    """Return a line of the board in the words that it uses now.

    Args:
        world: Knows the words.
        text: In the usual words.
    """
    for word, other in world.board_words:
        text = re.sub(rf"\b{word}\b", other, text)
    return text


def item_text(item: CrewItem) -> str:
    """Return the line of an item in the task."""
    needs = ", ".join(item.needs) or "nothing"
    terms = "".join(f", {name} {value}" for name, value in item.terms)
    clauses = ", ".join(item.clauses)
    return (
        f"- {item.name}: for {item.role}, {item.effort} ticks, needs {needs}{terms}; "
        f"clauses {clauses}"
    )


def task_text(world: CrewWorld, seat: str, theta: float) -> str:
    """Return what a seat is told, whoever else plays.

    Args:
        world: The world at reset.
        seat: The seat.
        theta: Threshold of success.
    """
    family = family_of(world.family)
    others = ", ".join(name for name in world.seats if name != seat)
    own = [d.name for d in world.documents if d.owner == seat]
    away = "".join(
        f" You are away from tick {first} to {until}."
        for name, first, until in world.away
        if name == seat
    )
    review = (
        " An item can be merged only after somebody other than its author has "
        "approved it (review, or arbitrate)."
        if world.reviewed
        else ""
    )
    human = (
        f" Every {world.human} ticks a human colleague looks in and answers two "
        "questions of those that were asked of all."
        if world.human
        else ""
    )
    items = "\n".join(item_text(item) for item in world.items)
    return f"""You are {seat} of a crew; the others are {others}.{away}
Together you have {world.deadline} ticks to get {len(world.items)} items merged. \
Success: items of at least {theta:.0%} of all effort are accepted. {family.about}
Every action takes a tick, work(item, fragment, pins) the item's effort; then \
merge(item). An item that is built on others names the revision of each in pins; a \
merged item has a revision, which the board shows, and read(item) shows its \
fragment.{review}
What a clause asks for stands in somebody's documents, as sentences; what was, what \
was drafted and what is said wrongly does not hold. Yours: {", ".join(own)}. \
read(document) takes a tick for your own and for those of a role that nobody else \
fills, otherwise {world.research}. A message goes to one role or to all, one every \
{world.interval} ticks, of at most {world.tokens} tokens (4 letters each), and arrives \
a tick later. Where two documents differ by law, contract or habit, law goes before \
contract and contract before habit; where there are two readings, somebody decides. \
Such a clause must be settled: one who knows it proposes a value, another seat accepts \
it (where somebody decides, one of the two must be that role), or arbitrate(clause) \
decides after {world.arbitration} ticks.
Your role has {world.hours} ticks of work.{human} The lead ends the episode with finish.
Items:
{items}"""


def goal_of(world: CrewWorld, seat: str) -> dict[str, Any]:
    """Return the same as JSON.

    Args:
        world: The world at reset.
        seat: The seat.
    """
    owners = {c.name: c.owner for c in world.clauses} if world.asks_openly else {}
    return {
        "family": world.family,
        "tier": world.tier,
        "seat": seat,
        "seats": list(world.seats),
        "deadline": world.deadline,
        "interval": world.interval,
        "tokens": world.tokens,
        "research": world.research,
        "reviewed": world.reviewed,
        "human": world.human,
        "documents": {d.name: d.owner for d in world.documents},
        "owners": owners,
        "claims": [
            {"name": c.name, "kind": c.kind, "clause": c.clause, "role": c.role}
            for c in world.claims
        ],
        "items": [
            {
                "name": item.name,
                "role": item.role,
                "effort": item.effort,
                "needs": list(item.needs),
                "clauses": list(item.clauses),
                **dict(item.terms),
            }
            for item in world.items
        ],
    }


_NAME = {"type": "string", "maxLength": 60}
_TEXT = {"type": "string", "maxLength": 1200}
_TO = {"enum": [*ROLES, "all"], "description": "A role, or all."}
_PINS = {
    "type": "object",
    "additionalProperties": _NAME,
    "description": "By name of each item that it needs: the revision it builds on.",
}
_FRAGMENT = {
    "type": "object",
    "description": "What is handed in, in the form that the task describes.",
}
_MANIFEST = {
    "type": "object",
    "additionalProperties": _NAME,
    "description": "Values of clauses, by name, that the next one needs.",
}
_TICKS = {"type": "integer", "minimum": 1, "maximum": 20}
_VERDICT = {"enum": ["approve", "reject"]}
_ROLE = {"enum": list(ROLES)}
_WORK = "Make an item's fragment; takes its effort in ticks."
_HAND_OFF = "Give an item of yours to another role, with a manifest."
_PROPOSE = "Propose a value for a contested clause, or another one than was proposed."
_REVIEW = "Approve or reject the fragment of an item that another seat made."
_ARBITRATE = "Have a contested clause settled, or an item reviewed, from outside."


TOOLS = (
    tool_of("claim", "Put your name on an item.", item=_NAME),
    tool_of("work", _WORK, "pins", item=_NAME, fragment=_FRAGMENT, pins=_PINS),
    tool_of("read", "Read a document, or the fragment of a merged item.", name=_NAME),
    tool_of("hand_off", _HAND_OFF, "manifest", item=_NAME, to=_ROLE, manifest=_MANIFEST),
    tool_of("ask", "Ask for something.", to=_TO, about=_TEXT),
    tool_of("tell", "Tell something.", to=_TO, text=_TEXT),
    tool_of("propose", _PROPOSE, clause=_NAME, value=_NAME),
    tool_of("accept", "Accept what another seat proposed.", clause=_NAME),
    tool_of("review", _REVIEW, "reasons", item=_NAME, verdict=_VERDICT, reasons=_TEXT),
    tool_of("merge", "Merge an item that is worked out.", item=_NAME),
    tool_of("arbitrate", _ARBITRATE, name=_NAME),
    tool_of("board", "Show the state of every item."),
    tool_of("pass_turn", "Wait; a message wakes you.", "ticks", ticks=_TICKS),
)

"""The events of a crew: messages, conflicts, hand-offs and the task board."""

from owa_bench.records.event_base import Event, Source


class Message(Event, frozen=True, kw_only=True, tag="message"):
    """Text from one role to others: of source "env" where it passed the suite's fabric.

    An agent may declare messages between parts of itself; no axis reads those. The
    harness sets `sketch`, a SimHash by which near-duplicates are recognised. The fabric
    says what it is: `asks` is the fact that it asks for, `reached` whether a receiver
    has that fact, `gives` the facts that it states, `news` how many of them a receiver
    needs and had not been shown.
    """

    step: int
    source: Source = "agent"
    sender: str
    receivers: tuple[str, ...] = ()
    tokens: int = 0
    digest: str
    sketch: str = ""
    asks: str = ""
    reached: bool = False
    gives: tuple[str, ...] = ()
    news: int = 0


class Conflict(Event, frozen=True, kw_only=True, tag="conflict"):
    """Two roles want what excludes each other; the last event of an item counts."""

    step: int
    item: str
    resolved: bool = False


class Handoff(Event, frozen=True, kw_only=True, tag="handoff"):
    """An item passes from one role to another; `manifest` is a blob of what it says.

    `untrue` counts its values that nothing in the world ever stated.
    """

    step: int
    item: str
    sender: str
    receiver: str
    manifest: str = ""
    untrue: int = 0


class Board(Event, frozen=True, kw_only=True, tag="board"):
    """An item of the task board has a new owner or status."""

    step: int
    item: str
    status: str
    owner: str = ""


class CallRefusal(Event, frozen=True, kw_only=True, tag="refusal"):
    """The rules by which a crew works together, or a tool's own, refuse a call."""

    step: int
    tool: str


class ColleagueLook(Event, frozen=True, kw_only=True, tag="colleague"):
    """A human colleague of a crew looks in: its minutes, and what it answers whom.

    `answers` are (seat, fact). It is a term of the world and no intervention.
    """

    step: int
    minutes: float
    answers: tuple[tuple[str, str], ...] = ()

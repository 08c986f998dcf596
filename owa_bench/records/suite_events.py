"""Events of one topic: crews, memory checks, days of a project, self-revision.

Source: `docs/traces.md#events`.
"""

from typing import Literal

import msgspec

from owa_bench.records.event_base import Event, Source

# --- crews: messages, conflicts, hand-offs, the task board ----------------------------


class Message(Event, frozen=True, kw_only=True, tag="message"):
    """Text from one role to others: of source "env" where it passed the suite's fabric.

    An agent may declare messages between parts of itself; no axis reads those. The harness sets
    `sketch`, a SimHash by which near-duplicates are recognised. The fabric says what it is: `asks`
    is the fact that it asks for, `reached` whether a receiver has that fact, `gives` the facts that
    it states, `news` how many of them a receiver needs and had not been shown.
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


# --- memory checks --------------------------------------------------------------------


class Probe(Event, frozen=True, kw_only=True, tag="probe"):
    """A memory or retrieval check; the suite's world emits it when it is answered.

    `item` names what is asked for: one name at every lag, and no other item of the family has it.
    `mode` is "recall" (without tools), "assisted", "retrieve" (`returned` in order, each with
    whether it is a verified answer, `relevant` how many there are) or "span" (a list of `span`
    items). `contrary` counts the returned entries whose source does not exist or says the contrary,
    None if unchecked. `sitting` is the number of the sitting in which the item was shown, None
    where that was in an earlier episode. That no tools were on offer, that nobody helped and that
    the sitting is a new one is read from the `tools`, `intervention` and `sitting` events before
    it.
    """

    step: int = 0
    item: str
    lag_days: float
    span: int = 0
    guess: float = 0.0
    correct: bool
    mode: str = "recall"
    returned: tuple[tuple[str, bool], ...] = ()
    relevant: int = 1
    contrary: int | None = None
    sitting: int | None = None


# --- days of a project ----------------------------------------------------------------


class ProjectDay(Event, frozen=True, kw_only=True, tag="project_day"):
    """A day of a project is over.

    `acceptance` and `service` are the weight shares of what is due that the main branch and the
    deployed product answer rightly, None where nothing is due. `held` features worked on the
    evening before, `regressed` of them do not now. `minutes` of integration were used, `green`: the
    last run of integration on what the day ends with was. `release` is the mark of the week's
    release notes, on the last day of a week alone. `stopped`: production had stopped in the
    morning; `postmortem` is the mark of the one whose last day this is.
    """

    step: int
    day: int
    acceptance: float | None = None
    service: float | None = None
    held: int = 0
    regressed: int = 0
    minutes: int = 0
    green: bool = False
    release: float | None = None
    stopped: bool = False
    postmortem: float | None = None


# --- self-revision: proposals, and changes the harness saw ----------------------------


class Revision(Event, frozen=True, kw_only=True, tag="revision", forbid_unknown_fields=True):
    """What an agent says of a change of itself: shown, and never measured.

    Of it R reads that there was a proposal, and in which episode; what changed is a `MemoryChange`,
    what it brought the attempt sets that the harness played.
    """

    step: int
    source: Source = "agent"
    proposal: str
    plan: str = ""
    diff: str = ""
    decision: Literal["proposed", "adopted", "rejected", "reverted"] = "proposed"


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a memory folder, with how many lines came and went.

    `sha256` is of its later content, "" where it went.
    """

    path: str
    added: int
    removed: int
    sha256: str = ""


class MemoryChange(Event, frozen=True, kw_only=True, tag="memory_change"):
    """What a lane's memory folder changed in between two mornings, as the harness saw.

    The attempt plays on the later one with `reverted` put back to the earlier: the tool families
    that the change installed (folders below `families/`), or everything. `before` and `after` are
    the digests of both, `played` that of what is played on.
    """

    step: int = 0
    source: Source = "harness"
    since: int
    until: int
    before: str
    after: str
    played: str
    files: tuple[FileChange, ...] = ()
    families: tuple[str, ...] = ()
    reverted: tuple[str, ...] = ()

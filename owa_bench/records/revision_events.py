"""Events of self-revision: what an agent proposes, and what the harness sees change.

Source: `docs/traces.md#events`.
"""

from typing import Literal

import msgspec

from owa_bench.records.event_base import Event, Source


class Revision(
    Event, frozen=True, kw_only=True, tag="revision", forbid_unknown_fields=True
):
    """What an agent says of a change of itself: shown, and never measured.

    Of it R reads that there was a proposal, and in which episode; what changed is a
    `MemoryChange`, what it brought the attempt sets that the harness played.
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

    The attempt plays on the later one with `reverted` put back to the earlier: the
    tool families that the change installed (folders below `families/`), or everything.
    `before` and `after` are the digests of both, `played` that of what is played on.
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

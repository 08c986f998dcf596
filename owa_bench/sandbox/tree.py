"""The processes below one process, as /proc shows them."""

import contextlib
import os
import signal
from pathlib import Path
from typing import NamedTuple

PAGE = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")


class Entry(NamedTuple):
    """One process: its parent, its session, its resident memory in bytes."""

    parent: int
    session: int
    memory: int


def below(root: int) -> dict[int, Entry]:
    """Return `root`, its descendants and the members of its session, by pid."""
    everything = _processes()
    found = {
        pid: entry
        for pid, entry in everything.items()
        if pid == root or entry.session == root
    }
    grown = True
    while grown:
        children = {
            pid: entry
            for pid, entry in everything.items()
            if entry.parent in found and pid not in found
        }
        found |= children
        grown = bool(children)
    return found


def kill(pids: set[int]) -> None:
    """Send SIGKILL to every process of `pids` that is still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _processes() -> dict[int, Entry]:
    """Return every process of this machine that is not yet dead."""
    found: dict[int, Entry] = {}
    for name in os.listdir(_PROC):
        if name.isdigit():
            with contextlib.suppress(OSError):
                text = (_PROC / name / "stat").read_text(errors="replace")
                fields = text[text.rindex(")") + 2 :].split()
                if fields[0] not in "ZX":
                    found[int(name)] = Entry(
                        int(fields[1]), int(fields[3]), int(fields[21]) * PAGE
                    )
    return found

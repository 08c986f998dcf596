"""Process trees, read from /proc: members, memory, CPU time, deleted open files."""

import contextlib
import os
import signal
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

PAGE = os.sysconf("SC_PAGE_SIZE")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class ProcessEntry(NamedTuple):
    """One process: parent, session, bytes of resident memory, seconds of CPU.

    The seconds hold those of its children that it has waited for.
    """

    parent: int
    session: int
    memory: int
    cpu_s: float


def process_tree(root: int) -> dict[int, ProcessEntry]:
    """Return `root`, its descendants and the members of its session, by pid."""
    everything = dict(_processes())
    tree: dict[int, ProcessEntry] = {}
    grown = {pid: e for pid, e in everything.items() if root in (pid, e.session)}
    while grown:
        tree |= grown
        grown = {
            pid: entry
            for pid, entry in everything.items()
            if entry.parent in tree and pid not in tree
        }
    return tree


def _processes() -> Iterator[tuple[int, ProcessEntry]]:
    """Yield every process of this machine that is not yet dead, by pid."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            line = _read(f"/proc/{name}/stat")
            # Behind the name in parentheses: state, parent, group, session, ..
            fields = line[line.rindex(b")") + 2 :].split()
            if fields[0] not in (b"Z", b"X"):
                parent, session, pages = (int(fields[i]) for i in (1, 3, 21))
                ticks = sum(map(int, fields[11:15]))
                yield (
                    int(name),
                    ProcessEntry(parent, session, pages * PAGE, ticks * TICK_S),
                )


def _read(path: str) -> bytes:
    """Return a short file; ten times a second, so without a file object."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 1 << 12)
    finally:
        os.close(descriptor)


def kill(pids: Iterable[int]) -> None:
    """Kill processes; those that are gone or somebody else's are passed over."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def deleted_bytes(pids: Iterable[int], device: int) -> int:
    """Return the bytes of deleted files that processes hold open on a file system.

    Args:
        pids: The processes.
        device: `st_dev` of the file system.

    Returns:
        The bytes; a file that several hold counts once.
    """
    sizes: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    seen = entry.stat()
                    gone = seen.st_nlink == 0 and stat.S_ISREG(seen.st_mode)
                    if gone and seen.st_dev == device:
                        sizes[seen.st_ino] = seen.st_size
    return sum(sizes.values())

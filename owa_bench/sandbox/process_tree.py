"""Process trees from /proc (members, memory, files), and their CPU time by cgroup."""

import contextlib
import itertools
import os
import signal
import stat
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
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


def descendants(root: int) -> dict[int, ProcessEntry]:
    """Return `root` and its descendants by pid, without a look at all of the machine's processes.

    For a root above the first process of a namespace, which adopts what lost its parent: elsewhere
    such a process is nobody's descendant, and `process_tree` finds it by its session.
    """
    if not os.path.exists(f"/proc/{root}/task/{root}/children"):
        return process_tree(root) if os.path.exists(f"/proc/{root}") else {}
    tree: dict[int, ProcessEntry] = {}
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                waiting += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
            if (entry := _entry(pid)) is not None:
                tree[pid] = entry
    return tree


def _processes() -> Iterator[tuple[int, ProcessEntry]]:
    """Yield every process of this machine that is not yet dead, by pid."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if (entry := _entry(int(name))) is not None:
                yield int(name), entry


def _entry(pid: int) -> ProcessEntry | None:
    """Return a process, None for a dead one; OSError where there is none."""
    line = _read(f"/proc/{pid}/stat")
    # Behind the name in parentheses: state, parent, group, session, ..
    fields = line[line.rindex(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X"):
        return None
    parent, session, pages = (int(fields[i]) for i in (1, 3, 21))
    ticks = sum(map(int, fields[11:15]))
    return ProcessEntry(parent, session, pages * PAGE, ticks * TICK_S)


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
    Returns: The bytes; a file that several hold counts once.
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


# --- CPU time of a process and of all that it starts, by a control group --------------
# The kernel's sum over children leaves out those that a process ignores (`SIGCHLD` set
# to ignore); a control group counts them too. A group is a folder of the cgroup2 file
# system below this process' own group. Most users other than root may make none.


_PREFIX = "owa-agent-"  # then the number of who made it, then which of its groups it is
_NUMBERS = itertools.count()
_LAST_TRIES = 20  # a group is empty some milliseconds after its last process
_PAUSE_S = 0.002


@cache
def groups_folder() -> Path | None:
    """Return this process' own group of the cgroup2 file system, None without one."""
    with contextlib.suppress(OSError):
        mounts = Path("/proc/self/mounts").read_text().splitlines()
        places = [line.split()[1] for line in mounts if line.split()[2] == "cgroup2"]
        groups = Path("/proc/self/cgroup").read_text().splitlines()
        own = [line.partition("::")[2] for line in groups if line.startswith("0::")]
        if places and own:
            return Path(places[0], own[0].lstrip("/"))
    return None


def make_group() -> str | None:
    """Return a new group of processes, None where this process may make none."""
    folder = groups_folder()
    if folder is None:
        return None
    group = f"{folder}/{_PREFIX}{os.getpid()}-{next(_NUMBERS)}"
    try:
        os.mkdir(group)
    except OSError:
        return None
    return group


def join(group: str) -> None:
    """Enter a group with all that this process will start, if it may.

    The kernel takes some 10 ms for it: a process that is started in its group does not wait.
    """
    with contextlib.suppress(OSError), open(f"{group}/cgroup.procs", "w") as file:
        file.write("0")


def leave(group: str | None) -> float:
    """Return the seconds of CPU of a group whose processes are dead, and remove it.

    Args:
        group: The group, None where there is none.
    Returns: Seconds; 0 where there was no group.
    """
    if group is None:
        return 0.0
    try:
        lines = _read(f"{group}/cpu.stat").split()
    except OSError:
        return 0.0
    for _ in range(_LAST_TRIES):
        try:
            os.rmdir(group)
            break
        except OSError:
            time.sleep(_PAUSE_S)
    return int(lines[lines.index(b"usage_usec") + 1]) / 1e6


def remove_old_groups() -> None:
    """Remove the groups of processes that are dead."""
    folder = groups_folder()
    for group in folder.glob(f"{_PREFIX}*") if folder else ():
        maker = group.name.removeprefix(_PREFIX).partition("-")[0]
        if not Path("/proc", maker).exists():
            with contextlib.suppress(OSError):
                group.rmdir()

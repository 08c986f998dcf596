"""CPU time of a process and of all that it starts, by a control group of its own.

The kernel's sum over children leaves out those that a process ignores (`SIGCHLD` set to
ignore); a control group counts them too. A group is a folder of the cgroup2 file system
below this process' own group. Where none may be made, as for most users other than
root, `join` does nothing and `leave` returns 0.
"""

import contextlib
import os
import time
from functools import cache
from pathlib import Path

_PREFIX = "owa-agent-"  # then the number of who reads it, then that of the member
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


def join(reader: int) -> None:
    """Enter a group of this process' own, with all that it will start.

    Args:
        reader: Number of the process that will call `leave`.
    """
    folder = groups_folder()
    if folder is None:
        return
    group = folder / f"{_PREFIX}{reader}-{os.getpid()}"
    try:
        group.mkdir()
        (group / "cgroup.procs").write_text("0")
    except OSError:
        with contextlib.suppress(OSError):
            group.rmdir()


def leave(member: int) -> float:
    """Return the seconds of CPU of a dead process' group, and remove the group.

    Args:
        member: Number of the process, which had named this one as reader.

    Returns:
        Seconds; 0 where there was no group.
    """
    folder = groups_folder()
    if folder is None:
        return 0.0
    group = folder / f"{_PREFIX}{os.getpid()}-{member}"
    try:
        lines = (group / "cpu.stat").read_text().split()
    except OSError:
        return 0.0
    for _ in range(_LAST_TRIES):
        try:
            group.rmdir()
            break
        except OSError:
            time.sleep(_PAUSE_S)
    return int(lines[lines.index("usage_usec") + 1]) / 1e6


def remove_old_groups() -> None:
    """Remove the groups of readers that are dead."""
    folder = groups_folder()
    for group in folder.glob(f"{_PREFIX}*") if folder else ():
        reader = group.name.removeprefix(_PREFIX).partition("-")[0]
        if not Path("/proc", reader).exists():
            with contextlib.suppress(OSError):
                group.rmdir()

"""A hard ceiling on the tasks of a job, where the kernel grants one.

The watcher counts a job's processes every few milliseconds; between two looks a fork
bomb can fill the machine's process table. The ceiling stands above the limit that the
watcher enforces, so that the watcher names the breach and the kernel bounds it: root
gets a control group with `pids.max`, anybody else `RLIMIT_NPROC`, from which root is
exempt. Where root may not make control groups (most containers) there is only the
watcher.
"""

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

# Threads count as tasks: room for a numeric library's pool in each process.
TASKS_PER_PROCESS = 8
HEADROOM = 64
LOOKS = 100
LOOK_S = 0.02
_ENTER = 'echo $$ > "$0" && exec "$@"'
_HIERARCHIES = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))  # v1, v2


@contextlib.contextmanager
def ceiling(processes: int) -> Iterator[list[str]]:
    """Yield the command prefix that puts a job under a ceiling; empty if none can be.

    `processes` are those the watcher allows, its backend's own among them.
    """
    tasks = processes * TASKS_PER_PROCESS + HEADROOM
    if os.geteuid() != 0:
        yield _resource_limit(tasks)
        return
    group = _made(tasks)
    if group is None:
        yield []
        return
    try:
        yield ["sh", "-c", _ENTER, str(group / "cgroup.procs")]
    finally:
        _removed(group)


def _resource_limit(tasks: int) -> list[str]:
    """Return the prefix that sets RLIMIT_NPROC above what the user runs already."""
    prlimit = shutil.which("prlimit")
    running = sum(_threads(entry) for entry in Path("/proc").glob("[0-9]*"))
    return [prlimit, f"--nproc={running + tasks}"] if prlimit else []


def _threads(entry: Path) -> int:
    """Return how many tasks of this user's a /proc entry stands for."""
    try:
        mine = entry.stat().st_uid == os.getuid()
        return len(os.listdir(entry / "task")) if mine else 0
    except OSError:  # it ended while we looked
        return 0


def _made(tasks: int) -> Path | None:
    """Return a new control group of at most `tasks` tasks, None if none can be."""
    for hierarchy in _HIERARCHIES:
        if not (hierarchy / "cgroup.procs").exists():
            continue
        try:
            group = Path(tempfile.mkdtemp(prefix="owa-", dir=hierarchy))
        except OSError:
            continue
        try:
            (group / "pids.max").write_text(str(tasks))
        except OSError:  # the controller is not enabled here
            group.rmdir()
            continue
        return group
    return None


def _removed(group: Path) -> None:
    """Kill what is left in `group` and remove it once the kernel has let go of it."""
    for _ in range(LOOKS):
        with contextlib.suppress(OSError):
            for line in (group / "cgroup.procs").read_text().split():
                os.kill(int(line), signal.SIGKILL)
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(LOOK_S)

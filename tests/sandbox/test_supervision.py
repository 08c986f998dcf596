"""The kernel refuses what the watcher would see too late."""

import subprocess
import sys
from pathlib import Path

import pytest

from owa_bench.sandbox import supervision as subject

# Ends by itself after 400 processes, should the ceiling not hold.
_CLIMB = """
import os, signal, time
children = []
try:
    for _ in range(400):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        children.append(child)
except OSError:
    print("refused")
print(len(children))
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


def test_the_kernel_refuses_a_process_above_the_ceiling() -> None:
    with subject.task_ceiling(4) as prefix:
        if not prefix:
            pytest.skip("no control group can be made here and root has no limit")
        shown = subprocess.run(
            [*prefix, sys.executable, "-c", _CLIMB], capture_output=True, text=True, check=True
        ).stdout.split()
    assert shown[0] == "refused"
    # A user's limit counts the user's other tasks too: those that end make room.
    assert int(shown[1]) <= 2 * (4 * subject.TASKS_PER_PROCESS + subject.HEADROOM)


def test_the_control_group_is_removed() -> None:
    with subject.task_ceiling(4) as prefix:
        group = Path(prefix[-1]).parent if "sh" in prefix[:1] else None
        if group is None:
            pytest.skip("no control group is used here")
        assert group.is_dir()
    assert not group.exists()


def test_without_a_controller_there_is_only_the_watcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject.os, "geteuid", lambda: 0)
    monkeypatch.setattr(subject, "_HIERARCHIES", (tmp_path,))
    with subject.task_ceiling(4) as prefix:
        assert prefix == []

"""Processes and what they started."""

import subprocess
import time

import pytest

from owa_bench.sandbox import process_tree

SHELL = "sleep 60 & (sleep 60 & wait) & wait"
MEMBERS = 4  # the shell, a sleep, a shell inside and its sleep


@pytest.fixture
def shell():
    """Yield a process that has started others; end them all."""
    with subprocess.Popen(["sh", "-c", SHELL], start_new_session=True) as process:
        until = time.monotonic() + 30
        while len(process_tree.process_tree(process.pid)) < MEMBERS and time.monotonic() < until:
            time.sleep(0.01)
        yield process
        process_tree.kill(process_tree.process_tree(process.pid))


def test_descendants_are_those_of_the_whole_table(shell):
    found = process_tree.descendants(shell.pid)
    assert len(found) == MEMBERS
    assert found.keys() == process_tree.process_tree(shell.pid).keys()
    assert {entry.session for entry in found.values()} == {shell.pid}


def test_a_process_that_is_gone_has_none():
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert process_tree.descendants(process.pid) == {}


def test_without_the_kernels_lists_the_whole_table_is_read(shell, monkeypatch):
    exists = process_tree.os.path.exists
    hidden = lambda path: not str(path).endswith("children") and exists(path)  # noqa: E731
    monkeypatch.setattr(process_tree.os.path, "exists", hidden)
    assert len(process_tree.descendants(shell.pid)) == MEMBERS

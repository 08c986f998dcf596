"""File systems without locks, or that sync no folders."""

import errno
import fcntl
import os

import pytest

from owa_bench.records.layout import RunLayout
from owa_bench.runs.store import directory, disk, output


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP])
def test_a_lock_that_cannot_be_had_names_the_path(code, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match=str(tmp_path)), directory.locked(tmp_path):
        pass


def test_a_lock_is_taken_once(tmp_path):
    one, other = (os.open(tmp_path, os.O_RDONLY) for _ in range(2))
    try:
        assert disk.lock(one, tmp_path, wait=False)
        assert not disk.lock(other, tmp_path, wait=False)
    finally:
        os.close(one)
        os.close(other)


def test_a_folder_that_cannot_be_synced_is_left_to_the_file_system(tmp_path, monkeypatch):
    def refuse(_):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    shard = output.ShardFiles(RunLayout(tmp_path / "run"), 0)
    shard.close()


def test_a_file_that_cannot_be_synced_is_an_error_with_its_path(tmp_path, monkeypatch):
    def refuse(_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match=str(tmp_path / "x")):
        disk.sync(0, tmp_path / "x")


def test_an_error_that_names_its_own_path_keeps_it(tmp_path):
    with pytest.raises(FileNotFoundError, match="elsewhere"), disk.naming(tmp_path):
        (tmp_path / "elsewhere").read_bytes()

"""The keeper of a root image, and the way into it: a process with mounts of its own.

    keep FOLDER BYTES
    join PID COMMAND..

The keeper mounts a file system in memory on the folder, in namespaces of its own, and copies into
it what it is asked to. No other process sees it but those that join, and the kernel frees it when
the keeper and they have ended, however they ended: nothing can be left behind. The keeper ends when
its input does. Standard library only: `root_image` runs `main` in a process that imports nothing
else, since threads may not do this.
"""

import contextlib
import fcntl
import json
import os
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from owa_bench.sandbox import namespaces

VIEW: Final = "probe"  # where a first overlay is tried
_READERS = 8  # threads: a cold disk answers several at once
_CHUNK = 1 << 24
_LOCK = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
_OFD_SETLK = 37  # linux/fcntl.h


class CopyOrder(NamedTuple):
    """A layer to be made: copies of paths, less what lies in `left_out`.

    `shown`: the copies then stand at their paths, for those that join.
    """

    layer: str
    paths: tuple[str, ...]
    left_out: tuple[str, ...]
    shown: bool


def keep(folder: str, size: int) -> int:
    """Mount the image, and obey orders, one line of JSON each, to the end of input.

    Args:
        folder: An empty folder.
        size: Most bytes of the image.
    Returns: The exit code.
    """
    try:
        namespaces.separate_mounts()
        namespaces.mount_memory(folder, size)
        for name in ("one", "other", VIEW):
            os.mkdir(f"{folder}/{name}")
        layers = [f"{folder}/{name}" for name in ("one", "other")]
        namespaces.mount_overlay(layers, f"{folder}/{VIEW}")
        held = [_lock_device(f"/dev/{name}") for name in namespaces.DEVICES]
    except OSError as error:
        _tell(str(error.strerror or error))
        return 1
    _tell("")
    for line in sys.stdin:
        try:
            _obey(folder, CopyOrder(*json.loads(line)))
        except OSError as error:
            _tell(f"{error.filename or folder}: {error.strerror or error}")
        else:
            _tell("")
    for descriptor in held:
        os.close(descriptor)
    namespaces.unmount(folder)
    os.rmdir(folder)
    return 0


def _tell(fault: str) -> None:
    sys.stdout.write(json.dumps(fault) + "\n")
    sys.stdout.flush()


def _lock_device(path: str) -> int:
    """Hold every lock of a device in common with whoever else keeps an image.

    Sandboxes have the inodes of devices in common. While these locks are held, each exclusive lock
    there fails, each shared one is given, and whoever asks is told of this lock: none says what
    another sandbox holds.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    fcntl.fcntl(descriptor, _OFD_SETLK, _LOCK)
    return descriptor


def _obey(folder: str, order: CopyOrder) -> None:
    root = f"{folder}/{order.layer}"
    os.makedirs(root, exist_ok=True)
    with ThreadPoolExecutor(_READERS) as threads:
        copier = _Copier(frozenset(order.left_out), threads)
        for path in order.paths:
            os.makedirs(os.path.dirname(root + path), exist_ok=True)
            copier.copy(path, root + path)
        copier.wait()
    if order.shown:
        for path in order.paths:
            namespaces.mount_over(root + path, path)


class _Copier:
    """Copies trees: contents, modes, times and links; no owners, no special files.

    What this user may not read is left out: no agent may either.
    """

    def __init__(self, left_out: frozenset[str], threads: ThreadPoolExecutor) -> None:
        self._left_out = left_out
        self._threads = threads
        self._linked: dict[tuple[int, int], str] = {}
        self._waiting: list[Iterator[None]] = []
        self._folders: list[tuple[str, os.stat_result]] = []

    def copy(self, source: str, target: str) -> None:
        """Copy a file, a link or a tree.

        Args:
            source: Where it is.
            target: Where it is to be.
        """
        files: list[tuple[str, str, os.stat_result]] = []
        found = os.stat(source)
        if not stat.S_ISDIR(found.st_mode):
            files.append((source, target, found))
        else:
            files += self._make_folder(source, target, found)
        self._waiting.append(self._threads.map(_copy_file, files, chunksize=64))

    def wait(self) -> None:
        """Return when all is copied; OSError of the first file that cannot be."""
        for results in self._waiting:
            for _ in results:
                pass
        for target, found in reversed(self._folders):
            _take_attributes(target, found)

    def _make_folder(
        self, source: str, target: str, found: os.stat_result
    ) -> Iterable[tuple[str, str, os.stat_result]]:
        """Make the folders of a tree; yield its files."""
        os.makedirs(target, exist_ok=True)
        self._folders.append((target, found))
        with contextlib.suppress(PermissionError), os.scandir(source) as entries:
            for entry in entries:
                place = f"{target}/{entry.name}"
                seen = entry.stat(follow_symlinks=False)
                if entry.path in self._left_out:
                    continue
                if stat.S_ISDIR(seen.st_mode):
                    yield from self._make_folder(entry.path, place, seen)
                elif os.path.lexists(place):
                    continue
                elif stat.S_ISLNK(seen.st_mode):
                    os.symlink(os.readlink(entry.path), place)
                elif stat.S_ISREG(seen.st_mode):
                    yield from self._once(entry.path, place, seen)

    def _once(
        self, source: str, target: str, found: os.stat_result
    ) -> Iterable[tuple[str, str, os.stat_result]]:
        """Yield a file, but link it to the copy that has its inode, if there is one."""
        key = (found.st_dev, found.st_ino)
        if found.st_nlink > 1 and key in self._linked:
            os.link(self._linked[key], target)
            return
        if found.st_nlink > 1:
            with contextlib.suppress(PermissionError):
                _copy_file((source, target, found))
                self._linked[key] = target
            return
        yield source, target, found


def _copy_file(what: tuple[str, str, os.stat_result]) -> None:
    source, target, found = what
    try:
        reader = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        return
    writer = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while os.sendfile(writer, reader, None, _CHUNK):
            pass
    finally:
        os.close(reader)
        os.close(writer)
    _take_attributes(target, found)


def _take_attributes(target: str, found: os.stat_result) -> None:
    os.chmod(target, stat.S_IMODE(found.st_mode) | stat.S_IRUSR)
    os.utime(target, ns=(found.st_mtime_ns, found.st_mtime_ns))


def join(pid: int, command: list[str]) -> int:
    """Become a command that sees the image of a keeper; return only if it cannot.

    Args:
        pid: The keeper.
        command: The program and its arguments.
    Returns: The exit code.
    """
    folder = os.getcwd()
    namespaces.join_mounts(pid)
    with contextlib.suppress(OSError):
        os.chdir(folder)
    os.execv(command[0], command)  # noqa: S606  the harness' own command


def main(arguments: list[str]) -> int:
    """Keep an image or join one; return the exit code."""
    if arguments[1] == "join":
        return join(int(arguments[2]), arguments[3:])
    return keep(arguments[2], int(arguments[3]))

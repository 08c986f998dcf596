"""Output of a recorder: where the bytes of its shard and its pack go.

`ShardFiles` is the local one. A recorder on another machine has one that sends the same bytes to
the machine with the run directory, where a `ShardFiles` writes them.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import zstandard

from owa_bench.errors import RunDirectoryError
from owa_bench.records.events import ENCODER
from owa_bench.records.layout import RunLayout
from owa_bench.records.shards import ShardHead
from owa_bench.records.trace import Leaf
from owa_bench.runs.store import disk
from owa_bench.runs.store.files import append_leaves


class ShardOutput(Protocol):
    """What a recorder writes to. Calls come one at a time, in the order of the bytes.

    Attributes:
        name: Name of the shard, which the leaves bear.
        size: Bytes that the shard holds; the next frame begins there.
    """

    name: str
    size: int

    def append(self, frame: bytes, blobs: bytes) -> None:
        """Append a whole frame to the shard, and before it the blobs it names.

        Args:
            frame: Bytes of one zstd frame and its padding; empty for blobs alone.
            blobs: Bytes for the pack; may be empty.
        Raises: OSError: They cannot be written.
        """

    def settle(self) -> None:
        """Return when no kill of this process can lose what was appended so far."""

    def commit(self, leaves: Sequence[Leaf]) -> None:
        """Make everything appended so far durable, then append the leaves.

        Args:
            leaves: Leaves of attempts whose last frame was appended.
        Raises: OSError: It cannot be made durable.
        """

    def close(self) -> None:
        """Let go of the shard; nothing is written any more."""


class ShardFiles:
    """A shard and its pack as files of a run directory, which one process writes.

    Args:
        layout: The run directory.
        shard: Number of the shard, not taken before.
        lease: Stands in the shard's head; "" for a shard without one.
    Raises: RunDirectoryError: The shard or its pack exists: neither is ever appended to.
    """

    def __init__(self, layout: RunLayout, shard: int, lease: str = "") -> None:
        path = layout.shard(shard)
        self.name = path.name
        self.size = 0
        self._layout = layout
        self._pack_path = layout.pack(shard)
        self._pack = -1
        self._appended = self._synced = 0
        if self._pack_path.exists():
            raise _exists_error(self._pack_path)
        self._shard = _create(path)
        if lease:
            line = ENCODER.encode(ShardHead(lease=lease)) + b"\n"
            self.append(zstandard.ZstdCompressor(write_checksum=True).compress(line))

    def append(self, frame: bytes, blobs: bytes = b"") -> None:
        """Append blobs to the pack, then a frame to the shard.

        Args:
            frame: Bytes of one zstd frame; may be empty.
            blobs: Bytes for the pack; may be empty.
        Raises: OSError: The disk refuses them.
        """
        if blobs:
            if self._pack < 0:
                self._pack = _create(self._pack_path)
            with disk.naming(self._pack_path):
                _write(self._pack, blobs)
        if frame:
            with disk.naming(self._layout.shards / self.name):
                _write(self._shard, frame)
            self.size += len(frame)
        self._appended += 1

    def settle(self) -> None:
        """Do nothing: what was written outlives the process that wrote it."""

    def commit(self, leaves: Sequence[Leaf]) -> None:
        """Sync the pack and the shard, then append the leaves.

        Args:
            leaves: Leaves of attempts whose last frame was appended.
        Raises: OSError: The disk refuses.
        """
        appended = self._appended
        if appended != self._synced:
            if self._pack >= 0:
                with disk.naming(self._pack_path):
                    os.fdatasync(self._pack)
            with disk.naming(self._layout.shards / self.name):
                os.fdatasync(self._shard)
            self._synced = appended
        if leaves:
            append_leaves(self._layout, leaves)

    def close(self) -> None:
        """Close both files."""
        os.close(self._shard)
        if self._pack >= 0:
            os.close(self._pack)


def _create(path: Path) -> int:
    """Return a descriptor of a new file, its folder made and synced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o644)
    except FileExistsError as error:
        raise _exists_error(path) from error
    disk.sync_folder(path.parent)
    return descriptor


def _exists_error(path: Path) -> RunDirectoryError:
    return RunDirectoryError(f"{path} exists; a shard has one writer, so take a new number.")


def _write(descriptor: int, data: bytes) -> None:
    """Write all of `data`."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]

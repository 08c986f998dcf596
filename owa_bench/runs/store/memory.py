"""Memory of an agent between episodes: its folder, the digest, sealed snapshots.

Episodes of a lane share what is in their folder, all others get an empty one. Folders lie outside
the run directory, since an agent may write down secrets, and every episode has one of its own, so
that no agent can tell by it whether it plays on a copy. After each episode of a lane the folder is
packed and sealed under the lane's key, which derives from the run's master, and only that snapshot
lies in the run: `lanes/NAME/DIGEST.sealed`. A resumed run goes on from the snapshot whose digest
the last complete leaf names. Snapshots that a plan needs copies of are kept.

A folder holds plain files and folders under a quota. One that holds anything else is its agent's
failure: the episode counts as `agent_raised`, and the lane goes on from the snapshot before.
"""

import re
import tarfile
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Protocol, Self

import zstandard
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from owa_bench.canonical import keyed_digest, sha256
from owa_bench.errors import RunDirectoryError
from owa_bench.records.layout import RunLayout
from owa_bench.records.suite_events import MemoryChange
from owa_bench.runs.store.files import write_whole
from owa_bench.runs.store.memory_folder import (
    EMPTY,
    MemoryEntry,
    MemoryFault,
    MemoryQuota,
    RevertedWindow,
    folder_digest,
    memory_change,
    packed_entries,
    packed_folder,
    read_folder,
    remove_folder,
    unpack_folder,
)
from owa_bench.seeding import fresh_bytes

_NONCE_BYTES = 12  # AES-GCM's own
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_NAME = 100  # file systems take 255 bytes


class EpisodeMemory(Protocol):
    """The folder of one episode; a context manager that clears up after it."""

    change: MemoryChange | None

    @property
    def path(self) -> Path:
        """The folder."""

    def fault(self) -> str:
        """Return why the folder cannot be kept, "" if it can; the agent has ended."""

    def settle(self) -> str | None:
        """Keep what the agent wrote; the digest for the leaf, None outside lanes."""


class FreshMemory:
    """An empty folder that goes with its episode."""

    change: MemoryChange | None = None

    def __init__(self) -> None:
        self._parent = Path(tempfile.mkdtemp(prefix="owa-memory-"))
        self.path = self._parent / "memory"
        self.path.mkdir()

    def fault(self) -> str:
        """Return "": nothing is kept."""
        return ""

    def settle(self) -> str | None:
        """Return None: nothing is kept."""
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        remove_folder(self._parent)


class CopiedMemory(FreshMemory):
    """A throw-away copy of a lane's folder: for checkpoints and attempt sets.

    Args:
        lane: The lane, at the snapshot that is copied.
        without: What the change since an earlier snapshot is to be reverted to.
    """

    def __init__(self, lane: "LaneMemory", without: RevertedWindow | None = None) -> None:
        super().__init__()
        self._digest = lane.digest
        try:
            entries = lane.snapshot(self._digest)
            if without is not None:
                before = lane.snapshot(without.digest)
                self.change, entries = memory_change(before, entries, without)
                self._digest = self.change.played
            unpack_folder(packed_folder(entries), self.path)
        except BaseException:
            self.__exit__()
            raise

    def settle(self) -> str:
        """Return the digest of what it began with; nothing of the episode is kept."""
        return self._digest


class Snapshots(Protocol):
    """The sealed snapshots of one lane."""

    def read(self, digest: str) -> bytes:
        """Return a snapshot; OSError if it is not there."""

    def write(self, digest: str, sealed: bytes, kept: Collection[str]) -> None:
        """Keep a snapshot and those in `kept`; all others go.

        Args:
            digest: Digest of the folder.
            sealed: Its sealed content.
            kept: Digests of the snapshot that the open attempt began with, and of those that copies
                are made of.
        """


class SnapshotFiles:
    """Snapshots in a run directory."""

    def __init__(self, layout: RunLayout, lane: str) -> None:
        self._folder = layout.lanes / _folder_name(lane)

    def read(self, digest: str) -> bytes:
        """Return a snapshot; OSError if it is not there."""
        return self._path(digest).read_bytes()

    def write(self, digest: str, sealed: bytes, kept: Collection[str]) -> None:
        """Write a snapshot, whole and synced, and remove all but it and `kept`.

        Args:
            digest: Digest of the folder.
            sealed: Its sealed content.
            kept: Digests of the snapshot that the open attempt began with, and of those that copies
                are made of.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(self._path(digest), sealed)
        for path in self._folder.glob("*.sealed"):
            if path.stem != digest and path.stem not in kept:
                path.unlink()

    def _path(self, digest: str) -> Path:
        return self._folder / f"{digest}.sealed"


def lane_key(master: bytes, lane: str) -> bytes:
    """Return the key under which a lane's snapshots are sealed.

    Args:
        master: The run's secret, any verifier's nonce mixed in.
        lane: Name of the lane.
    Returns: The key, 32 bytes.
    """
    return keyed_digest(master, "memory", lane)


class LaneMemory:
    """The memory of one lane while its worker plays it; a context manager per episode.

    Attributes:
        path: The folder of the open episode.
        digest: Digest of the last snapshot.
        copied: Digests of snapshots that copies are made of.
    """

    change: MemoryChange | None = None

    def __init__(
        self,
        snapshots: Snapshots,
        key: bytes,
        digest: str | None,
        quota: MemoryQuota = MemoryQuota(),  # noqa: B008  a tuple
    ) -> None:
        self._snapshots = snapshots
        self._key = key
        self._quota = quota
        self.copied: Collection[str] = ()
        self.digest = digest or EMPTY
        self._work = FreshMemory()
        try:
            self.rewind()
        except RunDirectoryError:
            self.close()
            raise

    @property
    def path(self) -> Path:
        """The folder of the open episode."""
        return self._work.path

    def fault(self) -> str:
        """Return why the folder cannot be kept, "" if it can."""
        try:
            read_folder(self.path, self._quota)
        except MemoryFault as fault:
            return f"memory_dir {fault}"
        return ""

    def settle(self) -> str:
        """Seal a snapshot of the folder and return its digest.

        The one before stays: until the leaf is closed a resumed run goes on from it. A folder that
        cannot be kept goes back to it.
        """
        try:
            entries = read_folder(self.path, self._quota)
        except MemoryFault:
            self.rewind()
            return self.digest
        before, self.digest = self.digest, folder_digest(entries)
        nonce = fresh_bytes(_NONCE_BYTES)
        sealed = AESGCM(self._key).encrypt(nonce, packed_folder(entries), self.digest.encode())
        kept = {before, *self.copied}
        self._snapshots.write(self.digest, nonce + sealed, kept)
        return self.digest

    def rewind(self) -> None:
        """Return to the last snapshot, in a new folder: what came after is not kept."""
        entries = self.snapshot(self.digest)
        self.close()
        self._work = FreshMemory()
        unpack_folder(packed_folder(entries), self.path)

    def snapshot(self, digest: str) -> tuple[MemoryEntry, ...]:
        """Return what a snapshot of the lane holds.

        Raises: RunDirectoryError: It is not there, or does not hold what its name says.
        """
        if digest == EMPTY:
            return ()
        try:
            data = self._snapshots.read(digest)
            nonce, sealed = data[:_NONCE_BYTES], data[_NONCE_BYTES:]
            packed = AESGCM(self._key).decrypt(nonce, sealed, digest.encode())
            entries = packed_entries(packed)
        except (OSError, InvalidTag, tarfile.TarError, zstandard.ZstdError) as error:
            raise RunDirectoryError(
                f"The memory snapshot {digest} cannot be restored: {error!r}."
            ) from error
        if folder_digest(entries) != digest:
            raise RunDirectoryError(
                f"The memory snapshot {digest} does not hold what its name says."
            )
        return entries

    def __enter__(self) -> Self:
        """Begin an episode in a folder of its own."""
        self.rewind()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the snapshot for the lane's next episode."""

    def close(self) -> None:
        """Remove the folder; the snapshots stay."""
        self._work.__exit__(None, None, None)


def _folder_name(lane: str) -> str:
    """Return a lane's folder: its name, marked where letters had to be replaced.

    Without the mark two lanes could share a folder, and each sweeps what is not its.
    """
    plain = _UNSAFE.sub("_", lane)[:_LONGEST_NAME]
    return plain if plain == lane else f"{plain}-{sha256(lane.encode())[:16]}"

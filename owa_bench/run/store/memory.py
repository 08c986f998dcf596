"""Memory of an agent between episodes: its folder, the digest, sealed snapshots.

Episodes of a lane share one folder, all others get a fresh one. Folders lie outside
the run directory, since an agent may write down secrets. After each episode of a lane
the folder is packed and sealed under the lane's key, which derives from the run's
master, and only that snapshot lies in the run: `lanes/NAME/DIGEST.sealed`. A resumed
run goes on from the snapshot whose digest the last complete leaf names.

A folder holds plain files and folders under a quota. One that holds anything else is
its agent's failure: the episode counts as `agent_raised`, and the lane goes on from
the snapshot before.
"""

import contextlib
import hashlib
import io
import os
import re
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import zstandard
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from owa_bench.canonical import keyed_digest, sha256
from owa_bench.errors import RunDirectoryError
from owa_bench.records.layout import RunLayout
from owa_bench.run.store.files import write_whole
from owa_bench.seeding import fresh_bytes

_NONCE_BYTES = 12  # AES-GCM's own
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_NAME = 100  # file systems take 255 bytes


class MemoryQuota(NamedTuple):
    """Bytes, files and folders, and depth that a lane's folder may have."""

    size: int = 256 << 20
    entries: int = 10_000
    depth: int = 32


class MemoryEntry(NamedTuple):
    """A file of a folder, or a folder in it (`data` None), with its mode."""

    parts: tuple[str, ...]
    mode: int
    data: bytes | None


class MemoryFault(Exception):
    """A folder that cannot be kept, in words."""


class EpisodeMemory(Protocol):
    """The folder of one episode; a context manager that clears up after it."""

    path: Path

    def fault(self) -> str:
        """Return why the folder cannot be kept, "" if it can; the agent has ended."""

    def settle(self) -> str | None:
        """Keep what the agent wrote; the digest for the leaf, None outside lanes."""


class FreshMemory:
    """An empty folder that goes with its episode."""

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
    """A throw-away copy of a lane's folder, for checkpoints."""

    def __init__(self, lane: "LaneMemory") -> None:
        super().__init__()
        self._digest = lane.digest
        shutil.copytree(lane.path, self.path, dirs_exist_ok=True)

    def settle(self) -> str:
        """Return the digest of the lane's memory, which the episode did not touch."""
        return self._digest


class Snapshots(Protocol):
    """The sealed snapshots of one lane."""

    def read(self, digest: str) -> bytes:
        """Return a snapshot; OSError if it is not there."""

    def write(self, digest: str, sealed: bytes, before: str) -> None:
        """Keep a snapshot and the one before it; older ones go.

        Args:
            digest: Digest of the folder.
            sealed: Its sealed content.
            before: Digest of the snapshot that the open attempt began with.
        """


class SnapshotFiles:
    """Snapshots in a run directory."""

    def __init__(self, layout: RunLayout, lane: str) -> None:
        self._folder = layout.lanes / _folder_name(lane)

    def read(self, digest: str) -> bytes:
        """Return a snapshot; OSError if it is not there."""
        return self._path(digest).read_bytes()

    def write(self, digest: str, sealed: bytes, before: str) -> None:
        """Write a snapshot, whole and synced, and remove all but it and `before`.

        Args:
            digest: Digest of the folder.
            sealed: Its sealed content.
            before: Digest of the snapshot that the open attempt began with.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(self._path(digest), sealed)
        for path in self._folder.glob("*.sealed"):
            if path.stem not in (before, digest):
                path.unlink()

    def _path(self, digest: str) -> Path:
        return self._folder / f"{digest}.sealed"


def lane_key(master: bytes, lane: str) -> bytes:
    """Return the key under which a lane's snapshots are sealed.

    Args:
        master: The run's secret, any verifier's nonce mixed in.
        lane: Name of the lane.

    Returns:
        The key, 32 bytes.
    """
    return keyed_digest(master, "memory", lane)


class LaneMemory:
    """The memory of one lane while its worker plays it."""

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
        self._work = FreshMemory()
        self.path = self._work.path
        self.digest = folder_digest(())
        if digest is not None and digest != self.digest:
            try:
                self._restore(digest)
            except RunDirectoryError:
                self.close()
                raise

    def fault(self) -> str:
        """Return why the folder cannot be kept, "" if it can."""
        try:
            read_folder(self.path, self._quota)
        except MemoryFault as fault:
            return f"memory_dir {fault}"
        return ""

    def settle(self) -> str:
        """Seal a snapshot of the folder and return its digest.

        The one before stays: until the leaf is closed a resumed run goes on from it.
        A folder that cannot be kept goes back to it.
        """
        try:
            entries = read_folder(self.path, self._quota)
        except MemoryFault:
            self.rewind()
            return self.digest
        before, self.digest = self.digest, folder_digest(entries)
        nonce = fresh_bytes(_NONCE_BYTES)
        sealed = AESGCM(self._key).encrypt(
            nonce, _packed(entries), self.digest.encode()
        )
        self._snapshots.write(self.digest, nonce + sealed, before)
        return self.digest

    def rewind(self) -> None:
        """Return the folder to the last snapshot: what came after is not kept."""
        remove_folder(self.path)
        self.path.mkdir()
        if self.digest != folder_digest(()):
            self._restore(self.digest)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the folder for the lane's next episode."""

    def close(self) -> None:
        """Remove the folder; the snapshots stay."""
        self._work.__exit__(None, None, None)

    def _restore(self, digest: str) -> None:
        try:
            data = self._snapshots.read(digest)
            nonce, sealed = data[:_NONCE_BYTES], data[_NONCE_BYTES:]
            packed = AESGCM(self._key).decrypt(nonce, sealed, digest.encode())
            _unpack(packed, self.path)
        except (OSError, InvalidTag, tarfile.TarError, zstandard.ZstdError) as error:
            raise RunDirectoryError(
                f"The memory snapshot {digest} cannot be restored: {error!r}."
            ) from error
        self.digest = folder_digest(read_folder(self.path, self._quota))
        if self.digest != digest:
            raise RunDirectoryError(
                f"The memory snapshot {digest} does not hold what its name says."
            )


def _folder_name(lane: str) -> str:
    """Return a lane's folder: its name, marked where letters had to be replaced.

    Without the mark two lanes could share a folder, and each sweeps what is not its.
    """
    plain = _UNSAFE.sub("_", lane)[:_LONGEST_NAME]
    return plain if plain == lane else f"{plain}-{sha256(lane.encode())[:16]}"


# --- folders of agents ----------------------------------------------------------------


def read_folder(folder: Path, quota: MemoryQuota) -> tuple[MemoryEntry, ...]:
    """Return what a folder holds, in order of path.

    Nothing is opened but plain files, no link is followed, and no more is read than
    the quota allows.

    Args:
        folder: The folder.
        quota: What it may hold.

    Returns:
        Its files and folders.

    Raises:
        MemoryFault: It breaks the quota, holds something else, or is gone.
    """
    entries: list[MemoryEntry] = []
    size = 0

    def read(descriptor: int, parts: tuple[str, ...]) -> None:
        nonlocal size
        if len(parts) >= quota.depth:
            raise MemoryFault(f"has folders more than {quota.depth} deep")
        for name in os.listdir(descriptor):
            if len(entries) >= quota.entries:
                raise MemoryFault(f"has more than {quota.entries} files and folders")
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            kind = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            path = (*parts, name)
            if not stat.S_ISREG(kind.st_mode) and not stat.S_ISDIR(kind.st_mode):
                raise MemoryFault(f"holds {'/'.join(path)!r}, which is no plain file")
            with _opened(name, flags, descriptor) as inner:
                if stat.S_ISDIR(kind.st_mode):
                    entries.append(MemoryEntry(path, kind.st_mode & 0o700, None))
                    read(inner, path)
                    continue
                size += os.fstat(inner).st_size
                if size > quota.size:
                    raise MemoryFault(f"has more than {quota.size} bytes")
                data = _content(inner, quota.size)
                entries.append(MemoryEntry(path, kind.st_mode & 0o700, data))

    try:
        with _opened(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY) as top:
            read(top, ())
    except OSError as error:
        raise MemoryFault(f"cannot be read: {error.strerror}") from error
    return tuple(sorted(entries))


@contextlib.contextmanager
def _opened(name: str | Path, flags: int, folder: int | None = None) -> Iterator[int]:
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _content(descriptor: int, most: int) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return file.read(most + 1)


def remove_folder(folder: Path) -> None:
    """Remove a folder however deep it is; a link or file in its place is unlinked.

    Folders in folders are moved up first, so that no path gets long. What cannot be
    removed stays.
    """
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
        return
    number = 0
    with contextlib.suppress(OSError), _opened(folder, os.O_RDONLY) as top:
        while names := os.listdir(top):
            for name in names:
                if not _is_folder(name, top):
                    os.unlink(name, dir_fd=top)
                    continue
                os.chmod(name, 0o700, dir_fd=top)
                with _opened(name, os.O_RDONLY | os.O_NOFOLLOW, top) as inner:
                    for child in os.listdir(inner):
                        number += 1
                        place = f".owa-{number}" if _is_folder(child, inner) else child
                        if place == child:
                            os.unlink(child, dir_fd=inner)
                        else:
                            os.rename(child, place, src_dir_fd=inner, dst_dir_fd=top)
                os.rmdir(name, dir_fd=top)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _is_folder(name: str, parent: int) -> bool:
    mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    return stat.S_ISDIR(mode)


def folder_digest(entries: Iterable[MemoryEntry]) -> str:
    """Return the digest of a folder: names, kinds and contents, no times or owners."""
    digest = hashlib.sha256()
    for entry in entries:
        name = os.fsencode("/".join(entry.parts))
        kind, content = (b"d", b"") if entry.data is None else (b"f", entry.data)
        digest.update(b"%s|%d|%s|%d|" % (kind, len(name), name, len(content)))
        digest.update(content)
    return digest.hexdigest()


def _packed(entries: Iterable[MemoryEntry]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for entry in entries:
            member = tarfile.TarInfo("/".join(entry.parts))
            member.mode, member.size = entry.mode, len(entry.data or b"")
            if entry.data is None:
                member.type, member.mode = tarfile.DIRTYPE, 0o700
            archive.addfile(member, io.BytesIO(entry.data or b""))
    return zstandard.ZstdCompressor(level=3).compress(buffer.getvalue())


def _unpack(packed: bytes, folder: Path) -> None:
    reader = zstandard.ZstdDecompressor().decompressobj()
    data = reader.decompress(packed)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        # Sealed by us: plain files and folders. Debian 12 has no filter.
        archive.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
        archive.extractall(folder)  # noqa: S202 - see above

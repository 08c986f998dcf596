"""Folders of agents: read within a quota, digested, packed, compared and removed.

Nothing is opened but plain files, no link is followed.
"""

import contextlib
import hashlib
import io
import os
import stat
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import zstandard

from owa_bench.canonical import sha256
from owa_bench.records.suite_events import FileChange, MemoryChange

FAMILIES = "families"  # the folder in which an agent keeps the tool families it adds


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


def read_folder(folder: Path, quota: MemoryQuota) -> tuple[MemoryEntry, ...]:
    """Return what a folder holds, in order of path.

    Nothing is opened but plain files, no link is followed, and no more is read than the quota
    allows.

    Args:
        folder: The folder.
        quota: What it may hold.
    Returns: Its files and folders.
    Raises: MemoryFault: It breaks the quota, holds something else, or is gone.
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
            with _open_file(name, flags, descriptor) as inner:
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
        with _open_file(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY) as top:
            read(top, ())
    except OSError as error:
        raise MemoryFault(f"cannot be read: {error.strerror}") from error
    return tuple(sorted(entries))


def carry_over(folder: Path, size: int) -> None:
    """Leave nothing in a folder but the names, modes and contents that it may hold.

    It is written anew: times, extended attributes and the order of its entries are gone, so that
    what is carried over is what was counted.

    Args:
        folder: Folder of an agent that has ended.
        size: Bytes of contents and of names, folders' names among them.
    Raises: MemoryFault: It holds more, or something that cannot be kept.
    """
    entries = read_folder(folder, MemoryQuota(size=size))
    names = sum(len(os.fsencode(entry.parts[-1])) for entry in entries)
    held = names + sum(len(entry.data or b"") for entry in entries)
    if held > size:
        raise MemoryFault(f"has {held} bytes, names included, where {size} are allowed")
    packed = packed_folder(entries)
    remove_folder(folder)
    folder.mkdir()
    unpack_folder(packed, folder)


@contextlib.contextmanager
def _open_file(name: str | Path, flags: int, folder: int | None = None) -> Iterator[int]:
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

    Folders in folders are moved up first, so that no path gets long. What cannot be removed stays.
    """
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
        return
    number = 0
    with contextlib.suppress(OSError), _open_file(folder, os.O_RDONLY) as top:
        while names := os.listdir(top):
            for name in names:
                if not _is_folder(name, top):
                    os.unlink(name, dir_fd=top)
                    continue
                os.chmod(name, 0o700, dir_fd=top)
                with _open_file(name, os.O_RDONLY | os.O_NOFOLLOW, top) as inner:
                    for child in os.listdir(inner):
                        number += 1
                        place = f".owa-{number}" if _is_folder(child, inner) else child
                        if place == child:
                            os.unlink(child, dir_fd=inner)
                        else:
                            # To move a folder takes the right to write in it.
                            os.chmod(child, 0o700, dir_fd=inner)
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


EMPTY = folder_digest(())


def packed_folder(entries: Iterable[MemoryEntry]) -> bytes:
    """Return a compressed archive of files and folders, without times and owners."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for entry in entries:
            member = tarfile.TarInfo("/".join(entry.parts))
            member.mode, member.size = entry.mode, len(entry.data or b"")
            if entry.data is None:
                member.type, member.mode = tarfile.DIRTYPE, 0o700
            archive.addfile(member, io.BytesIO(entry.data or b""))
    return zstandard.ZstdCompressor(level=3).compress(buffer.getvalue())


def unpack_folder(packed: bytes, folder: Path) -> None:
    """Write what an archive of `packed_folder` holds.

    Args:
        packed: The archive.
        folder: An empty folder.
    """
    with _opened_archive(packed) as archive:
        # Sealed by us: plain files and folders. Debian 12 has no filter.
        archive.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
        archive.extractall(folder)  # noqa: S202 - see above


def packed_entries(packed: bytes) -> tuple[MemoryEntry, ...]:
    """Return the files and folders of an archive that `packed_folder` made."""
    entries = []
    with _opened_archive(packed) as archive:
        for member in archive:
            file = archive.extractfile(member)
            data = None if file is None else file.read()
            parts = tuple(member.name.split("/"))
            entries.append(MemoryEntry(parts, member.mode, data))
    return tuple(entries)


def _opened_archive(packed: bytes) -> tarfile.TarFile:
    reader = zstandard.ZstdDecompressor().decompressobj()
    return tarfile.open(fileobj=io.BytesIO(reader.decompress(packed)))


# --- what changed ---------------------------------------------------------------------


class RevertedWindow(NamedTuple):
    """The mornings of a revision, and the digest of the earlier one's snapshot."""

    since: int
    until: int
    digest: str


def memory_change(
    before: Sequence[MemoryEntry], after: Sequence[MemoryEntry], window: RevertedWindow
) -> tuple[MemoryChange, tuple[MemoryEntry, ...]]:
    """Return what changed between two snapshots, and the later one without it.

    Where the change adds or alters tool families (folders below `families/`), those alone are put
    back to the earlier snapshot, else everything.

    Args:
        before: The earlier snapshot.
        after: The later one.
        window: The mornings of both.
    Returns: The record and the entries to play on.
    """
    old, new = ({entry.parts: entry.data for entry in side} for side in (before, after))
    changed = [
        parts
        for parts in sorted(old.keys() | new.keys())
        if old.get(parts, b"") != new.get(parts, b"") or (parts in old) != (parts in new)
    ]
    families = {parts[1] for parts in changed if parts[0] == FAMILIES and parts[1:]}

    def is_reverted(parts: tuple[str, ...]) -> bool:
        return not families or (parts[0] == FAMILIES and parts[1:2] != ())

    kept = [entry for entry in after if not is_reverted(entry.parts)]
    kept += [entry for entry in before if is_reverted(entry.parts)]
    if families and not any(entry.parts == (FAMILIES,) for entry in kept):
        kept.append(MemoryEntry((FAMILIES,), 0o700, None))
    played = tuple(sorted(kept))
    change = MemoryChange(
        since=window.since,
        until=window.until,
        before=window.digest,
        after=folder_digest(after),
        played=folder_digest(played),
        files=tuple(
            _file_change(parts, old.get(parts), new.get(parts))
            for parts in changed
            if old.get(parts) is not None or new.get(parts) is not None
        ),
        families=tuple(sorted(families)),
        reverted=tuple("/".join(parts) for parts in changed if is_reverted(parts)),
    )
    return change, played


def _file_change(parts: tuple[str, ...], old: bytes | None, new: bytes | None) -> FileChange:
    """Return a file's change: lines that are there more, or fewer, times."""
    sides = [Counter((data or b"").splitlines()) for data in (old, new)]
    return FileChange(
        path="/".join(parts),
        added=(sides[1] - sides[0]).total(),
        removed=(sides[0] - sides[1]).total(),
        sha256="" if new is None else sha256(new),
    )

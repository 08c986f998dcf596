"""Memory of an agent between episodes: its folder, the digest, sealed snapshots.

Episodes of a lane share one folder, all others get a fresh one. Folders lie outside
the run directory, since an agent may write down secrets. After each episode of a lane
the folder is packed and sealed under a key that derives from the run's master, and
only that snapshot lies in the run: `lanes/NAME/DIGEST.sealed`. A resumed run goes on
from the snapshot whose digest the last complete leaf names.
"""

import hashlib
import io
import os
import re
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Protocol, Self

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


class EpisodeMemory(Protocol):
    """The folder of one episode; a context manager that clears up after it."""

    path: Path

    def settle(self) -> str | None:
        """Keep what the agent wrote; the digest for the leaf, None outside lanes."""


class FreshMemory:
    """An empty folder that goes with its episode."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(
            prefix="owa-memory-", ignore_cleanup_errors=True
        )
        self.path = Path(self._folder.name)

    def settle(self) -> None:
        """Return None: nothing is kept."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


class CopiedMemory(FreshMemory):
    """A throw-away copy of a lane's folder, for checkpoints."""

    def __init__(self, lane: "LaneMemory") -> None:
        super().__init__()
        self._digest = lane.digest
        shutil.copytree(lane.path, self.path, dirs_exist_ok=True, symlinks=True)

    def settle(self) -> str:  # type: ignore[override]
        """Return the digest of the lane's memory, which the episode did not touch."""
        return self._digest


class LaneMemory:
    """The memory of one lane while its worker plays it."""

    def __init__(
        self, layout: RunLayout, name: str, master: bytes, digest: str | None
    ) -> None:
        self._folder = layout.lanes / _folder_name(name)
        self._key = keyed_digest(master, "memory", name)
        self._work = FreshMemory()
        self.path = self._work.path / "memory"
        self.path.mkdir()
        self.digest = folder_digest(self.path)
        if digest is not None and digest != self.digest:
            try:
                self._restore(digest)
            except RunDirectoryError:
                self.close()
                raise

    def settle(self) -> str:
        """Seal a snapshot of the folder and return its digest.

        The one before stays: until the leaf is closed a resumed run goes on from it.
        """
        before, self.digest = self.digest, folder_digest(self.path)
        self._folder.mkdir(parents=True, exist_ok=True)
        packed = _packed(self.path)
        nonce = fresh_bytes(_NONCE_BYTES)
        sealed = AESGCM(self._key).encrypt(nonce, packed, self.digest.encode())
        write_whole(self._snapshot(self.digest), nonce + sealed)
        for path in self._folder.glob("*.sealed"):
            if path.stem not in (before, self.digest):
                path.unlink()
        return self.digest

    def rewind(self) -> None:
        """Return the folder to the last snapshot: an attempt at it failed."""
        if folder_digest(self.path) == self.digest:
            return
        shutil.rmtree(self.path)
        self.path.mkdir()
        if self.digest != folder_digest(self.path):
            self._restore(self.digest)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the folder for the lane's next episode."""

    def close(self) -> None:
        """Remove the folder; the snapshots stay."""
        self._work.__exit__(None, None, None)

    def _restore(self, digest: str) -> None:
        path = self._snapshot(digest)
        try:
            data = path.read_bytes()
            nonce, sealed = data[:_NONCE_BYTES], data[_NONCE_BYTES:]
            packed = AESGCM(self._key).decrypt(nonce, sealed, digest.encode())
            _unpack(packed, self.path)
        except (OSError, InvalidTag, tarfile.TarError, zstandard.ZstdError) as error:
            raise RunDirectoryError(
                f"The memory snapshot {path} cannot be restored: {error!r}."
            ) from error
        self.digest = folder_digest(self.path)
        if self.digest != digest:
            raise RunDirectoryError(
                f"The memory snapshot {path} does not hold what its name says."
            )

    def _snapshot(self, digest: str) -> Path:
        return self._folder / f"{digest}.sealed"


def _folder_name(lane: str) -> str:
    """Return a lane's folder: its name, marked where letters had to be replaced.

    Without the mark two lanes could share a folder, and each sweeps what is not its.
    """
    plain = _UNSAFE.sub("_", lane)[:_LONGEST_NAME]
    return plain if plain == lane else f"{plain}-{sha256(lane.encode())[:16]}"


def folder_digest(folder: Path) -> str:
    """Return the digest of a folder: names, kinds and contents, no times or owners."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = os.fsencode(path.relative_to(folder))
        if path.is_symlink():
            kind, content = b"l", os.fsencode(path.readlink())
        elif path.is_file():
            kind, content = b"f", path.read_bytes()
        else:
            kind, content = b"d", b""
        digest.update(b"%s|%d|%s|%d|" % (kind, len(name), name, len(content)))
        digest.update(content)
    return digest.hexdigest()


def _packed(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(folder, arcname=".")
    return zstandard.ZstdCompressor(level=3).compress(buffer.getvalue())


def _unpack(packed: bytes, folder: Path) -> None:
    reader = zstandard.ZstdDecompressor().decompressobj()
    data = reader.decompress(packed)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        # Sealed by us over a real folder: no member lies below a link. A stricter
        # filter would let an agent's link stop its run, and Debian 12 has none.
        archive.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
        archive.extractall(folder)  # noqa: S202 - see above

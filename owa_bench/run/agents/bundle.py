"""Bundles of submitted agents: a tar of files and a manifest, unpacked without trust.

    agent.toml      agent = "mine.py"          # or a command: agent = "python mine.py"
    mine.py ...     whatever it needs beside the packages of the harness

Only files and folders with plain names inside the bundle are taken; a bundle may hold a
limited number of files and bytes.
"""

import os
import tarfile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from owa_bench.canonical import sha256
from owa_bench.errors import CheckFailure, FieldError
from owa_bench.records.toml import TomlRecord, decode

MANIFEST = "agent.toml"
MOST_FILES = 10_000
MOST_BYTES = 1 << 30  # unpacked
_OWN = (os.getuid(), os.getgid())


class AgentManifest(TomlRecord, frozen=True):
    """The manifest: how the agent is named to `run --agent`, in the bundle's folder."""

    agent: str


class AgentBundle(NamedTuple):
    """An unpacked bundle: its folder, its agent, and the SHA-256 of its file."""

    folder: Path
    agent: str
    digest: str


def unpack(path: Path, home: Path) -> AgentBundle:
    """Unpack a bundle beside a data folder, which its agent does not see, once.

    Args:
        path: The tar, compressed or not.
        home: The data folder; the bundle goes to `HOME-bundles/DIGEST`.

    Returns:
        The bundle.

    Raises:
        FieldError: It is no file, or its manifest is missing or names a path outside.
        CheckFailure: It holds what no bundle may hold, or too much.
    """
    try:
        digest = sha256(path.read_bytes())
    except OSError as error:
        raise FieldError(
            "bundle", str(path), f"must be a tar file ({error})"
        ) from error
    folder = home.with_name(f"{home.name}-bundles") / digest
    try:
        with tarfile.open(path) as archive:
            members = _checked(archive)
            folder.mkdir(parents=True, exist_ok=True)
            # Python below 3.11.4 has no filters: `_checked` leaves nothing to filter.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(folder, members)  # noqa: S202
    except (tarfile.TarError, EOFError, OSError) as error:
        raise CheckFailure(f"{path} is no bundle: {error}.") from error
    manifest = folder / MANIFEST
    if not manifest.is_file():
        raise FieldError(
            "bundle", str(path), f'must hold {MANIFEST} with agent = "FILE.py"'
        )
    told = decode(manifest.read_bytes(), AgentManifest, FieldError)
    return AgentBundle(folder, told.agent, digest)


def _checked(archive: tarfile.TarFile) -> list[tarfile.TarInfo]:
    """Return the members of an archive, every one a plain file or folder of ours."""
    members: list[tarfile.TarInfo] = []
    size = 0
    for member in archive:
        name = PurePosixPath(member.name)
        if name.is_absolute() or ".." in name.parts:
            raise CheckFailure(
                f"A bundle must stay in its folder, got {member.name!r}."
            )
        if not (member.isreg() or member.isdir()):
            raise CheckFailure(
                f"A bundle must hold files and folders alone: {member.name!r} is a "
                "link, a device or a pipe."
            )
        member.uid, member.gid, member.uname, member.gname = *_OWN, "", ""
        member.mode = 0o755 if member.isdir() else 0o644 | member.mode & 0o111
        members.append(member)
        size += member.size
        if len(members) > MOST_FILES or size > MOST_BYTES:
            raise CheckFailure(
                f"A bundle must hold at most {MOST_FILES:,} files and {MOST_BYTES:,} "
                "bytes."
            )
    return members

"""Archives of agents' files: to machines that share no folder, and from submitters."""

import io
import os
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import zstandard

from owa_bench.canonical import sha256
from owa_bench.errors import CheckFailure, FieldError, UsageError
from owa_bench.records.toml import TomlRecord, decode
from owa_bench.run.agents.hosting import code_paths
from owa_bench.run.agents.spec import AgentHandle

# --- files of agents for other machines -----------------------------------------------
# What lies below the folder in which relative agents are found travels: the folders and
# files that an agent's sandbox shows of it. What is installed must be installed there
# too. The plan's fingerprints say on the other machine whether it is the same code.


MAX_BYTES = 64 << 20
# Folders with these are environments and run directories, no code of an agent.
_NO_CODE = ("pyvenv.cfg", "plan.json")


def pack_agents(agents: Iterable[AgentHandle], folder: Path) -> bytes:
    """Return an archive of the files of agents below a folder.

    Args:
        agents: The agents.
        folder: Where relative agents are found.

    Returns:
        A compressed archive; names are relative to the folder.

    Raises:
        UsageError: The files have more than 64 MiB.
    """
    paths: dict[Path, None] = {}
    for member in (one for agent in agents for one in agent.members):
        for place in map(Path, code_paths(member.origin)):
            if place.is_relative_to(folder):
                paths.update(dict.fromkeys(_files(place)))
    size = sum(path.stat().st_size for path in paths)
    if size > MAX_BYTES:
        raise UsageError(
            f"The agents' files in {folder} must have at most {MAX_BYTES} bytes to be "
            f"sent to other machines, got {size}: put each agent into a folder of its "
            "own, or install it there."
        )
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path in sorted(paths):
            archive.add(path, path.relative_to(folder).as_posix(), recursive=False)
    return zstandard.ZstdCompressor().compress(buffer.getvalue())


def unpack_agents(archive: bytes, folder: Path) -> None:
    """Write the files of an archive into a folder.

    Args:
        archive: What `pack_agents` returned.
        folder: An empty folder.
    """
    data = zstandard.ZstdDecompressor().decompressobj().decompress(archive)
    with tarfile.open(fileobj=io.BytesIO(data)) as members:
        # Python below 3.11.4 has no filters; these are files that we packed.
        members.extraction_filter = getattr(tarfile, "data_filter", None)
        members.extractall(folder)  # noqa: S202


def _files(place: Path) -> Iterator[Path]:
    """Yield a plain file, or those of a folder; nothing hidden, no caches, no links."""
    if place.is_file():
        yield place
        return
    for root, folders, names in os.walk(place):
        if any(name in names for name in _NO_CODE):
            folders.clear()
            continue
        folders[:] = [f for f in folders if f[0] != "." and f != "__pycache__"]
        paths = (Path(root, name) for name in names if name[0] != ".")
        yield from (path for path in paths if path.is_file() and not path.is_symlink())


# --- bundles of submitted agents ------------------------------------------------------
#     agent.toml   agent = "mine.py"     # or a command: agent = "python mine.py"
#     mine.py ..   whatever it needs beside the packages of the harness
#
# Only files and folders with plain names inside the bundle are taken; a bundle may hold
# a limited number of files and bytes.


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

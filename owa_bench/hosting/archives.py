"""Archives of agents' files, for machines that share no folder.

What lies below the folder in which relative agents are found travels: the folders and files that an
agent's sandbox shows of it. What is installed must be installed there too. The plan's fingerprints
say on the other machine whether it is the same code.
"""

import io
import os
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import zstandard

from owa_bench.errors import UsageError
from owa_bench.hosting.isolation import code_paths
from owa_bench.hosting.spec import AgentHandle

MAX_BYTES = 64 << 20
# Folders with these are environments and run directories, no code of an agent.
_NO_CODE = ("pyvenv.cfg", "plan.json")


def pack_agents(agents: Iterable[AgentHandle], folder: Path) -> bytes:
    """Return an archive of the files of agents below a folder.

    Args:
        agents: The agents.
        folder: Where relative agents are found.
    Returns: A compressed archive; names are relative to the folder.
    Raises: UsageError: The files have more than 64 MiB.
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

"""Digest of what a job sees, for a suite to put into the plan."""

import os
from collections.abc import Sequence
from pathlib import Path

from owa_bench.canonical import canonical_json, sha256
from owa_bench.sandbox.backends import Sandbox
from owa_bench.sandbox.job import Bind, SandboxJob, libraries

_CACHE = "__pycache__"  # compiled from what is digested


def environment_digest(sandbox: Sandbox, job: SandboxJob) -> str:
    """Return the digest of backend, machine type, binds and variables of a job.

    Files and folders count with their contents, the system's libraries with names and
    sizes. Command, input and work directory do not count.

    Args:
        sandbox: The backend.
        job: A job as the suite makes them.

    Returns:
        The SHA-256 in lower-case hex.
    """
    system = {bind.source for bind in libraries()}
    document = {
        "backend": sandbox.name,
        "version": sandbox.version(),
        "machine": os.uname().machine,
        "env": dict(job.env),
        "hidden": list(job.hidden),
        "binds": [
            [
                bind.target or os.fspath(bind.source),
                bind.writable,
                _digest(bind, job.hidden, contents=bind.source not in system),
            ]
            for bind in dict.fromkeys(job.binds)
        ],
    }
    return sha256(canonical_json(document))


def _digest(bind: Bind, hidden: Sequence[str], *, contents: bool) -> str:
    """Return the digest of a bind's files but those in hidden folders."""
    if not bind.source.is_dir():
        return sha256(bind.source.read_bytes())
    top = Path(bind.target or bind.source)
    entries = []
    for folder, names, files in os.walk(bind.source):
        inside = top / Path(folder).relative_to(bind.source)
        names[:] = sorted(
            name
            for name in names
            if name != _CACHE and os.fspath(inside / name) not in hidden
        )
        links = [name for name in names if Path(folder, name).is_symlink()]
        for name in sorted((*files, *links)):
            entries.append(_entry(Path(folder, name), bind.source, contents=contents))
    return sha256(canonical_json(entries))


def _entry(path: Path, top: Path, *, contents: bool) -> list[str]:
    """Return a file's name, kind and content, or its size alone."""
    name = os.fsencode(path.relative_to(top)).decode(errors="backslashreplace")
    if path.is_symlink():
        return [name, "link", os.readlink(path)]
    if not path.is_file():
        return [name, "other", ""]
    size = str(path.stat().st_size)
    return [name, "file", sha256(path.read_bytes()) if contents else size]

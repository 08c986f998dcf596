"""Commits that an agent made in a clone of its own, as `git_push` carries them.

A pack of git's own objects could unfold without end, hold links, or be read by a git
with faults; these are texts by path, bounded before anything is made of them. The
commits are made anew from them and must have the names that the agent's git gave them.

Source: docs/projforge.md#existing-coding-agents
"""

import base64
import lzma
import re
from typing import NamedTuple

import msgspec

from owa_bench import bounded_json

MOST = 1 << 20  # bytes of what a push unfolds to
_PATH = re.compile(r"(?![^/]*//)[A-Za-z0-9._+-]+(/[A-Za-z0-9._+-]+)*")
_PERSON = re.compile(r"([^<>\n\0]+ )?<[^<>\n\0]*> [0-9]{1,11} [+-][0-9]{4}")
_NAME = re.compile(r"[0-9a-f]{40}")
_MODES = ("100644", "100755")
_COMMITS, _FILES, _DEEP, _LONGEST = 64, 2000, 16, 200
_MEMORY = 64 << 20  # of the decompressor


class PushedFile(NamedTuple):
    """A file of a commit: its mode, and its text; None where it was taken away."""

    mode: str
    text: str | None


class PushedCommit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit: its parents, by name or `:N` for the N-th of the push, and changes.

    `files` are the paths that differ from the first parent's.
    """

    parents: tuple[str, ...]
    author: str
    committer: str
    message: str
    files: dict[str, PushedFile]


def read_push(pack: str) -> tuple[PushedCommit, ...] | str:
    """Return the commits that a pack holds, or why they are not taken.

    Args:
        pack: Base64 of the LZMA of a JSON list of commits.
    Returns: The commits, oldest first, or the rule that is broken.
    """
    try:
        reader = lzma.LZMADecompressor(memlimit=_MEMORY)
        data = reader.decompress(base64.b64decode(pack, validate=True), MOST + 1)
        if len(data) > MOST:
            return f"a push must unfold to at most {MOST} bytes; push less at once"
        value = bounded_json.decode(data)
        commits = msgspec.convert(value, tuple[PushedCommit, ...])
    except (ValueError, lzma.LZMAError, EOFError, msgspec.ValidationError) as error:
        return f"`pack` must be commits as owa-tool packs them: {error}"
    if not 0 < len(commits) <= _COMMITS:
        return f"a push must hold 1 to {_COMMITS} commits, got {len(commits)}"
    if sum(len(commit.files) for commit in commits) > _FILES:
        return f"a push must change at most {_FILES} files"
    faults = (_fault(number, commit) for number, commit in enumerate(commits, 1))
    return next(filter(None, faults), commits)


def _fault(number: int, commit: PushedCommit) -> str:
    """Return what is wrong with the N-th commit of a push, "" for nothing."""
    for parent in commit.parents:
        earlier = parent.startswith(":") and parent[1:].isdecimal()
        known = earlier and 0 < int(parent[1:7]) < number
        if not (known or _NAME.fullmatch(parent)):
            return f"a parent must be a commit, got {parent[:60]!r}"
    for person in (commit.author, commit.committer):
        if not _PERSON.fullmatch(person):
            return f"a person must be NAME <MAIL> TIME ZONE, got {person[:60]!r}"
    for path, file in commit.files.items():
        parts = path.split("/")
        odd = any(
            set(part) == {"."} or (part.lower().startswith(".git") and part != _IGNORED)
            for part in parts
        )
        large = len(path) > _LONGEST or len(parts) > _DEEP
        if odd or large or not _PATH.fullmatch(path):
            rule = f"a path must be at most {_LONGEST} letters, digits and ._+-, "
            return f"{rule}none of git's own but {_IGNORED}, got {path[:80]!r}"
        if file.mode not in _MODES:
            return f"{path} must be a plain file, got mode {file.mode[:10]!r}"
    return ""


_IGNORED = ".gitignore"


def import_stream(commits: tuple[PushedCommit, ...], ref: str) -> bytes:
    """Return what makes git write the commits, the last one at a reference.

    Args:
        commits: Checked ones, oldest first.
        ref: The reference.
    Returns: Input of `git fast-import`.
    """
    parts: list[bytes] = []
    for number, commit in enumerate(commits, 1):
        head = [f"reset {ref}", f"commit {ref}", f"mark :{number}"]
        head += [f"author {commit.author}", f"committer {commit.committer}"]
        parts += ["\n".join(head).encode(), _data(commit.message)]
        for place, parent in enumerate(commit.parents):
            parts.append(f"{'merge' if place else 'from'} {parent}".encode())
        gone = [path for path, file in commit.files.items() if file.text is None]
        parts += [f"D {path}".encode() for path in gone]
        for path, file in commit.files.items():
            if file.text is not None:
                parts += [f"M {file.mode} inline {path}".encode(), _data(file.text)]
        parts.append(b"")
    return b"\n".join(parts)


def _data(text: str) -> bytes:
    data = text.encode()
    return b"data %d\n%s" % (len(data), data)

"""Commits that an agent made in a clone of its own, as `git_push` carries them.

A pack of git's own objects could unfold without end, hold links, or be read by a git with faults;
these are texts by path, bounded before anything is made of them. The commits are made anew from
them and must have the names that the agent's git gave them.

Source: docs/projforge.md#existing-coding-agents
"""

import base64
import lzma
import os
import re
from pathlib import Path
from typing import NamedTuple

import msgspec

from owa_bench import bounded_json
from owa_bench.canonical import sha256

_LONGEST_NAME = 255  # bytes


class WorktreeFiles:
    """The files below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._top = os.path.realpath(folder)

    def text(self, path: str) -> str | None:
        """Return a file's text, None where there is no such file."""
        file = self._place(path)
        if file is None or not file.is_file():
            return None
        return file.read_bytes().decode(errors="replace")  # line ends as they are

    def digest(self, path: str) -> str:
        """Return the digest of a file, that of nothing where there is none."""
        file = self._place(path)
        there = file is not None and file.is_file()
        return sha256(file.read_bytes() if file is not None and there else b"")

    def write(self, path: str, text: str) -> bool:
        """Write a file.

        Args:
            path: Below the folder.
            text: Its text.
        Returns: False where the path is no place for a file.
        """
        file = self._place(path)
        if file is None or (file.exists() and not file.is_file()):  # a pipe waits
            return False
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError:  # a part of the path is a file
            return False
        file.write_text(text)
        return True

    def put(self, path: str, text: str) -> None:
        """Write a file of the platform's, unless a link would lead it elsewhere.

        Args:
            path: Below the folder.
            text: Its text.
        """
        if str(self._place(path)) == os.path.join(self._top, path):
            self.write(path, text)

    def lines_with(self, text: str) -> list[str]:
        """Return the lines that hold a text, with file and number."""
        lines = []
        for file in sorted(self._folder.rglob("*")):
            if file.is_symlink() or not file.is_file():
                continue
            name = file.relative_to(self._folder)
            found = file.read_text(errors="replace").split("\n")
            lines += [
                f"{name}:{number}: {line[:200]}"
                for number, line in enumerate(found, 1)
                if text in line
            ]
        return lines

    def _place(self, path: str) -> Path | None:
        """Return where a file of the worktree is; None where the path leads out."""
        if "\0" in path or max(map(len, os.fsencode(path).split(b"/"))) > _LONGEST_NAME:
            return None
        place = os.path.realpath(os.path.join(self._top, path))
        return Path(place) if place.startswith(f"{self._top}/") else None


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

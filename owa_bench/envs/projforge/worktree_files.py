"""Files of a worktree, read and written from outside the sandbox.

A path that leads out of the worktree, by dots or by a link, is no file of it.

Source: docs/projforge.md#tools
"""

import os
from pathlib import Path

from owa_bench.canonical import sha256

_LONGEST = 255  # bytes of a name


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
        if "\0" in path or max(map(len, os.fsencode(path).split(b"/"))) > _LONGEST:
            return None
        place = os.path.realpath(os.path.join(self._top, path))
        return Path(place) if place.startswith(f"{self._top}/") else None

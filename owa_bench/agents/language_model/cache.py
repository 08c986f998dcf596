"""Replies kept by the digest of their request, for playing again without a server."""

import os
from pathlib import Path


class Cache:
    """A folder with one file per request; several processes may write at once."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def read(self, digest: str) -> str | None:
        """Return the response body kept under a digest, None if there is none."""
        try:
            return self._path(digest).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write(self, digest: str, text: str) -> None:
        """Keep a response body; the file appears whole or not at all."""
        path = self._path(digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}.tmp")
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / f"{digest}.json"

"""The folder of a case: files in memory until a program needs them on disk."""

import shutil
import tempfile
from pathlib import Path


class CaseFolder:
    """Named files. They move to a real folder when its path is asked for."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}
        self._path: Path | None = None

    @property
    def path(self) -> Path:
        """The folder on disk, made when first asked for."""
        if self._path is None:
            self._path = Path(tempfile.mkdtemp(prefix="owa-case-"))
            for name, data in self._files.items():
                (self._path / name).write_bytes(data)
            self._files.clear()
        return self._path

    @property
    def on_disk(self) -> bool:
        """Whether the folder is on disk."""
        return self._path is not None

    def write(self, name: str, data: bytes) -> None:
        """Write a file.

        Args:
            name: A plain name.
            data: Its bytes.
        """
        if self._path is None:
            self._files[name] = data
            return
        place = self._path / name
        if place.is_symlink() or (place.exists() and not place.is_file()):
            _remove(place)
        place.write_bytes(data)

    def read(self, name: str) -> bytes | None:
        """Return a file's bytes; None: there is no such file.

        Args:
            name: A plain name.
        """
        if self._path is None:
            return self._files.get(name)
        place = self._path / name
        if place.is_symlink() or not place.is_file():
            return None
        return place.read_bytes()

    def close(self) -> None:
        """Remove the folder."""
        self._files.clear()
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()

"""The folder of a case: files in memory until a program needs them on disk."""

import shutil
import tempfile
from pathlib import Path

from owa_bench.errors import FieldError
from owa_bench.sandbox.desk_files import read_file, write_file


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

    def write(self, name: str, data: bytes) -> None:
        """Write a file.

        Args:
            name: A plain name.
            data: Its bytes.
        Raises: FieldError: A program has made a folder of that name.
        """
        if self._path is None:
            self._files[name] = data
        else:
            write_file(self._path, name, data)

    def read(self, name: str) -> bytes | None:
        """Return a file's bytes; None: there is no such file.

        Args:
            name: A plain name.
        """
        if self._path is None:
            return self._files.get(name)
        try:
            return read_file(self._path, name)
        except FieldError:
            return None

    def close(self) -> None:
        """Remove the folder."""
        self._files.clear()
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)

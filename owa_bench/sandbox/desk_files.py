"""Files of a folder that an agent's code writes to, read and written by the harness.

Code can leave anything there: links to files of this machine, pipes that block, folders in a
file's place. So no link is followed, plain files alone are read, and a file is written whole under
another name and renamed. Between calls of a `PythonDesk` nothing of it runs, so nothing is swapped.
"""

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from owa_bench.errors import FieldError

MOST_BYTES: Final = 32 << 20  # of a file that is read
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_file(folder: Path, name: str, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the bytes of a plain file.

    Args:
        folder: The folder; itself no link.
        name: Of a file in it, not in a folder below.
        most_bytes: A longer file is refused.
    Raises: FieldError: There is no such file, it is no plain file, or it is too long.
    """
    with _open_folder(folder, name) as top:
        try:
            kind = os.stat(name, dir_fd=top, follow_symlinks=False).st_mode
            if not stat.S_ISREG(kind):
                raise FieldError("file", name, "must be a plain file, no link or folder")
            with os.fdopen(os.open(name, os.O_RDONLY | _FLAGS, dir_fd=top), "rb") as file:
                data = file.read(most_bytes + 1)
        except FileNotFoundError:
            raise FieldError("file", name, "must be in the folder; write it first") from None
        except OSError as error:
            raise FieldError("file", name, f"must be readable: {error.strerror}") from error
    if len(data) > most_bytes:
        raise FieldError("file", name, f"must have {most_bytes} bytes or fewer")
    return data


def write_file(folder: Path, name: str, data: bytes) -> None:
    """Write a file whole, in the place of what has its name.

    Args:
        folder: The folder; itself no link.
        name: Of a file in it, not in a folder below.
        data: What it holds.
    Raises: FieldError: The name is none of a file, or a folder has it.
    """
    unfinished = f".{name}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS
    with _open_folder(folder, name) as top:
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(unfinished, dir_fd=top)
            opened = os.open(unfinished, flags, 0o644, dir_fd=top)
            with os.fdopen(opened, "wb") as file:
                file.write(data)
            os.rename(unfinished, name, src_dir_fd=top, dst_dir_fd=top)
        except (IsADirectoryError, PermissionError) as error:
            rule = f"must be free or a file's: {error.strerror}; remove what has the name"
            raise FieldError("file", name, rule) from error


@contextlib.contextmanager
def _open_folder(folder: Path, name: str) -> Iterator[int]:
    """Yield the descriptor of a folder; FieldError where a name cannot be a file's in it."""
    if not _NAME.fullmatch(name):
        rule = "must be up to 100 letters, digits, `_`, `.` or `-`, no folder, no dot in front"
        raise FieldError("file", name, rule)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield opened
    finally:
        os.close(opened)

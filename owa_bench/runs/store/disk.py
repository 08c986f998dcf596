"""Locks and syncs of a disk, with errors that name the path.

Network file systems lack one or the other. A folder that cannot be synced is left to the file
system, for its files are synced themselves; a lock that cannot be had is an error, for two players
would write one run.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# What file systems say that sync no folders.
_NO_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.ENOSYS})


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put a path into errors of the operating system that name none.

    Args:
        path: What is worked on.
    """
    try:
        yield
    except BlockingIOError:
        raise
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def lock(descriptor: int, path: Path, *, wait: bool = True) -> bool:
    """Take the one lock of an open file or folder.

    Args:
        descriptor: Of the open file.
        path: Its path, for errors.
        wait: Whether to wait for it.
    Returns: Whether the lock is held now; always true after waiting.
    Raises: OSError: The file system has no locks, or another fault; it names the path.
    """
    with naming(path):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
    return True


def sync(descriptor: int, path: Path) -> None:
    """Write an open file to the disk.

    Args:
        descriptor: Of the file.
        path: Its path, for errors.
    """
    with naming(path):
        os.fsync(descriptor)


def sync_folder(path: Path) -> None:
    """Write a folder's list of files to the disk, where the file system can.

    Args:
        path: The folder.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with naming(path):
            os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(descriptor)

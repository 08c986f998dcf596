"""Bounds of what is read from a run directory, whoever made it.

A run directory may come from somebody who wants its reader to hang, to run out of memory, or to
write where it should not: pipes, devices, links, folders without end, files of gigabytes, documents
nested without end. `refuse_hostile_files` looks at names and sizes before anything is opened; every
JSON document is read by `read_document`, and every list of lines by `lines_of`. What frames unpack
to is bounded in `records.frames`.

Source: docs/check-a-report.md#hostile-directories.
"""

import io
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from owa_bench import bounded_json
from owa_bench.errors import CheckFailure, RunDirectoryError
from owa_bench.records import toml
from owa_bench.records.layout import RunLayout

LARGEST_FILE = 1 << 26  # bytes; statements, pages, witnesses [D]
LARGEST_LIST = 1 << 26  # bytes; the plan, its envelope and the leaves [D]
LARGEST_SHARD = 1 << 31  # bytes, of a shard or a pack; forty million events [D]
MOST_FAULTS = 100  # lines of leaves.jsonl that are no leaf, before reading ends [D]
LARGEST_LEAF = 1 << 20  # bytes of a line of leaves.jsonl [D]
MOST_FILES = 100_000  # files and folders [D]
DEEPEST = 16  # folders inside each other [D]
MOST_NUMBERS = 1 << 22  # of a recorded array [D]
MOST_VALUES = 3 << 20  # of a JSON document; a plan has some 25 an entry, so 125,000 entries [D]


def refuse_hostile_files(layout: RunLayout) -> None:
    """Refuse a run directory that could stop or exhaust whoever reads it.

    Args:
        layout: Paths of the run directory.
    Raises: CheckFailure: A file is a folder, a link, a pipe, a device or a socket, or is larger
        than a run makes it; a file stands in the place of a folder; or there are more files, or
        deeper folders, than a run has.
    """
    kinds = _kinds(layout)
    for count, found in enumerate(_paths(layout), 1):
        if count > MOST_FILES:
            raise CheckFailure(
                f"{layout.root} must hold at most {MOST_FILES:,} files and folders, it holds more."
            )
        _refuse(layout, found, kinds)


class _Kind(NamedTuple):
    """What a path of a run directory is: a file of so many bytes, or a folder."""

    largest: int = LARGEST_FILE
    folder: bool | None = None  # None: either


class _FoundPath(NamedTuple):
    """A path in a run directory, and its mode and size without following links."""

    path: Path
    mode: int
    size: int


def _kinds(layout: RunLayout) -> dict[Path, _Kind]:
    """Return what the named paths of a run directory are."""
    terms = (layout.protocol, layout.price_card, layout.registry)
    lists = (layout.plan, layout.plan_envelope, layout.leaves)
    others = (layout.lease, layout.reveal, layout.norms, layout.pruned)
    reports = (layout.report, layout.report_envelope, layout.page)
    parts = (layout.shards, layout.blobs, layout.lanes)
    attested = (layout.witness, layout.receipts, layout.ratings, layout.looks, layout.dates)
    return {
        **dict.fromkeys(terms, _Kind(toml.LARGEST, folder=False)),
        **dict.fromkeys(lists, _Kind(LARGEST_LIST, folder=False)),
        **dict.fromkeys((*others, *reports), _Kind(folder=False)),
        **dict.fromkeys((*parts, *attested), _Kind(folder=True)),
    }


def _refuse(layout: RunLayout, found: _FoundPath, kinds: dict[Path, _Kind]) -> None:
    """Refuse a path that is of another kind than a run has there, or too large."""
    path, mode, size = found
    of_frames = path.parent in (layout.shards, layout.blobs)
    kind = kinds.get(path, _Kind(LARGEST_SHARD if of_frames else LARGEST_FILE))
    if stat.S_ISLNK(mode):
        raise CheckFailure(
            f"{path} must be no link: a run directory holds its own files. Put what it "
            "leads to in its place."
        )
    if stat.S_ISDIR(mode):
        if kind.folder is False:
            raise CheckFailure(
                f"{path} must be a file, it is a folder: move it away. `owa-bench run "
                f"--out {layout.root} --resume` and `owa-bench report {layout.root}` "
                "make what lacks but the plan, the protocol and the price card."
            )
        if len(path.relative_to(layout.root).parts) > DEEPEST:
            raise CheckFailure(
                f"{layout.root} must hold folders at most {DEEPEST} deep, got {path}."
            )
        return
    if not stat.S_ISREG(mode):
        raise CheckFailure(f"{path} must be a regular file, it is none.")
    if kind.folder:
        raise CheckFailure(f"{path} must be a folder, it is a file: move it away.")
    if size > kind.largest:
        raise CheckFailure(f"{path} must have at most {kind.largest:,} bytes, got {size:,}.")


def _paths(layout: RunLayout) -> Iterator[_FoundPath]:
    """Yield what lies in a run directory, each folder before what it holds.

    The lanes' memory is left out: only those who play open it.
    """
    waiting = [layout.root]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # of a run that is being played
                    path = Path(entry.path)
                    if stat.S_ISDIR(found.st_mode) and path != layout.lanes:
                        waiting.append(path)
                    yield _FoundPath(path, found.st_mode, found.st_size)
        except OSError as error:
            raise CheckFailure(
                f"{layout.root} cannot be read: {error.filename}: {error.strerror}."
            ) from error


def read_bytes(path: Path, most: int = LARGEST_FILE) -> bytes:
    """Return the bytes of a file, however it grew since it was looked at.

    Args:
        path: The file.
        most: Bytes that it may have.
    Raises:
        OSError: It cannot be read.
        ValueError: It has more bytes.
    """
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it must have at most {most:,} bytes, it has more")
    return data


def decode_document(data: bytes) -> Any:
    """Return what a JSON document says; its depth, values and numbers are bounded.

    Args:
        data: The document.
    Raises: ValueError: It is no such document; the message says why.

    >>> decode_document(b"[" * 100 + b"]" * 100)
    Traceback (most recent call last):
    ValueError: at most 64 lists and objects may stand inside each other
    """
    values = data.count(b",") + data.count(b"[") + data.count(b"{")
    if values > MOST_VALUES:
        raise ValueError(f"it must hold at most {MOST_VALUES:,} values, it holds more")
    return bounded_json.decode(data, most_bytes=LARGEST_LIST)


def read_document(path: Path) -> dict[str, Any]:
    """Return a JSON object that is a file of a run.

    Args:
        path: The file.
    Raises: RunDirectoryError: It is none.
    """
    return read_text(path).document


class DocumentText(NamedTuple):
    """A JSON object and the bytes that it was read from."""

    text: bytes
    document: dict[str, Any]


def read_text(path: Path) -> DocumentText:
    """Return a JSON object that is a file of a run, with its bytes.

    Args:
        path: The file.
    Raises: RunDirectoryError: It is none.
    """
    try:
        text = read_bytes(path, LARGEST_LIST)
        document = decode_document(text)
    except OSError as error:
        raise RunDirectoryError(
            f"{path.parent} must hold {path.name}: {error.strerror}."
        ) from error
    except ValueError as error:
        raise RunDirectoryError(f"{path} must be a whole JSON document, got: {error}.") from error
    if not isinstance(document, dict):
        raise RunDirectoryError(f"{path} must hold a JSON object, got {type(document).__name__}.")
    return DocumentText(text, document)


def decode_array(data: bytes) -> np.ndarray:
    """Return the array that the bytes of a .npy file hold.

    Args:
        data: Format 1.0, as `np.save` writes it.
    Returns: The array, of numbers or truth values.
    Raises: ValueError: It is none, or holds more numbers than an episode records.

    >>> stream = io.BytesIO()
    >>> np.save(stream, np.eye(2))
    >>> decode_array(stream.getvalue()).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    stream = io.BytesIO(data)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("an array must be of format 1.0")
        shape, fortran, kind = np.lib.format.read_array_header_1_0(stream)
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(f"the head of the array does not read: {error}") from error
    size = math.prod(shape)
    if max(size, *shape, 0) > MOST_NUMBERS or kind.kind not in "biuf":
        raise ValueError(
            f"an array must hold at most {MOST_NUMBERS:,} numbers, got {shape}, {kind}"
        )
    if len(body := stream.read()) != size * kind.itemsize:
        raise ValueError(f"an array of {shape} has another length than its numbers")
    return np.frombuffer(body, kind).reshape(shape, order="F" if fortran else "C")


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the whole lines of a list, without newlines; nothing for a missing file.

    A last line without its newline was cut off by a crash and is left out.

    Args:
        path: The list.
    Yields: Its lines. One that is longer than a leaf comes cut off, and ends the list.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        while line := file.readline(LARGEST_LEAF):
            if line.endswith(b"\n"):
                yield line[:-1]
            elif len(line) == LARGEST_LEAF:
                yield line
                return

"""Refusal of files that a run never holds, before any of them is read.

A run directory may come from somebody who wants its reader to hang or to run out of
memory: pipes, devices, links to them, files of gigabytes. Shards and packs are opened
with checks of their own (`packs.open_regular`); here only their sizes count.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from owa_bench.errors import CheckFailure
from owa_bench.records.layout import RunLayout

LARGEST_FILE = 1 << 26  # bytes; statements, pages, witnesses, protocols
LARGEST_LIST = 1 << 28  # bytes; the plan and the leaves: a line an episode
LARGEST_SHARD = 1 << 31  # bytes; some forty million events
MOST_FILES = 100_000


def refuse_hostile_files(layout: RunLayout) -> None:
    """Refuse a run directory that could stop or exhaust whoever reads it.

    Args:
        layout: Paths of the run directory.

    Raises:
        CheckFailure: A file is a folder, a pipe, a device or a socket, is larger than
            a run makes it, or there are more files than a run has.
    """
    for path in _single_files(layout):
        if path.is_dir():
            raise CheckFailure(
                f"{path} must be a file, it is a folder: move it away. `owa-bench run "
                f"--out {layout.root} --resume` and `owa-bench report {layout.root}` "
                "make what lacks but the plan, the protocol and the price card."
            )
    for count, path in enumerate(_paths(layout)):
        if count >= MOST_FILES:
            raise CheckFailure(
                f"{layout.root} must hold at most {MOST_FILES:,} files, it holds more."
            )
        if path.parent != layout.blobs:
            _refuse(layout, path)


def _refuse(layout: RunLayout, path: Path) -> None:
    """Refuse a path that is no regular file, or a file that is too large."""
    try:
        found = path.stat()
    except OSError:
        return  # a broken link: what reads it says so
    of_shards = path.parent == layout.shards
    if not stat.S_ISREG(found.st_mode):
        if of_shards or stat.S_ISDIR(found.st_mode):
            return
        raise CheckFailure(f"{path} must be a regular file, it is none.")
    listed = path in (layout.plan, layout.plan_envelope, layout.leaves)
    largest = LARGEST_LIST if listed else LARGEST_FILE
    if of_shards:
        largest = LARGEST_SHARD
    if found.st_size > largest:
        raise CheckFailure(
            f"{path} must have at most {largest:,} bytes, got {found.st_size:,}."
        )


def _single_files(layout: RunLayout) -> tuple[Path, ...]:
    """Return the paths of a run directory that are files, not folders."""
    return (
        *(layout.plan, layout.plan_envelope, layout.protocol, layout.price_card),
        *(layout.leaves, layout.lease, layout.reveal, layout.registry, layout.norms),
        *(layout.report, layout.report_envelope, layout.page),
    )


def _paths(layout: RunLayout) -> Iterator[Path]:
    """Yield the paths in a run directory, the lanes' memory left out."""
    for folder, folders, names in os.walk(layout.root):
        if Path(folder) == layout.root and layout.lanes.name in folders:
            folders.remove(layout.lanes.name)
        for name in names:
            yield Path(folder) / name

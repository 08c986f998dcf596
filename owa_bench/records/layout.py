"""The names of the files in a run directory, shared by writer and verifier."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from owa_bench.errors import CheckFailure

PLAN_TYPE = "application/vnd.owa-bench.plan+json"
STATEMENT_TYPE = "application/vnd.in-toto+json"
RECEIPT_TYPE = "application/vnd.owa-bench.receipt+json"
ATTENDANCE_TYPE = "application/vnd.owa-bench.attendance+json"
NORMS_TYPE = "application/vnd.owa-bench.norms+json"
RATINGS_TYPE = "application/vnd.owa-bench.ratings+json"
CHECKPOINT_TYPE = "application/vnd.owa-bench.checkpoint+json"


class _Entry:
    """The path of a file or folder, by its name in the run directory."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, layout: "RunLayout", _: object) -> Path:
        return layout.root / self._name


@dataclass(frozen=True, slots=True)
class RunLayout:
    """Paths inside one run directory."""

    root: Path

    plan = _Entry("plan.json")  # its RFC 8785 digest is the plan digest
    plan_envelope = _Entry("plan.dsse.json")  # the plan signed before episode 0
    protocol = _Entry("protocol.toml")  # the protocol file, copied byte for byte
    price_card = _Entry("price_card.toml")  # the price card, copied byte for byte
    shards = _Entry("trace")  # the shards
    leaves = _Entry("leaves.jsonl")  # one line per attempt
    blobs = _Entry("blobs")  # the packs: one a shard, with its texts and pictures
    pruned = _Entry("blobs/pruned.json")  # the packs that were dropped, if any
    lease = _Entry("lease.json")  # which shards may have been written, and how far
    lanes = _Entry("lanes")  # the lanes' memory and its snapshots
    witness = _Entry("witness")  # the evidence of time
    receipts = _Entry("receipts")  # folder of signed replays and checkpoints
    reveal = _Entry("reveal.json")  # master secret and nonce, written after the window
    registry = _Entry("registry.toml")  # whose attestations the report counts, if any
    norms = _Entry("norms.dsse.json")  # the norms that the report reads, if any
    ratings = _Entry("ratings")  # folder of signed ratings of open texts
    report = _Entry("report.json")  # the report's figures
    report_envelope = _Entry("report.dsse.json")  # the signed statement
    page = _Entry("report.html")  # the report for people

    def shard(self, number: int) -> Path:
        """Return the path of shard `number`."""
        return self.shards / f"{number:05d}.jsonl.zst"

    def pack(self, number: int) -> Path:
        """Return the path of the pack of shard `number`."""
        return self.blobs / f"{number:05d}.pack"


class Reveal(NamedTuple):
    """The published secrets of a run after its window, hex strings."""

    master: str
    nonce: str


# --- refusal of files that a run never holds ------------------------------------------
# A run directory may come from somebody who wants its reader to hang or to run out of
# memory: pipes, devices, links to them, files of gigabytes. Shards and packs are opened
# with checks of their own (`packs.open_regular`); here only their sizes count.


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

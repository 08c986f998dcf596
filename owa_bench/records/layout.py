"""The names of the files in a run directory, shared by writer and verifier."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PLAN_TYPE = "application/vnd.owa-bench.plan+json"
STATEMENT_TYPE = "application/vnd.in-toto+json"
RECEIPT_TYPE = "application/vnd.owa-bench.receipt+json"
ATTENDANCE_TYPE = "application/vnd.owa-bench.attendance+json"
NORMS_TYPE = "application/vnd.owa-bench.norms+json"
RATINGS_TYPE = "application/vnd.owa-bench.ratings+json"
CHECKPOINT_TYPE = "application/vnd.owa-bench.checkpoint+json"
LOOK_TYPE = "application/vnd.owa-bench.look+json"
DATE_TYPE = "application/vnd.owa-bench.date+json"


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
    looks = _Entry("looks")  # signed looks of a placement
    dates = _Entry("dates")  # when a verifier saw them
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

"""Names of the files of a run directory: the schema that writer and verifier share."""

from pathlib import Path
from typing import NamedTuple

PLAN_TYPE = "application/vnd.owa-bench.plan+json"
STATEMENT_TYPE = "application/vnd.in-toto+json"
RECEIPT_TYPE = "application/vnd.owa-bench.receipt+json"
CHECKPOINT_TYPE = "application/vnd.owa-bench.checkpoint+json"


class RunLayout(NamedTuple):
    """Paths inside one run directory."""

    root: Path

    @property
    def plan(self) -> Path:
        """The plan as plain JSON; its RFC 8785 digest is the plan digest."""
        return self.root / "plan.json"

    @property
    def plan_envelope(self) -> Path:
        """The plan signed before episode 0."""
        return self.root / "plan.dsse.json"

    @property
    def protocol(self) -> Path:
        """The protocol file, copied byte for byte."""
        return self.root / "protocol.toml"

    @property
    def price_card(self) -> Path:
        """The price card, copied byte for byte."""
        return self.root / "price_card.toml"

    @property
    def shards(self) -> Path:
        """Folder of the shards."""
        return self.root / "trace"

    @property
    def leaves(self) -> Path:
        """One line per attempt."""
        return self.root / "leaves.jsonl"

    @property
    def blobs(self) -> Path:
        """Folder of the blobs, each named by its SHA-256."""
        return self.root / "blobs"

    @property
    def lanes(self) -> Path:
        """Folder of the lanes' memory and its snapshots."""
        return self.root / "lanes"

    @property
    def witness(self) -> Path:
        """Folder of the evidence of time."""
        return self.root / "witness"

    @property
    def receipts(self) -> Path:
        """Folder of signed replays and daily checkpoints of the evidence root."""
        return self.root / "receipts"

    @property
    def reveal(self) -> Path:
        """Master secret and nonce, written after the window."""
        return self.root / "reveal.json"

    @property
    def report(self) -> Path:
        """The report's figures."""
        return self.root / "report.json"

    @property
    def report_envelope(self) -> Path:
        """The signed statement."""
        return self.root / "report.dsse.json"

    @property
    def page(self) -> Path:
        """The report for people."""
        return self.root / "report.html"

    def shard(self, number: int) -> Path:
        """Return the path of shard `number`."""
        return self.shards / f"{number:05d}.jsonl.zst"


class Reveal(NamedTuple):
    """What `escrow reveal` publishes, hex strings."""

    master: str
    nonce: str

"""Days of a campaign: when one is over, its evidence root is signed and filed."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from owa_bench.canonical import canonical_json, seal
from owa_bench.records.layout import CHECKPOINT_TYPE, RunLayout
from owa_bench.records.plan import Plan
from owa_bench.records.trace import Leaf, evidence_root, plan_order
from owa_bench.records.witness import DayCheckpoint
from owa_bench.run.play.attempts import MOST_FAILURES
from owa_bench.run.store.files import plan_digest, write_whole


class DayKeeper:
    """Watches a campaign's attempts; a run without days keeps nothing."""

    def __init__(
        self,
        layout: RunLayout,
        plan: Plan,
        leaves: Iterable[Leaf],
        key: Ed25519PrivateKey,
    ) -> None:
        self._layout = layout
        self._plan = plan
        self._key = key
        self._leaves: list[Leaf] = []
        self._failures = Counter[int]()
        self._open = {
            entry.index: entry.day for entry in plan.entries if entry.day is not None
        }
        self._days = sorted(set(self._open.values()))
        for leaf in leaves:
            self._take(leaf)
        self._file()

    def add(self, leaf: Leaf) -> None:
        """Count a closed attempt, and sign for every day that is now over."""
        self._take(leaf)
        self._file()

    def _take(self, leaf: Leaf) -> None:
        self._leaves.append(leaf)
        self._failures[leaf.index] += leaf.status == "infrastructure"
        given_up = self._failures[leaf.index] >= MOST_FAILURES
        if leaf.status == "complete" or given_up:
            self._open.pop(leaf.index, None)

    def _file(self) -> None:
        """Write the receipts of days that are over and have none."""
        first_open = min(self._open.values(), default=None)
        while self._days and (first_open is None or self._days[0] < first_open):
            day = self._days.pop(0)
            path = day_path(self._layout, day)
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, self._sealed(day))

    def _sealed(self, day: int) -> bytes:
        days = {entry.index: entry.day or 0 for entry in self._plan.entries}
        ordered = plan_order(
            self._plan, (leaf for leaf in self._leaves if days[leaf.index] <= day)
        )
        checkpoint = DayCheckpoint(
            plan_digest=plan_digest(self._layout),
            day=day,
            evidence_root=evidence_root(self._plan, ordered),
            attempts=tuple(leaf.attempt_id for leaf in ordered),
            simulated=self._plan.simulated_days,
            public_key=self._plan.public_key,
        )
        return seal(CHECKPOINT_TYPE, canonical_json(checkpoint), self._key)


def day_path(layout: RunLayout, day: int) -> Path:
    """Return where the checkpoint of a day lies."""
    return layout.receipts / f"day-{day:04d}.dsse.json"

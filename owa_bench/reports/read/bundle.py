"""A run directory, read independently of the recorder that wrote it.

Shares with the recorder only the schema (`records`) and the hash functions (`canonical`). Source:
`docs/traces.md#hash-chain`.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from owa_bench.canonical import text_digest
from owa_bench.errors import OwaError, RunDirectoryError
from owa_bench.records import trace
from owa_bench.records.bounds import (
    MOST_FAULTS,
    lines_of,
    read_document,
    read_text,
    refuse_hostile_files,
)
from owa_bench.records.events import EpisodeStart
from owa_bench.records.layout import Reveal, RunLayout
from owa_bench.records.people import HumanNorms, read_norms, refuse_other_terms, unattended
from owa_bench.records.placement import announced
from owa_bench.records.plan import Plan, PlanEntry, fault
from owa_bench.records.price_card import PriceCard, episode_cost
from owa_bench.records.price_card import load as load_prices
from owa_bench.records.protocol import Protocol
from owa_bench.records.protocol import load as load_protocol
from owa_bench.records.registry import Registry, read_registry
from owa_bench.records.shards import ShardIndex, TraceFrame, index_shards, is_attempt_id
from owa_bench.reports.read.attempts import (
    RecordedAttempt,
    failed_end,
    failed_start,
    lost_attempt,
    read_attempt,
)

_FIX = "Play it with `owa-bench run --out DIR`, or go on with `run --resume`."


@dataclass(frozen=True)
class Bundle:
    """A run directory: the plan, and every frame found in the shards.

    `leaves` are computed from the shards; `recorded_leaves` are the lines of `leaves.jsonl`,
    `leaf_faults` name those that are no leaf. `torn` names shards that end inside an open frame,
    `faulty` those with bytes that do not read, `damaged` those with whole frames behind such bytes;
    `faults` name the bytes.
    """

    layout: RunLayout
    plan: Plan
    plan_digest: str
    protocol_bytes: bytes
    price_bytes: bytes
    index: dict[str, tuple[TraceFrame, ...]]
    recorded_leaves: tuple[trace.Leaf, ...]
    leaf_faults: tuple[str, ...]
    torn: tuple[str, ...]
    faulty: frozenset[str]
    damaged: frozenset[str]
    faults: tuple[str, ...]

    @cached_property
    def protocol(self) -> Protocol:
        """The protocol file, validated."""
        return load_protocol(self.protocol_bytes)

    @cached_property
    def prices(self) -> PriceCard:
        """The price card, validated."""
        return load_prices(self.price_bytes)

    @cached_property
    def registry(self) -> Registry | None:
        """The registry of verifiers that the report was made under, if any."""
        path = self.layout.registry
        return read_registry(_bytes(path), path.name) if path.exists() else None

    @cached_property
    def norms(self) -> HumanNorms | None:
        """The norms that the report reads, checked against the run's terms."""
        path = self.layout.norms
        if not path.exists():
            return None
        norms = read_norms(_bytes(path), path.name)
        refuse_other_terms(norms, self.plan)
        return norms

    @cached_property
    def unattended(self) -> tuple[str, ...]:
        """The persons of the norms whom nobody of the run's registry watched."""
        return () if self.norms is None else unattended(self.norms, self.registry)

    @cached_property
    def leaves(self) -> tuple[trace.Leaf, ...]:
        """One leaf per attempt in plan order, from the shards alone."""
        return tuple(attempt.leaf for attempt in self.attempts())

    @cached_property
    def evidence_root(self) -> str:
        """The root over every attempt."""
        return trace.evidence_root(self.plan, self.leaves)

    @cached_property
    def replay_root(self) -> str:
        """The root over the replay digests of the attempts that count."""
        return trace.replay_root(self.plan, self.leaves)

    @cached_property
    def counting_leaves(self) -> tuple[trace.Leaf | None, ...]:
        """The attempt that counts for each entry of the plan, None without one."""
        return trace.counted_leaves(self.plan, self.leaves)

    @cached_property
    def due(self) -> tuple[PlanEntry, ...]:
        """The entries that were to be played: all, or those that a placement announced."""
        if self.plan.placement is None:
            return self.plan.entries
        chosen = announced(self.layout, {leaf.index for leaf in self.leaves})
        return tuple(entry for entry in self.plan.entries if entry.index in chosen)

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """Indices of entries that were to be played and never attempted."""
        tried = {leaf.index for leaf in self.leaves}
        return tuple(entry.index for entry in self.due if entry.index not in tried)

    def attempts(self) -> Iterator[RecordedAttempt]:
        """Yield every attempt, read afresh, in plan order.

        The first pass to its end makes the leaves, so that none is needed for them.
        """
        leaves: list[trace.Leaf] = []
        first = "leaves" not in self.__dict__
        # A leaf that is as recorded is kept once.
        recorded = {leaf.attempt_id: leaf for leaf in self.recorded_leaves if first}
        lost = self._leaves_of_faulty_shards.keys() - self.index.keys()
        for name in sorted({*self.index, *lost}, key=_plan_order):
            attempt = self._read(name)
            if first:
                known = recorded.get(name)
                leaves.append(known if known == attempt.leaf else attempt.leaf)
            yield attempt
        if first:
            self.__dict__.setdefault("leaves", tuple(leaves))

    def uncounted(self) -> Iterator[RecordedAttempt]:
        """Yield every attempt that no entry counts, read afresh, in plan order."""
        counted = {leaf.attempt_id for leaf in self.counting_leaves if leaf is not None}
        names = (leaf.attempt_id for leaf in self.leaves if leaf.attempt_id not in counted)
        return map(self._read, names)

    def _read(self, name: str) -> RecordedAttempt:
        frames, recorded = self.index.get(name), self._leaves_of_faulty_shards.get(name)
        if frames is None:
            return lost_attempt(name)
        attempt = read_attempt(self.layout.shards, frames, self.plan_digest)
        holed = frames[0].shard in self.damaged or recorded is not None
        cut = attempt.closing is None and attempt.leaf != recorded
        if holed and cut and not attempt.faults:
            return replace(attempt, faults=(f"{name}: its last frames do not read",))
        return attempt

    def incomplete(self) -> Iterator[RecordedAttempt]:
        """Yield every attempt that is not complete, read afresh, in plan order."""
        names = (leaf.attempt_id for leaf in self.leaves if leaf.status != "complete")
        return map(self._read, names)

    @cached_property
    def _leaves_of_faulty_shards(self) -> dict[str, trace.Leaf]:
        """The leaves on record of shards that do not read in full, by attempt."""
        planned = {entry.index for entry in self.plan.entries}
        return {
            leaf.attempt_id: leaf
            for leaf in self.recorded_leaves
            if leaf.shard in self.faulty
            and leaf.index in planned
            and leaf.attempt_id == trace.attempt_id(leaf.index, leaf.attempt)
        }

    @property
    def unreadable(self) -> tuple[RecordedAttempt, ...]:
        """The attempts that do not read; each counts as a failure of quality 0."""
        names = [x.attempt_id for x in self.leaves if x.status == "unreadable"]
        return tuple(map(self._read, names))

    def traces(self) -> Iterator[trace.Trace]:
        """Yield the counted attempts in plan order.

        One that does not read is a failure of quality 0, with nothing in its favour: it is left out
        only where no other episode says what its start was.
        """
        entries = {entry.index: entry for entry in self.plan.entries}
        for leaf in self.counting_leaves:
            if leaf is None:
                continue
            attempt = self._read(leaf.attempt_id)
            if not attempt.faults:
                yield trace.Trace(leaf, attempt.events)
            elif start := failed_start(attempt, entries[leaf.index], self._starts):
                yield trace.Trace(leaf, (start, failed_end(attempt)))

    @cached_property
    def _starts(self) -> tuple[EpisodeStart, ...]:
        """The starts of all attempts that have one."""
        firsts = (next(iter(attempt.events), None) for attempt in self.attempts())
        return tuple(first for first in firsts if isinstance(first, EpisodeStart))

    def lost_costs(self, prices: PriceCard) -> dict[int, float]:
        """Return what the agent used in attempts that do not count, by plan index.

        Args:
            prices: the run's price card.
        Returns: Micro-USD; NaN where it is unknown.
        """
        costs: dict[int, float] = defaultdict(float)
        for attempt in self.uncounted():
            cost = episode_cost(prices, attempt.events)["agent"]
            costs[attempt.leaf.index] += math.nan if cost is None else cost
        return dict(costs)

    def reveal(self) -> Reveal | None:
        """Return the revealed master and nonce, None before `escrow reveal`."""
        if not self.layout.reveal.exists():
            return None
        document = read_document(self.layout.reveal)
        try:
            return Reveal(str(document["master"]), str(document["nonce"]))
        except KeyError as error:
            raise RunDirectoryError(
                f"{self.layout.reveal} must hold `master` and `nonce`, lacks {error}."
            ) from error


def read(run_dir: Path) -> Bundle:
    """Return the run in `run_dir`, neither judged nor checked.

    Raises:
        RunDirectoryError: it is no run directory, or a file that every run has is missing or half
            written.
        CheckFailure: it holds files that no run holds, which nobody should read.
    """
    layout = RunLayout(Path(run_dir))
    _refuse_no_run(layout)
    refuse_hostile_files(layout)
    text, document = read_text(layout.plan)
    index, shards, faults = _index_shards(layout)
    leaves, leaf_faults = _recorded_leaves(layout)
    plan = _plan(layout, document)
    del document  # of a long plan the largest of all
    return Bundle(
        layout=layout,
        plan=plan,
        plan_digest=text_digest(text),
        protocol_bytes=_bytes(layout.protocol),
        price_bytes=_bytes(layout.price_card),
        index=index,
        recorded_leaves=leaves,
        leaf_faults=leaf_faults,
        torn=tuple(shard.name for shard in shards if shard.torn),
        faulty=frozenset(shard.name for shard in shards if shard.faults),
        damaged=frozenset(shard.name for shard in shards if shard.damaged),
        faults=faults,
    )


def _refuse_no_run(layout: RunLayout) -> None:
    """Refuse a folder without a plan, whatever else it holds."""
    if not layout.root.is_dir():
        raise RunDirectoryError(f"A run directory must exist, got {layout.root}. {_FIX}")
    if not layout.plan.exists():
        raise RunDirectoryError(f"{layout.root} is no run directory: it holds no plan.json. {_FIX}")


def _plan(layout: RunLayout, document: dict[str, Any]) -> Plan:
    """Return the plan as a record."""
    try:
        plan = msgspec.convert(document, Plan)
        wrong = fault(plan)
    except (msgspec.ValidationError, OwaError) as error:
        wrong = str(error)
    if wrong:
        raise RunDirectoryError(f"{layout.plan} must be a plan (owa-plan-1), got: {wrong}.")
    return plan


def _bytes(path: Path) -> bytes:
    """Return a file's bytes; RunDirectoryError if it is missing."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise RunDirectoryError(
            f"{path.parent} must hold {path.name}: {error.strerror}. {_FIX}"
        ) from error


def _index_shards(
    layout: RunLayout,
) -> tuple[dict[str, tuple[TraceFrame, ...]], tuple[ShardIndex, ...], tuple[str, ...]]:
    """Return the frames of every attempt, the shards, and the faults."""
    by_name, shards = index_shards(sorted(layout.shards.glob("*.jsonl.zst")))
    faults = [fault for shard in shards for fault in shard.faults]
    faults += [
        f"{frames[0].shard}: `{name}` names no attempt"
        for name, frames in by_name.items()
        if not is_attempt_id(name)
    ]
    frames = {k: tuple(v) for k, v in by_name.items() if is_attempt_id(k)}
    return frames, shards, tuple(faults)


def _recorded_leaves(layout: RunLayout) -> tuple[tuple[trace.Leaf, ...], tuple[str, ...]]:
    """Return the lines of `leaves.jsonl`, and the faults of those that are no leaf.

    A last line without its newline was cut off by a crash and is left out.
    """
    leaves: list[trace.Leaf] = []
    faults: list[str] = []
    for number, row in enumerate(lines_of(layout.leaves), 1):
        try:
            leaves.append(msgspec.json.decode(row, type=trace.Leaf))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            faults.append(f"line {number} of leaves.jsonl is no leaf: {error}")
        if len(faults) == MOST_FAULTS:
            faults.append("what follows was not read")
            break
    return tuple(leaves), tuple(faults)


def _plan_order(name: str) -> tuple[int, int]:
    """Return the place of an attempt: plan index, then attempt."""
    index, _, attempt = name.partition(".")
    return int(index), int(attempt)

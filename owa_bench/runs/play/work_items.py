"""Work items of a run: entries to play, with what their lost attempts leave behind."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from owa_bench.records.dated import NO_NAMES
from owa_bench.records.events import DECODER, EpisodeStart, Event, Intervention, Resource
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import MAX_FAILURES, MAX_PROVIDER_FAILURES, Plan, PlanEntry
from owa_bench.records.shards import scan
from owa_bench.records.trace import PLAYED, Leaf, Status, attempt_id
from owa_bench.runs.store import files
from owa_bench.runs.store.memory import lane_key
from owa_bench.runs.store.memory_folder import EMPTY
from owa_bench.seeding import instance_seed

# --- history of an entry --------------------------------------------------------------
# Help that a lost attempt was given counts as used in the next. A second death of a
# worker scores 0.


MAX_WORKER_DEATHS = 2


class EntryHistory(NamedTuple):
    """Help given in lost attempts, and the deaths of workers under them."""

    help: tuple[Intervention, ...] = ()
    worker_deaths: int = 0

    def allowed(self, interventions: int | None) -> int | None:
        """Return how often the supervisor may still be asked; None: not limited."""
        return None if interventions is None else interventions - len(self.help)

    def help_events(self) -> Iterator[Event]:
        """Yield the events of help, as they stand at the start of an attempt."""
        for event in self.help:
            yield msgspec.structs.replace(event, step=0, source="harness")
            yield Resource(
                step=0,
                source="harness",
                meter="supervisor_min",
                amount=event.minutes,
                stream="human",
            )


NO_HISTORY = EntryHistory()


def read_history(layout: RunLayout, index: int, attempt: int, *, died: bool) -> EntryHistory:
    """Return the history of an entry before one of its attempts.

    Args:
        layout: The run directory.
        index: The entry.
        attempt: The attempt that is to be made, from 0.
        died: Whether the worker of the attempt before died.
    Returns: What the frames of the attempts before it say.
    """
    names = {attempt_id(index, number) for number in range(attempt)}
    given: list[Intervention] = []
    deaths = {0: 0}
    for path in files.shard_paths(layout) if names else ():
        for frame in scan(path):
            if frame.segment.attempt_id not in names:
                continue
            for event in map(DECODER.decode, frame.lines):
                if isinstance(event, EpisodeStart):
                    deaths[event.attempt] = event.worker_deaths
                elif isinstance(event, Intervention) and _is_given(event):
                    given.append(event)
    return EntryHistory(tuple(given), deaths[max(deaths)] + died)


def _is_given(event: Intervention) -> bool:
    return event.kind != "refused" and event.source != "harness"


# --- items ----------------------------------------------------------------------------
# The memory of a lane goes through states: state k is its folder after the first k
# episodes that the lane keeps. A checkpoint or an attempt set begins with a copy of one
# state, so it is an item of its own that waits for that state alone, and what a lane
# keeps is cut into items where a state is copied.


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt still to be made at a plan entry.

    `failures` are attempts before it that the harness failed; attempts that a kill left unfinished
    are not among them. `refused` are those that the model's provider failed in this call of the
    run. `seed` is that of the entry's pair, `fleet` that of an
    embodied suite's units, `keeps` whether its memory is kept. `died`: the worker
    of the attempt before died, by itself and not with its machine. `history` is read when the item
    is dispatched.
    """

    index: int
    number: int
    seed: int
    fleet: int = 0
    keeps: bool = True
    failures: int = 0
    refused: int = 0
    died: bool = False
    history: EntryHistory = NO_HISTORY

    @property
    def name(self) -> str:
        """The id under which it is recorded."""
        return attempt_id(self.index, self.number)

    def again(self, status: Status) -> "Attempt | None":
        """Return the attempt after this one, which did not count; None: no more.

        Args:
            status: Whose failure it was.
        """
        after = replace(self, number=self.number + 1, died=False)
        if status == "provider":
            refused = self.refused + 1
            more = refused < MAX_PROVIDER_FAILURES
            return replace(after, refused=refused) if more else None
        failures = self.failures + 1
        return replace(after, failures=failures) if failures < MAX_FAILURES else None


class WorkItem(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts that one thread makes in order: at one entry, or of what a lane keeps.

    `state` is the state of its lane that the item begins with, `memory` that state's digest;
    `reverts` the earlier state to which an ablation takes a change back. `ends` is the state that
    the item leaves the lane in, None where it leaves none. `states` are the known digests of states
    that are copied. `lane_key` is the key of the lane's snapshots, `spent` what the run had used
    when the item was dispatched. `abandoned`: a provider failed an attempt that what follows in the
    lane rests on.
    """

    number: int
    attempts: tuple[Attempt, ...]
    lane: str | None = None
    lane_key: bytes = b""
    memory: str | None = None
    spent: Mapping[str, float] = {}
    state: int = 0
    reverts: int | None = None
    ends: int | None = None
    states: Mapping[int, str] = {}
    abandoned: bool = False

    @property
    def needs(self) -> tuple[int, ...]:
        """The states that must be known before it can begin."""
        return (self.state,) if self.reverts is None else (self.state, self.reverts)

    def after(self, leaf: Leaf) -> "WorkItem":
        """Return what is left of the item when its first attempt has closed."""
        first, *rest = self.attempts
        again = None if leaf.status == "complete" else first.again(leaf.status)
        if leaf.status == "provider" and again is None:
            return replace(self, attempts=(), abandoned=True)
        left = (again, *rest) if again else tuple(rest)
        memory = (leaf.memory if first.keeps else None) or self.memory
        return replace(self, attempts=left, memory=memory)

    def after_exit(self, *, died: bool) -> "WorkItem":
        """Return what is left when its worker, or its machine, died at the first."""
        first, *rest = self.attempts
        again = replace(first, number=first.number + 1, died=died)
        return replace(self, attempts=(again, *rest))

    def dispatched(self, layout: RunLayout, spent: Mapping[str, float]) -> "WorkItem":
        """Return the item as it is given to a worker.

        Args:
            layout: The run directory, where the histories of its entries are read.
            spent: What the run has used so far.
        """
        attempts = tuple(_with_history(each, layout) for each in self.attempts)
        return replace(self, attempts=attempts, spent=dict(spent))


def _with_history(attempt: Attempt, layout: RunLayout) -> Attempt:
    if attempt.number == 0:
        return attempt
    index, number = attempt.index, attempt.number
    history = read_history(layout, index, number, died=attempt.died)
    return replace(attempt, history=history)


class WorkQueue:
    """Items that wait, each for a free thread and for the states that it needs.

    Args:
        items: The items, in plan order.
        lanes_first: Whether what a lane keeps goes before copies of its states, so that several
            workers find more to do; else in plan order.
        stopped: Whether nothing more of a plan entry's arm is played, by its index.
    """

    def __init__(
        self,
        items: Iterable[WorkItem],
        *,
        lanes_first: bool,
        stopped: Callable[[int], bool] = lambda _: False,
    ) -> None:
        self._waiting = list(items)
        self._stopped = stopped
        if lanes_first:
            self._waiting.sort(key=lambda item: item.ends is None)
        self._states: dict[str, dict[int, str]] = {}
        for item in self._waiting:
            if item.lane is not None:
                self._states.setdefault(item.lane, {}).update(item.states)

    def __len__(self) -> int:
        self._waiting = [item for item in self._waiting if not self._is_stopped(item)]
        return len(self._waiting)

    def __bool__(self) -> bool:
        while self._waiting and self._is_stopped(self._waiting[0]):
            del self._waiting[0]
        return bool(self._waiting)

    def pop(self) -> WorkItem | None:
        """Return the first item that can begin, None where all wait for others.

        Only items before it are looked at: a queue of many is asked after every episode.
        """
        place = 0
        while place < len(self._waiting):
            item = self._waiting[place]
            if self._is_stopped(item):
                del self._waiting[place]
                continue
            if item.lane is None:
                return self._waiting.pop(place)
            known = self._states[item.lane]
            if all(state in known for state in item.needs):
                del self._waiting[place]
                memory = item.memory or known[item.state]
                return replace(item, memory=memory, states=dict(known))
            place += 1
        return None

    def _is_stopped(self, item: WorkItem) -> bool:
        return self._stopped(item.attempts[0].index)

    def put_back(self, item: WorkItem) -> None:
        """Take what a worker left of an item: behind the others, or its end state.

        What failed through harness or provider may not fail so a while later.
        """
        if item.abandoned:
            self._drop_waiting(item.lane)
        elif item.attempts:
            self._waiting.append(item)
        elif item.lane is not None and item.ends is not None:
            self._states[item.lane][item.ends] = item.memory or EMPTY

    def put_first(self, items: Iterable[WorkItem]) -> None:
        """Take items back whose worker died."""
        for item in items:
            if item.attempts:
                self._waiting.insert(0, item)
            else:
                self.put_back(item)

    def _drop_waiting(self, lane: str | None) -> None:
        """Leave out the items of a lane that wait for a state that will not come."""
        known = self._states.get(lane or "", {})
        self._waiting = [
            item
            for item in self._waiting
            if lane is None or item.lane != lane or all(state in known for state in item.needs)
        ]


class _Segment(NamedTuple):
    """Entries of one item: where they begin, what they revert to, where they end."""

    entries: list[PlanEntry]
    state: int
    reverts: int | None = None
    ends: int | None = None


def _segments(plan: Plan) -> Iterator[_Segment]:
    """Yield the items of a plan, in plan order of their first entry."""
    made: list[_Segment] = []
    lanes: dict[str, list[PlanEntry]] = {}
    for entry in plan.entries:
        if entry.lane is not None:
            lanes.setdefault(entry.lane, []).append(entry)
        else:
            made.append(_Segment([entry], 0))
    for entries in lanes.values():
        made += _lane_segments(entries)
    return iter(sorted(made, key=lambda each: each.entries[0].index))


def _lane_segments(entries: Sequence[PlanEntry]) -> list[_Segment]:
    """Return the items of one lane: a copy each, and what is kept between copies."""
    kept = [entry for entry in entries if entry.keeps_memory]
    copies, passed = [], 0
    for entry in entries:
        if entry.keeps_memory:
            passed += 1
            continue
        states = [sum((e.day or 0) < day for e in kept) for day in entry.mornings]
        state = states[0] if states else passed
        copies.append(_Segment([entry], state, *states[1:]))
    cuts = {0, len(kept)}.union(*(s[1:3] for s in copies)) - {None}
    ends = sorted(cut for cut in cuts if cut is not None)
    parts = [_Segment(kept[begin:end], begin, ends=end) for begin, end in itertools.pairwise(ends)]
    return parts + copies


def pending(
    plan: Plan, leaves: Iterable[Leaf], root: bytes, names: Mapping[str, str] = NO_NAMES
) -> tuple[WorkItem, ...]:
    """Return what is still to be played, in plan order of the first entry.

    Args:
        plan: The plan.
        leaves: The attempts on record.
        root: The master, any verifier's nonce mixed in.
        names: Under which seeds of pairs are drawn (`records.dated.seed_names`).
    Returns: An item per entry on its own, per copy of a lane's memory, and per part of what a lane
        keeps, that is not complete.
    """
    record = _Record(leaves, names)
    states: dict[str, dict[int, str]] = {}
    items: list[WorkItem] = []
    for part in _segments(plan):
        lane = part.entries[0].lane
        known = states.setdefault(lane, {0: EMPTY}) if lane is not None else {}
        memory, attempts = known.get(part.state), []
        for entry in part.entries:
            if leaf := record.complete.get(entry.index):
                memory = leaf.memory or memory if entry.keeps_memory else memory
            elif record.failures[entry.index] < MAX_FAILURES:
                attempts.append(record.attempt(entry, root))
        if attempts:
            items.append(
                WorkItem(
                    number=len(items),
                    attempts=tuple(attempts),
                    lane=lane,
                    lane_key=b"" if lane is None else lane_key(root, lane),
                    memory=None if lane is None else memory,
                    state=part.state,
                    reverts=part.reverts,
                    ends=part.ends,
                )
            )
        elif part.ends is not None and memory is not None:
            known[part.ends] = memory
    return tuple(
        item if item.lane is None else replace(item, states=states[item.lane]) for item in items
    )


class _Record:
    """What the attempts on record say of each entry."""

    def __init__(self, leaves: Iterable[Leaf], names: Mapping[str, str]) -> None:
        self._names = names
        self.failures = Counter[int]()
        self.complete: dict[int, Leaf] = {}
        self._numbers = Counter[int]()
        for leaf in leaves:
            self._numbers[leaf.index] = max(self._numbers[leaf.index], leaf.attempt + 1)
            self.failures[leaf.index] += leaf.status == "infrastructure"
            if leaf.status in PLAYED:
                self.complete[leaf.index] = leaf

    def attempt(self, entry: PlanEntry, root: bytes) -> Attempt:
        """Return the next attempt at an entry."""
        return Attempt(
            index=entry.index,
            number=self._numbers[entry.index],
            seed=instance_seed(root, self._names.get(entry.pair, entry.pair)),
            fleet=instance_seed(root, entry.fleet) if entry.fleet else 0,
            keeps=entry.keeps_memory,
            failures=self.failures[entry.index],
        )

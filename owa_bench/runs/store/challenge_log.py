"""Log of a verifier: a line for every plan that was challenged, within bounds.

    verifier/KEY.jsonl             a line a plan, in the order of their challenges
    verifier/KEY.submitters.toml   the verifier's list of submitters (`submitters`)

A line that was written is never lost: the log only grows, and a flood meets a limit before it meets
the disk. The limits are for keys that are not on the list of submitters. Half of the room is for
keys that the log held before it was half full, so that fresh keys, which cost nothing, cannot shut
out those at work.

A plan of a submitter on the list has a number. One that was challenged before its key was listed
gets none later: else one could have many challenged and list the best.

Source: docs/check-a-report.md#challenge.
"""

import datetime
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from owa_bench.errors import CheckFailure, NoRoomError
from owa_bench.records.plan import Plan
from owa_bench.runs.store import disk
from owa_bench.runs.store.submitters import SubmitterList, read_submitters, write_submitters

_NAME = 200  # characters of a battery's name
_HOUR_S = 3600.0


class ChallengedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the log: a plan that was challenged, and the key that signed it.

    `name` is that of its submitter on the list then, "" for none, and `number` the count of their
    plans with this one.
    """

    plan_digest: str
    submitter: str
    commitment: str
    battery: str | None
    episodes: int
    time: str
    name: str = ""
    number: int = 0


class LogLimits(NamedTuple):
    """Most lines: in all, of one key, of one key an hour, of fresh keys an hour [D]."""

    lines: int = 200_000
    of_key: int = 1_000
    of_key_hourly: int = 60
    of_fresh_hourly: int = 600


class ChallengeLog:
    """The lines of a log by plan; processes of one machine may share it.

    Args:
        path: File of JSON lines; it is read, and added to.
        limits: Of its size and of its growth.
        clock: Seconds, for tests.
    Raises: CheckFailure: A line before the last is no line of a log.
    """

    def __init__(
        self,
        path: Path,
        limits: LogLimits = LogLimits(),  # noqa: B008  a tuple
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._hour = clock()
        self._of_hour: Counter[str] = Counter()
        self._read = 0
        self._plans: dict[str, ChallengedPlan] = {}
        self._of_key: Counter[str] = Counter()
        self._refresh()

    @property
    def submitters(self) -> SubmitterList:
        """The list of submitters, as its file has it now."""
        return read_submitters(self._list_path)

    @property
    def _list_path(self) -> Path:
        return self.path.with_suffix(".submitters.toml")

    def register(self, name: str, key: str) -> SubmitterList:
        """Put a key under a submitter's name.

        Args:
            name: The submitter, new or known.
            key: 64 hex digits.
        Returns: The new list.
        Raises: FieldError: The name or the key breaks a rule, or is another's.
        """
        changed = self.submitters.with_key(name, key)
        write_submitters(self._list_path, changed)
        return changed

    def count(self, key: str) -> int:
        """Return how many plans of a key's submitter are in the log.

        Args:
            key: 64 hex digits; of one on the list all keys of its submitter count.
        """
        with self._lock:
            self._refresh()
            return self._count(self.submitters, key)

    def line(self, plan_digest: str) -> ChallengedPlan | None:
        """Return the line of a plan that was challenged, None for another."""
        with self._lock:
            self._refresh()
            return self._plans.get(plan_digest)

    def note(self, plan: Plan, digest: str, at: datetime.datetime | None = None) -> ChallengedPlan:
        """Return the line of a plan, written before its challenge is told.

        Args:
            plan: The signed plan.
            digest: Of the plan, in hex.
            at: When it is challenged; None: now.
        Returns: The same line however often it is asked for.
        Raises: NoRoomError: The log, or its disk, takes no more for now.
        """
        return self.line_of(digest, lambda: _line(plan, digest, at))

    def line_of(self, plan_digest: str, make: Callable[[], ChallengedPlan]) -> ChallengedPlan:
        """Return the line of a plan; a new plan's is written before it is returned.

        Args:
            plan_digest: Of the plan.
            make: Returns its line, where it has none.
        Raises: NoRoomError: The log, or its disk, takes no more for now.
        """
        with self._lock, self._open() as file:
            self._take_new(file)
            known = self._plans.get(plan_digest)
            if known is not None:
                return known
            line = self._with_number(make())
            self._require_room(line)
            append_line(file, msgspec.json.encode(line) + b"\n")
            self._read = file.tell()
            self._add(line)
            self._of_hour[line.submitter] += 1
            return line

    def _with_number(self, line: ChallengedPlan) -> ChallengedPlan:
        known = self.submitters
        name = known.name_of(line.submitter)
        if not name:
            return line
        number = self._count(known, line.submitter) + 1
        return msgspec.structs.replace(line, name=name, number=number)

    def _count(self, known: SubmitterList, key: str) -> int:
        name = known.name_of(key)
        keys = known.keys_of(name) | {key}
        listed = sum(
            plan.name == name and plan.submitter not in keys
            for plan in (self._plans.values() if name else ())
        )
        return listed + sum(self._of_key[each] for each in keys)

    def _require_room(self, line: ChallengedPlan) -> None:
        """Raise where a line is one too many, or too long."""
        key, limits = line.submitter, self._limits
        if len(line.battery or "") > _NAME or len(line.commitment) > _NAME:
            raise CheckFailure(
                f"`battery` and `commitment` of a plan must have at most {_NAME} characters."
            )
        if line.name:
            return
        left_s = self._hour + _HOUR_S - self._clock()
        if left_s <= 0:
            self._hour, left_s = self._clock(), _HOUR_S
            self._of_hour.clear()
        fresh = key not in self._of_key
        if len(self._plans) >= limits.lines // (2 if fresh else 1):
            raise NoRoomError("The log of this verifier is full: ask who runs it.")
        if self._of_key[key] >= limits.of_key:
            raise NoRoomError(f"This key has had {limits.of_key} plans challenged.")
        if self._of_hour[key] >= limits.of_key_hourly:
            raise NoRoomError("This key asks too often; ask later.", left_s)
        if fresh and self._fresh_of_hour() >= limits.of_fresh_hourly:
            raise NoRoomError("Too many new keys ask; ask later.", left_s)

    def _fresh_of_hour(self) -> int:
        """Return how many keys had their first plan challenged in this hour."""
        hour = self._of_hour
        return sum(self._of_key[key] == count for key, count in hour.items())

    def _refresh(self) -> None:
        """Read what was added since, by this process or another."""
        if self.path.exists():
            with self._open() as file:
                self._take_new(file)

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        """Hold the log against other processes."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b", buffering=0) as file:
            disk.lock(file.fileno(), self.path)
            yield file

    def _take_new(self, file: IO[bytes]) -> None:
        """Read the lines that were added since.

        A last line without its end was cut off while it was written: its challenge was never told,
        and the next line takes its place.
        """
        file.seek(self._read)
        data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            file.truncate(self._read + len(whole))
        for number, line in enumerate(whole.splitlines(), len(self._plans) + 1):
            try:
                self._add(msgspec.json.decode(line, type=ChallengedPlan))
            except ValueError as error:
                raise CheckFailure(
                    f"{self.path}: line {number} is no line of a verifier's log: "
                    f"{error}. Restore the file from a copy; it is evidence."
                ) from error
        self._read += len(whole)

    def _add(self, line: ChallengedPlan) -> None:
        self._plans[line.plan_digest] = line
        self._of_key[line.submitter] += 1


def log_of(home: Path, key: str) -> ChallengeLog:
    """Return the log of a verifier.

    Args:
        home: Its data folder.
        key: Name of its key.
    Returns: The log at `verifier/KEY.jsonl`.
    """
    return ChallengeLog(home / "verifier" / f"{key}.jsonl")


def _line(plan: Plan, digest: str, at: datetime.datetime | None) -> ChallengedPlan:
    """Return the line of a plan that is challenged at a time, None: now."""
    moment = at or datetime.datetime.now(datetime.UTC)
    return ChallengedPlan(
        plan_digest=digest,
        submitter=plan.public_key,
        commitment=plan.commitment,
        battery=plan.battery,
        episodes=len(plan.entries),
        time=moment.isoformat(timespec="seconds"),
    )


def append_line(file: IO[bytes], line: bytes) -> None:
    """Add a line to a file whole, or not at all; it is on the disk then.

    Args:
        file: The open log.
        line: With its end.
    Raises: NoRoomError: The disk takes no more.
    """
    before = file.seek(0, os.SEEK_END)
    try:
        written = file.write(line)
        os.fsync(file.fileno())
    except OSError as error:
        file.truncate(before)
        raise NoRoomError(f"The log cannot be written: {error.strerror}.") from error
    if written != len(line):
        file.truncate(before)
        raise NoRoomError("The disk of this verifier is full.")

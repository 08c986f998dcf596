"""Log of a verifier: a line for every plan that was challenged, within bounds.

A line that was written is never lost: the log only grows, and a flood meets a limit
before it meets the disk. Half of the room is for keys that the log held before it was
half full, so that fresh keys, which cost nothing, cannot shut out those at work.

Source: docs/check-a-report.md#challenge.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from owa_bench.errors import CheckFailure, NoRoomError

_NAME = 200  # characters of a battery's name
_HOUR_S = 3600.0


class ChallengedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the log: a plan that was challenged, and who signed it."""

    plan_digest: str
    submitter: str
    commitment: str
    battery: str | None
    episodes: int
    time: str


class LogLimits(NamedTuple):
    """Most lines: in all, of one key, of one key an hour, of fresh keys an hour [D]."""

    lines: int = 200_000
    of_key: int = 1_000
    of_key_hourly: int = 60
    of_fresh_hourly: int = 600


class ChallengeLog:
    """The lines of a log by plan.

    Args:
        path: File of JSON lines; it is read, and added to.
        limits: Of its size and of its growth.
        clock: Seconds, for tests.

    Raises:
        CheckFailure: A line before the last is no line of a log.
    """

    def __init__(
        self,
        path: Path,
        limits: LogLimits = LogLimits(),  # noqa: B008  a tuple
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._hour = clock()
        self._of_hour: Counter[str] = Counter()
        self._plans = {line.plan_digest: line for line in _read_log(path)}
        self._of_key = Counter(line.submitter for line in self._plans.values())

    def count(self, submitter: str) -> int:
        """Return how many plans of a key are in the log."""
        return self._of_key[submitter]

    def line_of(
        self, plan_digest: str, make: Callable[[], ChallengedPlan]
    ) -> ChallengedPlan:
        """Return the line of a plan; a new plan's is written before it is returned.

        Args:
            plan_digest: Of the plan.
            make: Returns its line, where it has none.

        Returns:
            The line.

        Raises:
            NoRoomError: The log, or its disk, takes no more for now.
        """
        with self._lock:
            known = self._plans.get(plan_digest)
            if known is not None:
                return known
            line = make()
            self._require_room(line)
            _append(self._path, msgspec.json.encode(line) + b"\n")
            self._plans[plan_digest] = line
            self._of_key[line.submitter] += 1
            self._of_hour[line.submitter] += 1
            return line

    def _require_room(self, line: ChallengedPlan) -> None:
        """Raise where a line is one too many, or too long."""
        key, limits = line.submitter, self._limits
        if len(line.battery or "") > _NAME or len(line.commitment) > _NAME:
            raise CheckFailure(
                f"`battery` and `commitment` of a plan must have at most {_NAME} "
                "characters."
            )
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


def _append(path: Path, line: bytes) -> None:
    """Add a line to a file whole, or not at all; it is on the disk then."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab", buffering=0) as file:
        before = file.tell()
        try:
            written = file.write(line)
            os.fsync(file.fileno())
        except OSError as error:
            file.truncate(before)
            raise NoRoomError(
                f"The log cannot be written: {error.strerror}."
            ) from error
        if written != len(line):
            file.truncate(before)
            raise NoRoomError("The disk of this verifier is full.")


def _read_log(path: Path) -> list[ChallengedPlan]:
    """Return the lines of a log.

    A last line without its end was cut off while it was written: its challenge was
    never told, and the next line takes its place.
    """
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        os.truncate(path, len(whole))
    lines = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            lines.append(msgspec.json.decode(line, type=ChallengedPlan))
        except ValueError as error:
            raise CheckFailure(
                f"{path}: line {number} is no line of a verifier's log: {error}. "
                "Restore the file from a copy; it is evidence."
            ) from error
    return lines

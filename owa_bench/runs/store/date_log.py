"""Log of a verifier: the looks of each plan that it dated.

    verifier/KEY.dates/PLAN.jsonl    a line when a look is closed, and one when it is opened

Which look is closed, when, and when its nonce is told is settled by the first answer: whoever asks
again gets the same. Only a look after the last one is new, so no date can be played over.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from owa_bench.errors import CheckFailure, NoRoomError
from owa_bench.records.dated import APART, LookDate, time_of
from owa_bench.records.placement import Look
from owa_bench.runs.store import disk
from owa_bench.runs.store.challenge_log import append_line

_MOST = 200  # dated looks of a plan [D]: its pool is played in some 20 batches


def now() -> datetime:
    """Return the time of this machine."""
    return datetime.now(UTC)


class DateLog:
    """The dated looks of plans; processes of one machine may share it.

    Args:
        folder: Holds a file of JSON lines a plan.
        clock: The time, for tests.
    """

    def __init__(self, folder: Path, clock: Callable[[], datetime] = now) -> None:
        self._folder = folder
        self._clock = clock

    def note(self, look: Look, digest: str, nonce: Callable[[], str]) -> LookDate:
        """Return the date of a look, written before it is told.

        Args:
            look: Of a plan that was challenged, signed by who signed the plan.
            digest: Of its payload.
            nonce: Returns what opens it.
        Raises:
            CheckFailure: Another look of that number, or a later one, was dated.
            NoRoomError: The plan has had too many.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{look.plan_digest}.jsonl"
        with path.open("a+b", buffering=0) as file:
            disk.lock(file.fileno(), path)
            file.seek(0)
            data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            file.truncate(len(whole))  # a line that was cut off was never told
            known = _dates(path, whole)
            date = known.get(digest)
            last = max((one.look for one in known.values()), default=-1)
            if date is None and look.number <= last:
                raise CheckFailure(
                    f"Look {last} of this plan was dated, and another than look {look.number}: "
                    "a placement goes on from the looks that were dated."
                )
            if date is None and len(known) >= _MOST:
                raise NoRoomError(f"This plan has had {_MOST} looks dated.")
            moment = self._clock()
            told = date or LookDate(
                plan_digest=look.plan_digest,
                look=look.number,
                look_digest=digest,
                number=len(known) + 1,
                closed=_text(moment),
            )
            if not told.opened and told.look >= last and moment - time_of(told.closed) >= APART:
                told = msgspec.structs.replace(told, opened=_text(moment), nonce=nonce())
            if told != date:
                append_line(file, msgspec.json.encode(told) + b"\n")
            return told


def _dates(path: Path, data: bytes) -> dict[str, LookDate]:
    """Return the newest line of each look, by its digest."""
    try:
        lines = [msgspec.json.decode(line, type=LookDate) for line in data.splitlines()]
    except ValueError as error:
        raise CheckFailure(
            f"{path} is no log of dates: {error}. Restore it from a copy; it is evidence."
        ) from error
    return {line.look_digest: line for line in lines}


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def dates_beside(log: Path) -> Path:
    """Return the folder of a verifier's dates, beside its log of plans."""
    return log.with_suffix(".dates")

"""Folders through which a reader plays: text files out, `act.json` in.

The reader may write anything there. So the harness works on an open folder, opens plain files only,
follows no link and reads at most `MOST_BYTES`. An act is renamed before it is read for play: what
stays as `act-0001.json` is what was played.
"""

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from owa_bench import bounded_json
from owa_bench.bridges.reader_text import ACT, MOST_BYTES, MOST_CALLS
from owa_bench.errors import AgentRaised, FieldError

WHERE = "where.txt"  # which folder is open now
GRACE_S = 1.0  # a file that holds no act may be half-written: so long it stays as it is
_NUMBERED = re.compile(r"\d{4,}")
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FORM = f'must be {{"tool": NAME, "arguments": {{..}}}} or 1 to {MOST_CALLS} of them'
# The machine's faults; any other of the operating system's is the reader's doing.
_SCARCE = {*(errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM), errno.EIO}


class ReaderAct(NamedTuple):
    """A file that a reader wrote: its calls, or the fault for which it has none."""

    actions: tuple[str, ...]
    characters: int
    fault: str = ""


class _Look(NamedTuple):
    act: ReaderAct
    mark: tuple[int, int, int]  # changes when the file is written


@contextlib.contextmanager
def _blaming_reader() -> Iterator[None]:
    """Turn the system's errors in a reader's folder into the reader's failure."""
    try:
        yield
    except OSError as error:
        if error.errno in _SCARCE:
            raise
        raise AgentRaised(f"the reader's folder cannot be used: {error.strerror}") from error


class TextFolder:
    """An open folder of text files that are written whole or not at all."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)

    def write(self, name: str, text: str) -> None:
        """Write a file under another name and rename it.

        Args:
            name: Of the file.
            text: What it holds.
        Raises: AgentRaised: The reader made that impossible.
        """
        unfinished = f".{name}.part"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS
        with _blaming_reader():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(unfinished, dir_fd=self._folder)
            opened = os.open(unfinished, flags, 0o644, dir_fd=self._folder)
            with os.fdopen(opened, "wb") as file:
                file.write(text.encode(errors="replace"))
            self._rename(unfinished, name)

    def close(self) -> None:
        """Release the folder."""
        os.close(self._folder)

    def _rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self._folder, dst_dir_fd=self._folder)


class SittingFolder(TextFolder):
    """The folder of one sitting.

    Args:
        place: The folder, which is made here.
    """

    def __init__(self, place: Path) -> None:
        place.mkdir()
        super().__init__(place)
        self.taken = 0  # files of the reader
        self._mark: tuple[int, int, int] | None = None
        self._since_s = 0.0

    def take(self) -> ReaderAct | None:
        """Take what the reader wrote, and keep it under a number.

        Returns: The act, None where there is none yet or it may be half-written.
        Raises: AgentRaised: The reader made the folder unusable.
        """
        with _blaming_reader():
            seen = self._look(ACT)
            if seen is None:
                self._mark = None
                return None
            if seen.act.fault and not self._is_settled(seen.mark):
                return None
            self._mark = None
            kind = "refused" if seen.act.fault else "act"
            kept = self._keep(kind)
            if seen.act.fault:
                return seen.act
            again = self._look(kept)  # it may have been replaced since
            return again.act if again else ReaderAct((), 0, "it was taken away again")

    def set_early_aside(self) -> str:
        """Set an act aside that came before its answer; return its name, or ""."""
        with _blaming_reader(), contextlib.suppress(FileNotFoundError):
            os.stat(ACT, dir_fd=self._folder, follow_symlinks=False)
            return self._keep("early")
        return ""

    def _keep(self, kind: str) -> str:
        """Give `act.json` the next number, whatever it is; return its name."""
        name = f"{kind}-{self.taken + 1:04d}.json"
        self._rename(ACT, name)
        self.taken += 1
        return name

    def _is_settled(self, mark: tuple[int, int, int]) -> bool:
        """Return whether a file has stayed as it is for `GRACE_S`."""
        if mark != self._mark:
            self._mark, self._since_s = mark, time.monotonic()
        return time.monotonic() - self._since_s >= GRACE_S

    def _look(self, name: str) -> _Look | None:
        """Return what a file holds, None where there is none."""
        try:
            known = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        mark = (known.st_ino, known.st_size, known.st_mtime_ns)
        if not stat.S_ISREG(known.st_mode):
            return _Look(ReaderAct((), 0, "it is no plain file"), mark)
        if known.st_size > MOST_BYTES:
            fault = f"it has {known.st_size} bytes, and {MOST_BYTES} are read"
            return _Look(ReaderAct((), 0, fault), mark)
        try:
            data = self._bytes(name)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in _SCARCE:
                raise
            fault = f"it cannot be read: {error.strerror}"
            return _Look(ReaderAct((), 0, fault), mark)
        return _Look(read_act(data), mark)

    def _bytes(self, name: str) -> bytes:
        """Return the first bytes of a plain file; one that is swapped has none."""
        opened = os.open(name, os.O_RDONLY | _FLAGS, dir_fd=self._folder)
        with os.fdopen(opened, "rb") as file:
            plain = stat.S_ISREG(os.fstat(opened).st_mode)
            return file.read(MOST_BYTES + 1) if plain else b""


def read_act(data: bytes) -> ReaderAct:
    """Return the calls that a file's bytes hold.

    Any JSON object is a call: if the suite refuses it, it costs a step.

    >>> read_act(b'{"tool": "go_on"}').actions
    ('{"tool": "go_on"}',)
    >>> read_act(b'{"tool": ').fault
    'it is no JSON: Input data was truncated'
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return ReaderAct((), len(data), f"it is no UTF-8 text: {error.reason}")
    try:
        value = bounded_json.decode(text, most_bytes=MOST_BYTES)
    except ValueError as error:
        return ReaderAct((), len(text), f"it is no JSON: {error}")
    if isinstance(value, dict):
        return ReaderAct((text.strip(),), len(text))
    calls = value if isinstance(value, list) else []
    whole = all(isinstance(call, dict) for call in calls)
    if not whole or not 1 <= len(calls) <= MOST_CALLS:
        return ReaderAct((), len(text), f"it {_FORM}")
    return ReaderAct(tuple(msgspec.json.encode(call).decode() for call in calls), len(text))


def open_door(folder: Path, run: Path, home: Path, *, resume: bool) -> TextFolder:
    """Return the folder in which the folders of all sittings are made.

    Args:
        folder: Where; made if it is not there.
        run: The run directory.
        home: The data folder, which holds the seeds.
        resume: Whether it may be the one that the run was played through so far.
    Raises: FieldError: A reader would see the run there, or it holds something.
    """
    place = folder.resolve()
    for other, what in ((run, "the run directory"), (home, "the data folder")):
        theirs = other.resolve()
        if place.is_relative_to(theirs) or theirs.is_relative_to(place):
            rule = f"must lie apart from {what} {other}: the reader would see it"
            raise FieldError("--folder", folder, rule)
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()) and not (resume and (folder / WHERE).is_file()):
        rule = "must be empty or new; to go on with a run, add --resume"
        raise FieldError("--folder", folder, rule)
    return TextFolder(folder)


def last_number(folder: Path) -> int:
    """Return the highest number of a sitting's folder there, 0 for none."""
    names = (path.name for path in folder.iterdir())
    return max((int(name) for name in names if _NUMBERED.fullmatch(name)), default=0)

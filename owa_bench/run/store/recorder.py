"""Recorder: events become hashed lines, lines become frames, frames a shard.

One recorder writes one shard; any number of episodes may be open in it at once, from
any number of threads. A frame holds lines of one attempt and closes at 1,000 lines,
256 KiB or 1 s, whichever comes first, and right after an attempt's first event, so
that a begun attempt stays visible. A closed frame is in the kernel's hands: a killed
process loses at most its open frames. Within `COMMIT_S` one `fdatasync` makes all
closed frames durable; only then are the leaves of closed attempts appended.

    frame   segment line, event lines, and in the last one the closing line
    chain   h_t = SHA-256(0x02 | h_(t-1) | exact bytes of event line t)

Source: docs/traces.md#hash-chain.
"""

import hashlib
import os
import threading
import time
from itertools import count
from pathlib import Path
from typing import Self

import zstandard

from owa_bench.canonical import chain_start, chain_step, sha256
from owa_bench.errors import InfrastructureFailure, RunDirectoryError
from owa_bench.records.events import ENCODER, EpisodeEnd, Event
from owa_bench.records.layout import RunLayout
from owa_bench.records.trace import Closing, Leaf, Segment, Status, attempt_id
from owa_bench.run.store.files import append_leaves, leaf_of
from owa_bench.run.store.redaction import Redactor

FRAME_LINES = 1_000
FRAME_BYTES = 256 * 1024
FRAME_S = 1.0
COMMIT_S = 0.5
# Measured on ToolQuest traces: 44 B/event at levels 1 and 3, 0.35 against 0.44 us.
LEVEL = 1
_NEVER = float("inf")


class EpisodeWriter:
    """Sink of one attempt, into which its env and the loop emit."""

    active = True

    def __init__(self, recorder: "Recorder", index: int, attempt: int) -> None:
        self._recorder = recorder
        self._redactor = Redactor(recorder.redact_key)
        self._lock = threading.Lock()
        self._index, self._attempt = index, attempt
        self.attempt_id = attempt_id(index, attempt)
        self._head = chain_start(recorder.plan_digest, self.attempt_id)
        self._replay = hashlib.sha256()
        self._count = 0
        self._frames: list[tuple[int, int]] = []
        self._lines: list[bytes] = []
        self._size = 0
        self._born = _NEVER
        self._timed = False
        self._ended = False
        self._leaf: Leaf | None = None

    def emit(self, event: Event) -> None:
        """Write one event after those before it.

        Raises:
            InfrastructureFailure: The event does not fit its schema, the disk refused
                a write, or the attempt is closed.
        """
        line, replay = self._redactor.encode(event)
        with self._lock:
            if self._leaf is not None:
                raise InfrastructureFailure(
                    f"Attempt {self.attempt_id} is closed and takes no more events."
                )
            self._head = chain_step(self._head, line)
            if replay is not None:
                self._replay.update(replay + b"\n")
            self._count += 1
            if isinstance(event, EpisodeEnd):
                self._ended, self._timed = True, event.timed
            self._hold(line)
            full = len(self._lines) >= FRAME_LINES or self._size >= FRAME_BYTES
            if full or not self._frames:
                self._flush()

    def blob(self, data: bytes) -> str:
        """Return the SHA-256 of redacted `data`; kept where transcripts are."""
        return self._recorder.keep(self._redactor.data(data))

    def secret(self, name: str, value: str) -> None:
        """Register a secret: from here on its value reaches no line and no blob.

        Args:
            name: Stands in the records in its place.
            value: The secret.
        """
        self._redactor.learn(name, value)

    def close(self, status: Status, memory: str | None = None) -> Leaf:
        """Close the attempt and return its leaf; a second call returns the same.

        Args:
            status: How the attempt ended.
            memory: Digest of the agent's memory after it, in a lane.

        Returns:
            The leaf.

        Raises:
            InfrastructureFailure: The status is "complete" and there is no episode_end.
        """
        with self._lock:
            if self._leaf is None:
                self._leaf = self._seal(status, memory)
                self._recorder.retire(self, self._leaf)
            return self._leaf

    def flush_if_old(self, now: float) -> None:
        """Close the open frame if its first line is older than a second."""
        with self._lock:
            if now - self._born >= FRAME_S:
                self._flush()

    def _seal(self, status: Status, memory: str | None) -> Leaf:
        """Write the closing line and return the leaf."""
        if status == "complete" and not self._ended:
            raise InfrastructureFailure(
                f"Attempt {self.attempt_id} has no episode_end and is not complete."
            )
        closing = Closing(
            closing=self.attempt_id,
            status=status,
            count=self._count,
            head=self._head.hex(),
            replay=self._replay.hexdigest(),
            timed=self._timed,
            memory=memory,
        )
        self._hold(ENCODER.encode(closing))
        self._flush()
        shard = self._recorder.path.name
        return leaf_of(closing, self._index, self._attempt, shard, self._frames)

    def _hold(self, line: bytes) -> None:
        """Put a line into the open frame."""
        if not self._lines:
            self._born = time.monotonic()
        self._lines.append(line)
        self._size += len(line) + 1

    def _flush(self) -> None:
        """Close the open frame: hand its bytes to the shard."""
        segment = Segment(attempt_id=self.attempt_id, part=len(self._frames))
        data = b"\n".join((ENCODER.encode(segment), *self._lines, b""))
        self._frames.append(self._recorder.append(data))
        self._lines.clear()
        self._size = 0
        self._born = _NEVER


class Recorder:
    """The one writer of one shard.

    Raises:
        RunDirectoryError: The shard exists: a shard is never appended to.
    """

    def __init__(
        self,
        layout: RunLayout,
        shard: int,
        plan_digest: str,
        redact_key: bytes,
        transcripts: bool,
    ) -> None:
        self.plan_digest = plan_digest
        self.redact_key = redact_key
        self.path = layout.shard(shard)
        self._layout = layout
        self._transcripts = transcripts
        self._fd = _create(self.path)
        layout.blobs.mkdir(parents=True, exist_ok=True)
        self._blobs = str(layout.blobs)
        self._offset = 0
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
        self._lock = threading.Lock()
        self._commit_lock = threading.Lock()
        self._dirty = False
        self._writers: set[EpisodeWriter] = set()
        self._leaves: list[Leaf] = []
        self._stored: set[str] = set()
        self._numbers = count()
        self._failure: Exception | None = None
        self._stop = threading.Event()
        self._clock = threading.Thread(target=self._tick, daemon=True)
        self._clock.start()

    def episode(self, index: int, attempt: int) -> EpisodeWriter:
        """Return the sink of one attempt at a plan entry.

        Args:
            index: The entry's.
            attempt: Which attempt at it, from 0.

        Returns:
            The sink.
        """
        writer = EpisodeWriter(self, index, attempt)
        with self._lock:
            self._writers.add(writer)
        return writer

    def append(self, data: bytes) -> tuple[int, int]:
        """Write `data` as one frame and return its (offset, length)."""
        with self._lock:
            if self._failure is not None:
                raise InfrastructureFailure(
                    f"The shard {self.path.name} cannot be written: {self._failure}."
                ) from self._failure
            frame = self._compressor.compress(data)
            place = (self._offset, len(frame))
            try:
                _write(self._fd, frame)
            except OSError as error:
                self._failure = error
                raise InfrastructureFailure(
                    f"The shard {self.path.name} cannot be written: {error}."
                ) from error
            self._offset += len(frame)
            self._dirty = True
            return place

    def keep(self, data: bytes) -> str:
        """Return the SHA-256 of `data`, stored under it if transcripts are kept."""
        name = sha256(data)
        if self._transcripts and name not in self._stored:
            path = f"{self._blobs}/{name}"
            if not os.path.exists(path):
                self._write_blob(path, data)
            self._stored.add(name)
        return name

    def _write_blob(self, path: str, data: bytes) -> None:
        """Write a blob beside its path and rename it: whole, or not at all."""
        part = f"{self._blobs}/.{self.path.name}-{next(self._numbers)}"
        try:
            with open(part, "xb", buffering=0) as file:
                _write(file.fileno(), data)
            os.rename(part, path)
        except OSError as error:
            raise InfrastructureFailure(
                f"The blob {path} cannot be written: {error}."
            ) from error

    def retire(self, writer: EpisodeWriter, leaf: Leaf) -> None:
        """Take the leaf of an attempt whose last frame is written.

        Args:
            writer: The attempt's sink.
            leaf: Its leaf.
        """
        with self._lock:
            self._writers.discard(writer)
            self._leaves.append(leaf)

    def commit(self) -> None:
        """Make closed frames durable, then append the leaves that rest on them."""
        with self._commit_lock:
            with self._lock:
                leaves, self._leaves = self._leaves, []
                dirty, self._dirty = self._dirty, False
            if dirty:
                os.fdatasync(self._fd)
            if leaves:
                append_leaves(self._layout, leaves)

    def close(self) -> None:
        """Close open attempts as unfinished, commit, and let go of the shard."""
        self._stop.set()
        self._clock.join()
        try:
            for writer in tuple(self._writers):
                writer.close("unfinished")
            self.commit()
        finally:
            os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _tick(self) -> None:
        """Close old frames and commit, until stopped; a failure stops all writing."""
        while not self._stop.wait(COMMIT_S):
            with self._lock:
                writers = tuple(self._writers)
            now = time.monotonic()
            try:
                for writer in writers:
                    writer.flush_if_old(now)
                self.commit()
            except (OSError, InfrastructureFailure) as error:
                with self._lock:
                    self._failure = error
                return


def _create(path: Path) -> int:
    """Return a descriptor of a new shard, its folder made and synced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o644)
    except FileExistsError as error:
        raise RunDirectoryError(
            f"Shard {path} exists; a shard has one writer, so take a new number."
        ) from error
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    return descriptor


def _write(descriptor: int, data: bytes) -> None:
    """Write all of `data`."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]

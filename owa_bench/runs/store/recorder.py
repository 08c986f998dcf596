"""Recorder: events become hashed lines, lines become frames, frames a shard.

One recorder writes one shard; any number of episodes may be open in it at once, from any number of
threads. A frame holds lines of one attempt and closes at 1,000 lines, 256 KiB or 1 s, whichever
comes first, right after an attempt's first event, so that a begun attempt stays visible, and after
help was given. These two frames are safe from a kill of the process before the agent acts on. Blobs
go into the shard's pack no later than the frame whose events name them. A killed process loses at
most its open frames and the blobs they name, and on a node what has not reached the driver yet.
Within `COMMIT_S` the output makes everything durable; only then are the leaves of closed attempts
appended.

    frame   segment line, event lines, and in the last one the closing line
    chain   h_t = SHA-256(0x02 | h_(t-1) | exact bytes of event line t)

Source: docs/traces.md#hash-chain.
"""

import hashlib
import threading
import time
from collections.abc import Mapping
from typing import Self

import zstandard

from owa_bench.canonical import chain_lines, chain_start, sha256
from owa_bench.errors import InfrastructureFailure
from owa_bench.records.events import ENCODER, EpisodeEnd, Event, Intervention
from owa_bench.records.frames import padding, weight_of
from owa_bench.records.packs import LARGEST_BLOB, PackEncoder
from owa_bench.records.trace import Closing, Leaf, Segment, Status, attempt_id
from owa_bench.runs.store.files import leaf_of
from owa_bench.runs.store.output import ShardOutput
from owa_bench.runs.store.redaction import LineBuffer, Redactor

FRAME_LINES = 1_000
FRAME_BYTES = 256 * 1024
FRAME_S = 1.0
COMMIT_S = 0.5
# Measured on ToolQuest traces: 44 B/event at levels 1 and 3, 0.35 against 0.44 us.
LEVEL = 1
# Blobs of an attempt whose digest is at hand: a reply is evidence and observation.
_RECENT = 8
_NEVER = float("inf")
_NOTED = frozenset((EpisodeEnd, Intervention))


class EpisodeWriter:
    """Sink of one attempt, into which its env and the loop emit."""

    active = True

    def __init__(self, recorder: "Recorder", index: int, attempt: int) -> None:
        self._recorder = recorder
        self._redactor = Redactor(recorder.redact_key, recorder.secrets)
        self._open = LineBuffer(self._redactor)
        self._recent: dict[bytes, str] = {}
        self._lock = threading.Lock()
        self._index, self._attempt = index, attempt
        self.attempt_id = attempt_id(index, attempt)
        self._head = chain_start(recorder.plan_digest, self.attempt_id)
        self._replay = hashlib.sha256()
        self._count = 0
        self._frames: list[tuple[int, int]] = []
        self._lines: list[bytes] = []
        # Of the open frame; the first event is written at once.
        self._lines_left = self._bytes_left = 0
        self._born = _NEVER
        self._timed = False
        self._ended = False
        self._leaf: Leaf | None = None

    def emit(self, event: Event) -> None:
        """Write one event after those before it.

        Raises: InfrastructureFailure: The event does not fit its schema, the disk refused a write,
            or the attempt is closed.
        """
        with self._lock:
            if self._leaf is not None:
                raise InfrastructureFailure(
                    f"Attempt {self.attempt_id} is closed and takes no more events."
                )
            buffer = self._open
            buffer.add(event)
            if self._born == _NEVER:
                self._born = time.monotonic()
            urgent = type(event) in _NOTED and self._note(event)
            begins = not self._frames
            if urgent or len(buffer.lines) >= self._lines_left or buffer.size >= self._bytes_left:
                self._flush()
            if urgent or begins:
                self._recorder.settle()

    def blob(self, data: bytes) -> str:
        """Return the SHA-256 of redacted `data`; kept where transcripts are."""
        name = self._recent.get(data)
        if name is None:
            if len(self._recent) >= _RECENT:
                self._recent.clear()
            name = self._recorder.keep(self._redactor.data(data))
            self._recent[data] = name
        return name

    def secret(self, name: str, value: str) -> None:
        """Register a secret: from here on its value reaches no line and no blob.

        Args:
            name: Stands in the records in its place.
            value: The secret.
        """
        with self._lock:
            self._hash()
            self._recent.clear()
            self._redactor.learn(name, value)

    def close(self, status: Status, memory: str | None = None) -> Leaf:
        """Close the attempt and return its leaf; a second call returns the same.

        Args:
            status: How the attempt ended.
            memory: Digest of the agent's memory after it, in a lane.
        Returns: The leaf.
        Raises: InfrastructureFailure: The status is "complete" and there is no episode_end.
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

    def _note(self, event: Event) -> bool:
        """Take note of how an episode ended; return whether to write at once."""
        if isinstance(event, EpisodeEnd):
            self._ended, self._timed = True, event.timed
        # Help is on disk before the agent has it: a killed worker loses none.
        return isinstance(event, Intervention)

    def _seal(self, status: Status, memory: str | None) -> Leaf:
        """Write the closing line and return the leaf."""
        if status == "complete" and not self._ended:
            raise InfrastructureFailure(
                f"Attempt {self.attempt_id} has no episode_end and is not complete."
            )
        self._hash()
        closing = Closing(
            closing=self.attempt_id,
            status=status,
            count=self._count,
            head=self._head.hex(),
            replay=self._replay.hexdigest(),
            timed=self._timed,
            memory=memory,
        )
        self._lines.append(ENCODER.encode(closing))
        self._flush()
        shard = self._recorder.shard
        return leaf_of(closing, self._index, self._attempt, shard, self._frames)

    def _hash(self) -> None:
        """Redact and chain the lines so far: what is learnt later changes none."""
        if not self._open.lines:
            return
        self._bytes_left -= self._open.size
        self._lines_left -= len(self._open.lines)
        lines, replay = self._open.take()
        self._head = chain_lines(self._head, lines)
        self._replay.update(replay)
        self._count += len(lines)
        self._lines += lines

    def _flush(self) -> None:
        """Close the open frame: hand its bytes to the output."""
        self._hash()
        segment = Segment(attempt_id=self.attempt_id, part=len(self._frames))
        data = b"\n".join((ENCODER.encode(segment), *self._lines, b""))
        self._frames.append(self._recorder.append(data))
        self._lines.clear()
        self._lines_left, self._bytes_left = FRAME_LINES, FRAME_BYTES
        self._born = _NEVER


class Recorder:
    """The one writer of one shard and its pack.

    Args:
        output: Where the bytes go; closed with the recorder.
        plan_digest: With which every attempt's chain begins.
        redact_key: Marks what stands in a secret's place.
        transcripts: Whether blobs are kept, or their digests alone.
        secrets: Of the environment, by name: they reach no record.
    """

    def __init__(
        self,
        output: ShardOutput,
        plan_digest: str,
        redact_key: bytes,
        transcripts: bool,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        self.secrets = secrets or {}
        self.plan_digest = plan_digest
        self.redact_key = redact_key
        self.shard = output.name
        self._output = output
        self._transcripts = transcripts
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
        self._pack = PackEncoder()
        self._stored: set[str] = set()
        self._lock = threading.Lock()
        self._commit_lock = threading.Lock()
        self._writers: set[EpisodeWriter] = set()
        self._leaves: list[Leaf] = []
        self._failure: Exception | None = None
        self._stop = threading.Event()
        self._clock = threading.Thread(target=self._tick, daemon=True)
        self._clock.start()

    def episode(self, index: int, attempt: int) -> EpisodeWriter:
        """Return the sink of one attempt at a plan entry.

        Args:
            index: The entry's.
            attempt: Which attempt at it, from 0.
        """
        writer = EpisodeWriter(self, index, attempt)
        with self._lock:
            self._writers.add(writer)
        return writer

    def append(self, data: bytes) -> tuple[int, int]:
        """Write `data` as one frame and return its (offset, length)."""
        with self._lock:
            frame = self._compressor.compress(data)
            # Before the frame: a write that a full disk cuts off leaves no whole one.
            filler = padding(len(frame), weight_of(len(data), data.count(b"\n")))
            place = (self._output.size + len(filler), len(frame))
            self._write(filler + frame, self._pack.flush())
            return place

    def settle(self) -> None:
        """Return when no kill of this process can lose a frame written so far."""
        self._output.settle()

    def keep(self, data: bytes) -> str:
        """Return the SHA-256 of `data`, stored under it if transcripts are kept.

        Raises: InfrastructureFailure: It is too large, or cannot be written.
        """
        name = sha256(data)
        if not self._transcripts:
            return name
        if len(data) > LARGEST_BLOB:
            raise InfrastructureFailure(
                f"A blob must have at most {LARGEST_BLOB} bytes, got {len(data)}."
            )
        with self._lock:
            if name not in self._stored:
                self._stored.add(name)
                self._pack.add(data)
                if self._pack.waiting_size >= FRAME_BYTES:
                    self._write(b"", self._pack.flush())
        return name

    def _write(self, frame: bytes, blobs: bytes) -> None:
        """Give bytes to the output; after a failure nothing is written any more."""
        try:
            if self._failure is None:
                self._output.append(frame, blobs)
        except OSError as error:
            self._failure = error
        if self._failure is not None:
            raise InfrastructureFailure(
                f"The shard {self.shard} cannot be written: {self._failure}."
            ) from self._failure

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
            self._output.commit(leaves)

    def close(self) -> None:
        """Close open attempts as unfinished, commit, and let go of the output."""
        self._stop.set()
        self._clock.join()
        try:
            for writer in tuple(self._writers):
                writer.close("unfinished")
            with self._lock:
                if blobs := self._pack.finish():
                    self._write(b"", blobs)
            self.commit()
        finally:
            self._output.close()

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

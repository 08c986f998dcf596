"""The recorder beside the raw limit and a named peer: events/s and bytes per event.

    raw      the same lines, zstd and write, no chain, no check, no redaction
    sqlite   json.dumps of the same event and INSERT, a transaction an episode (WAL)
    recorder what a run pays: check, redaction, chain, replay digest, frames, commit

Events are those of an oracle's ToolQuest episodes, all different, played into memory
first. All three write an episode at a time. Usage: python benchmarks/recorder.py
[EPISODES]
"""

import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import zstandard

from owa_bench import discovery
from owa_bench.canonical import sha256
from owa_bench.drift import timeline as timelines
from owa_bench.records.events import ENCODER, Event
from owa_bench.records.instance import Instance
from owa_bench.records.layout import RunLayout
from owa_bench.runs import assembly
from owa_bench.runs.store import files, recorder
from owa_bench.runs.store.output import ShardFiles
from owa_bench.shells.episode_events import ListSink

EPISODES = 400
REPEATS = 5
Episode = Sequence[Event]


class Measured(NamedTuple):
    name: str
    events_per_s: float
    bytes_per_event: float


class Corpus(NamedTuple):
    """Recorded episodes, the secrets of one of them, and all blobs."""

    episodes: list[Episode]
    secrets: dict[str, str]
    blobs: list[bytes]


Writer = Callable[[Sequence[Episode], Path], float]


def played(count: int) -> Corpus:
    """Return `count` episodes of the oracle, every tier and family."""
    suite = discovery.get("suites", "toolquest")
    env = suite.env(timelines.source("toolquest")).unwrapped
    corpus, secrets = Corpus([], {}, []), []
    for seed in range(count):
        sink = ListSink()
        instance = Instance(
            suite="toolquest",
            version=suite.card.version,
            family=suite.card.families[seed % len(suite.card.families)],
            tier=1 + seed % 3,
            seed=seed,
        )
        env.attach(sink)
        env.reset(options={"instance": instance})
        for action in assembly.script("toolquest", instance):
            env.step(action)
        corpus.episodes.append(sink.events)
        corpus.blobs.extend(sink.blobs.values())
        secrets.append(sink.secrets)
    return corpus._replace(secrets=max(secrets, key=len))


def raw(episodes: Sequence[Episode], folder: Path) -> float:
    """Return the bytes written by a zstd frame an episode and nothing else."""
    compressor = zstandard.ZstdCompressor(level=recorder.LEVEL)
    with (folder / "raw.zst").open("wb", buffering=0) as file:
        for events in episodes:
            file.write(compressor.compress(b"\n".join(map(ENCODER.encode, events))))
    return (folder / "raw.zst").stat().st_size


def sqlite(episodes: Sequence[Episode], folder: Path) -> float:
    """Return the bytes of a table of JSON texts, one transaction an episode."""
    path = folder / "peer.sqlite"
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE event (number INTEGER PRIMARY KEY, line TEXT)")
    for events in episodes:
        database.execute("BEGIN")
        for event in events:
            line = json.dumps(msgspec.to_builtins(event))
            database.execute("INSERT INTO event (line) VALUES (?)", (line,))
        database.execute("COMMIT")
    database.close()
    return path.stat().st_size


def recorded(secrets: dict[str, str]) -> Writer:
    """Return what writes episodes through a recorder that knows these secrets."""

    def write(episodes: Sequence[Episode], folder: Path) -> float:
        with recorder.Recorder(ShardFiles(RunLayout(folder), 0), "0" * 64, b"key", True) as made:
            for index, events in enumerate(episodes):
                writer = made.episode(index, 0)
                for name, value in secrets.items():
                    writer.secret(name, value)
                for event in events:
                    writer.emit(event)
                writer.close("infrastructure")
        return RunLayout(folder).shard(0).stat().st_size

    return write


def measure(name: str, write: Writer, episodes: Sequence[Episode]) -> Measured:
    """Return the best of some runs in fresh folders."""
    best, size = 0.0, 0.0
    count = sum(map(len, episodes))
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            size = write(episodes, Path(folder))
            best = max(best, count / (time.perf_counter() - began))
    return Measured(name, best, size / count)


def blob_times(blobs: Sequence[bytes], secrets: dict[str, str]) -> tuple[float, float]:
    """Return microseconds per distinct blob: hashed only, and kept."""
    began = time.perf_counter()
    for blob in blobs:
        sha256(blob)
    hashed = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        layout = RunLayout(Path(folder))
        with recorder.Recorder(ShardFiles(layout, 0), "0" * 64, b"key", True) as made:
            writer = made.episode(0, 0)
            for name, value in secrets.items():
                writer.secret(name, value)
            began = time.perf_counter()
            for blob in blobs:
                writer.blob(blob)
            kept = time.perf_counter() - began
    return hashed / len(blobs) * 1e6, kept / len(blobs) * 1e6


def main(count: int) -> None:
    """Print the table."""
    corpus = played(count)
    lines = [len(ENCODER.encode(event)) for events in corpus.episodes for event in events]
    known = len(corpus.secrets)
    rows = [
        measure("raw limit: msgspec + zstd + write", raw, corpus.episodes),
        measure("recorder, no secret known", recorded({}), corpus.episodes),
        measure(f"recorder, {known} secrets", recorded(corpus.secrets), corpus.episodes),
        measure("peer: json.dumps + SQLite (WAL)", sqlite, corpus.episodes),
    ]
    limit, peer = rows[0], rows[-1]
    print(f"{len(lines):,} events of {sum(lines) / len(lines):.0f} bytes as JSON in")
    print(f"{count} episodes, each an attempt of its own; best of {REPEATS}")
    print(f"{'':36}{'events/s':>12}{'B/event':>9}{'x raw':>8}{'x peer':>8}")
    for row in rows:
        speed, bytes_each = row.events_per_s, row.bytes_per_event
        print(
            f"{row.name:36}{speed:12,.0f}{bytes_each:9.1f}"
            f"{speed / limit.events_per_s:8.2f}{speed / peer.events_per_s:8.2f}"
        )
    hashed, kept = blob_times(corpus.blobs, corpus.secrets)
    mean = sum(map(len, corpus.blobs)) / len(corpus.blobs)
    print(
        f"blob of {mean:.0f} bytes: {kept:.0f} us kept into the pack, "
        f"{hashed:.1f} us hashed only, x {kept / hashed:.0f}"
    )
    with tempfile.TemporaryDirectory() as folder:
        recorded({})(corpus.episodes, Path(folder))
        layout = RunLayout(Path(folder))
        leaves = files.read_leaves(layout)
        began = time.perf_counter()
        read = sum(len(files.read_trace(layout, leaf).events) for leaf in leaves)
        print(f"read back: {read / (time.perf_counter() - began):,.0f} events/s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else EPISODES)

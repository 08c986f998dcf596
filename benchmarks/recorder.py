"""The recorder beside the raw limit and a named peer: events/s and bytes per event.

    raw      the same lines, zstd and write, no chain, no check, no redaction
    sqlite   json.dumps of the same event and INSERT, a transaction an episode (WAL)
    recorder what a run pays: check, redaction, chain, replay digest, frames, commit

Events are those of an oracle's ToolQuest episodes, all different, played into memory
first. All three write an episode at a time; CPU time, so that no wait for a disk counts.
With secrets known most of the time goes into the search for every form of each.
"""

import argparse
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import speed
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

Episode = Sequence[Event]


class Rate(NamedTuple):
    """Events a second, bytes an event."""

    events: float
    size: float


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


def measure(write: Writer, episodes: Sequence[Episode]) -> Rate:
    """Return what one run into a fresh folder took."""
    count = sum(map(len, episodes))
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        size = write(episodes, Path(folder))
        return Rate(count / (time.process_time() - began), size / count)


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


def read_back(corpus: Corpus) -> float:
    """Return the events a second of reading a shard again."""
    with tempfile.TemporaryDirectory() as folder:
        recorded({})(corpus.episodes, Path(folder))
        layout = RunLayout(Path(folder))
        leaves = files.read_leaves(layout)
        began = time.perf_counter()
        count = sum(len(files.read_trace(layout, leaf).events) for leaf in leaves)
        return count / (time.perf_counter() - began)


def tables(given: argparse.Namespace) -> Iterator[speed.Table]:
    """Yield the writers, and what else the recorder does."""
    corpus = played(8 if given.small else 400)
    raw_limit, ours, peer = "raw limit: msgspec, zstd, write", "recorder", "peer: SQLite (WAL)"
    ways = {
        raw_limit: raw,
        ours: recorded({}),
        f"recorder, {len(corpus.secrets)} secrets learnt an attempt": recorded(corpus.secrets),
        peer: sqlite,
    }
    found = speed.in_turns(
        {name: partial(measure, write, corpus.episodes) for name, write in ways.items()},
        2 if given.small else 7,
    )
    rates = {name: [each.events for each in rounds] for name, rounds in found.items()}
    aims = speed.Aim("x raw", ">=", 0.35), speed.Aim("bytes/event", "<=", 38.9)
    rows = [
        speed.Row(
            name,
            {
                "events/CPU s": max(rates[name]),
                "bytes/event": rounds[0].size,
                "x raw": speed.ratio(rates[name], rates[raw_limit]),
                "x SQLite": speed.ratio(rates[name], rates[peer]),
            },
            aims if name == ours else (),
        )
        for name, rounds in found.items()
    ]
    yield speed.Table(f"recorder, {sum(map(len, corpus.episodes)):,} events", rows)
    hashed, kept = blob_times(corpus.blobs, corpus.secrets)
    size = sum(map(len, corpus.blobs)) / len(corpus.blobs)
    yield speed.Table(
        f"a blob of {size:.0f} bytes",
        [
            speed.Row("hashed only", {"us": hashed, "x": 1.0}),
            speed.Row("kept in the pack", {"us": kept, "x": kept / hashed}),
        ],
    )
    yield speed.Table("a shard", [speed.Row("read back", {"events/s": read_back(corpus)})])


if __name__ == "__main__":
    speed.main(tables, speed.parser(__doc__))

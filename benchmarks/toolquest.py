"""ToolQuest beside a named peer: steps/s in process and over the wire, reset time.

    in process       the env's language view, oracle scripts of every family and tier
    recorder         the same, written to disk with and without transcripts
    wire             the same over loopback
    peers            one request a step and nothing else: httpx with ASGITransport on a
                     bare Starlette app (in process), the same app under uvicorn (wire)

A ratio above 1 means that a whole step of ToolQuest (parse, request, oracle, events,
features) takes less time than the peer's bare request. Rows in process are CPU time, those
of the recorder of the playing thread, since a busy machine's waits are nobody's; each of
these stands beside the row above it.
"""

import argparse
import asyncio
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import speed
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from owa_bench.drift import timeline as timelines
from owa_bench.envs.toolquest.suite import SUITE
from owa_bench.interfaces import Sink
from owa_bench.records.instance import Instance, Timeline
from owa_bench.records.layout import RunLayout
from owa_bench.runs.store.output import ShardFiles
from owa_bench.runs.store.recorder import EpisodeWriter, Recorder
from owa_bench.shells.episode_events import NullSink
from owa_bench.shells.solution import solve

ROWS = [{"item_id": f"r-{i}", "price": 100 * i, "kind": "odd"} for i in range(12)]


class Script(NamedTuple):
    """A timeline and the oracle's actions in it."""

    timeline: Timeline
    actions: tuple[str, ...]


class Speed(NamedTuple):
    """Steps per second and milliseconds per reset."""

    steps: float
    reset_ms: float


def scripts(seeds: int) -> list[Script]:
    """Return undrifted tasks of every family and tier with their solutions."""
    source, found = timelines.source("toolquest"), []
    for family in SUITE.card.families:
        for tier in SUITE.card.tiers:
            for seed in range(seeds):
                instance = Instance(
                    suite="toolquest",
                    version=SUITE.card.version,
                    family=family,
                    tier=tier,
                    seed=seed,
                )
                timeline = source(instance)
                found.append(Script(timeline, solve(SUITE, timeline).actions))
    return found


def play(
    tasks: list[Script],
    sink: Callable[[int], Sink],
    *,
    wire: bool,
    clock: Callable[[], float] = time.perf_counter,
) -> Speed:
    """Play every script once."""
    current = [tasks[0].timeline]
    env: Any = SUITE.env(lambda _: current[0], wire=wire).unwrapped
    steps, stepping, resetting = 0, 0.0, 0.0
    for number, (timeline, actions) in enumerate(tasks):
        current[0] = timeline
        env.attach(sink(number))
        begin = clock()
        env.reset(options={"instance": timeline.instance})
        ready = clock()
        for action in actions:
            env.step(action)
        stepping += clock() - ready
        resetting += ready - begin
        steps += len(actions)
    env.close()
    return Speed(steps / stepping, 1e3 * resetting / len(tasks))


def recorded(tasks: list[Script], *, transcripts: bool) -> Speed:
    """Play every script into a recorder on disk; CPU time."""
    writers: list[EpisodeWriter] = []

    def sink(number: int) -> EpisodeWriter:
        if writers:
            writers.pop().close("infrastructure")
        writers.append(recorder.episode(number, 0))
        return writers[0]

    with tempfile.TemporaryDirectory() as folder:
        layout = RunLayout(Path(folder))
        with Recorder(ShardFiles(layout, 0), "0" * 64, b"key", transcripts) as recorder:
            return play(tasks, sink, wire=False, clock=time.thread_time)


def bare() -> Starlette:
    """Return an app with one route that answers twelve rows."""

    async def items(request: Any) -> JSONResponse:
        return JSONResponse({"data": ROWS})

    return Starlette(routes=[Route("/v1/items", items)])


def peer_in_process(requests: int) -> float:
    """Return requests per second of httpx on the bare app, in process."""

    async def run() -> float:
        transport = httpx.ASGITransport(app=bare())
        async with httpx.AsyncClient(transport=transport, base_url="http://shop.example") as client:
            begin = time.process_time()
            for _ in range(requests):
                await client.get("/v1/items", params={"limit": 12})
            return requests / (time.process_time() - begin)

    return asyncio.run(run())


def peer_on_the_wire(requests: int) -> float:
    """Return requests per second of a persistent httpx client on uvicorn."""
    config = uvicorn.Config(bare(), port=0, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.001)
    port = server.servers[0].sockets[0].getsockname()[1]
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        begin = time.perf_counter()
        for _ in range(requests):
            client.get("/v1/items", params={"limit": 12})
        speed = requests / (time.perf_counter() - begin)
    server.should_exit = True
    thread.join()
    return speed


def row(name: str, rounds: list[Speed], column: str, x: float, *aims: speed.Aim) -> speed.Row:
    """Return the best of some rounds, and a ratio under its column."""
    figures = {
        "steps/s": max(each.steps for each in rounds),
        "reset ms": min(each.reset_ms for each in rounds),
        column: x,
    }
    return speed.Row(name, figures, aims)


def peers_table(tasks: list[Script], rounds: int, requests: int) -> speed.Table:
    """Return the env beside a bare request, in process and over the wire."""
    null = NullSink()
    found = speed.in_turns(
        {
            "in process": lambda: play(tasks, lambda _: null, wire=False, clock=time.process_time),
            "peer in process": lambda: peer_in_process(requests),
            "wire": lambda: play(tasks, lambda _: null, wire=True),
            "peer on the wire": lambda: peer_on_the_wire(requests),
        },
        rounds,
    )
    rows = []
    for ours, peer, name in (
        ("in process", "peer in process", "httpx `ASGITransport` on a bare Starlette app"),
        ("wire", "peer on the wire", "httpx and uvicorn on loopback"),
    ):
        x = speed.ratio((each.steps for each in found[ours]), found[peer])
        rows.append(row(f"{ours}, recorder off", found[ours], "x peer", x))
        rows.append(speed.Row(f"peer: {name}", {"steps/s": max(found[peer]), "x peer": 1.0}))
    return speed.Table("ToolQuest", rows)


def recorder_table(tasks: list[Script], rounds: int) -> speed.Table:
    """Return the env without recorder, without transcripts, with them; CPU time."""
    ways = {
        "recorder off": lambda: play(
            tasks, lambda _: NullSink(), wire=False, clock=time.thread_time
        ),
        "recorder on, no transcripts": lambda: recorded(tasks, transcripts=False),
        "recorder on, with transcripts": lambda: recorded(tasks, transcripts=True),
    }
    found = speed.in_turns(ways, rounds)
    names, rows, column = list(ways), [], "x the row above"
    for before, name in zip([names[0], *names], names, strict=False):
        x = speed.ratio(*([each.steps for each in found[n]] for n in (name, before)))
        aims = [speed.Aim(column, ">=", 0.85)] if name != before else []
        rows.append(row(name, found[name], column, x, *aims))
    return speed.Table("ToolQuest, CPU time", rows)


def tables(given: argparse.Namespace) -> Iterator[speed.Table]:
    """Yield both tables."""
    tasks = scripts(seeds=1 if given.small else 6)
    if given.small:
        tasks = tasks[:4]
    rounds = 1 if given.small else 5
    yield peers_table(tasks, rounds, 20 if given.small else 1_000)
    yield recorder_table(tasks, rounds)


if __name__ == "__main__":
    speed.main(tables, speed.parser(__doc__))

"""ToolQuest beside a named peer: steps/s in process and over the wire, reset time.

    in process       the env's language view, oracle scripts of every family and tier
    recorder         the same, written to disk with and without transcripts
    wire             the same over loopback
    peers            one request a step and nothing else: httpx with ASGITransport on a
                     bare Starlette app (in process), the same app under uvicorn (wire)

A ratio above 1 means that a whole step of ToolQuest (parse, request, oracle, events,
features) takes less time than the peer's bare request. Best of some rounds, which the
rows of the recorder take in turns; those rows are CPU time of the playing thread, since
a busy machine's waits are not the recorder's, and stand beside the row above them.
Run: python benchmarks/toolquest.py
"""

import asyncio
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
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

SEEDS = 6
ROUNDS = 5
REQUESTS = 1_000
ROWS = [{"item_id": f"r-{i}", "price": 100 * i, "kind": "odd"} for i in range(12)]


class Script(NamedTuple):
    """A timeline and the oracle's actions in it."""

    timeline: Timeline
    actions: tuple[str, ...]


class Speed(NamedTuple):
    """Steps per second and milliseconds per reset."""

    steps: float
    reset_ms: float


def scripts() -> list[Script]:
    """Return undrifted tasks of every family and tier with their solutions."""
    source, found = timelines.source("toolquest"), []
    for family in SUITE.card.families:
        for tier in SUITE.card.tiers:
            for seed in range(SEEDS):
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


def best(measure: Callable[[], Speed], rounds: int = ROUNDS) -> Speed:
    """Return the best of some rounds; the machine may be busy."""
    seen = [measure() for _ in range(rounds)]
    return Speed(max(s.steps for s in seen), min(s.reset_ms for s in seen))


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


def recorder_rows(tasks: list[Script]) -> list[Speed]:
    """Return the speed without recorder, without transcripts, with them; CPU time."""
    ways: list[Callable[[], Speed]] = [
        lambda: play(tasks, lambda _: NullSink(), wire=False, clock=time.thread_time),
        lambda: recorded(tasks, transcripts=False),
        lambda: recorded(tasks, transcripts=True),
    ]
    rounds = [[way() for way in ways] for _ in range(ROUNDS)]
    return [
        Speed(max(s.steps for s in seen), min(s.reset_ms for s in seen))
        for seen in zip(*rounds, strict=True)
    ]


def bare() -> Starlette:
    """Return an app with one route that answers twelve rows."""

    async def items(request: Any) -> JSONResponse:
        return JSONResponse({"data": ROWS})

    return Starlette(routes=[Route("/v1/items", items)])


def peer_in_process() -> float:
    """Return requests per second of httpx on the bare app, in process."""

    async def run() -> float:
        transport = httpx.ASGITransport(app=bare())
        async with httpx.AsyncClient(transport=transport, base_url="http://shop.example") as client:
            begin = time.perf_counter()
            for _ in range(REQUESTS):
                await client.get("/v1/items", params={"limit": 12})
            return REQUESTS / (time.perf_counter() - begin)

    return max(asyncio.run(run()) for _ in range(3))


def peer_on_the_wire() -> float:
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
        for _ in range(REQUESTS):
            client.get("/v1/items", params={"limit": 12})
        speed = REQUESTS / (time.perf_counter() - begin)
    server.should_exit = True
    thread.join()
    return speed


def main() -> None:
    """Print the table."""
    tasks = scripts()
    null = NullSink()
    in_process, on_wire = peer_in_process(), peer_on_the_wire()
    rows = [
        (
            "in process, recorder off",
            best(lambda: play(tasks, lambda _: null, wire=False)),
            in_process,
        ),
        (
            "wire, recorder off",
            best(lambda: play(tasks, lambda _: null, wire=True), rounds=2),
            on_wire,
        ),
    ]
    print(f"{'ToolQuest':32}{'steps/s':>10}{'reset ms':>10}{'x peer':>8}")
    for name, speed, peer in rows:
        ratio = speed.steps / peer
        print(f"{name:32}{speed.steps:>10,.0f}{speed.reset_ms:>10.2f}{ratio:>8.2f}")
    names = ("CPU, recorder off", "CPU, recorder on", "CPU, with transcripts")
    before = 0.0
    for name, speed in zip(names, recorder_rows(tasks), strict=True):
        ratio = f"{speed.steps / before:.2f} x the row above" if before else ""
        print(f"{name:32}{speed.steps:>10,.0f}{speed.reset_ms:>10.2f}  {ratio}")
        before = speed.steps
    print(f"{'peer: httpx ASGITransport':32}{in_process:>10,.0f}{'':>10}{1:>8.2f}")
    print(f"{'peer: httpx and uvicorn':32}{on_wire:>10,.0f}{'':>10}{1:>8.2f}")


if __name__ == "__main__":
    main()

"""Chat agents beside Inspect's: requests a second to one server that answers at once.

Each agent asks ten times with a tool call as the answer, so many of them at a time. Ours are
whole episodes of ToolQuest in processes of their own behind the gateway, recorded; Inspect's
are samples of its tool loop with a tool that does nothing. The server runs in a process of
its own and counts: requests by the time from the first to the last, so that no start counts.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import speed

sys.path.insert(0, str(speed.ROOT))

from owa_bench.hosting.gateway.options import GatewayOptions
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from tests.builders.stub_server import completion, serving

REQUESTS = 10
AT_ONCE = (1, 8, 32)
LEAST = {32: 2.0}  # times Inspect's rate; 1 elsewhere
KEY = "OWA_BENCH_STUB_KEY"


def serve() -> None:
    """Answer until standard input ends; a line of it asks for what was counted."""
    times: list[float] = []

    def policy(body: dict[str, Any]) -> dict[str, Any]:
        times.append(time.perf_counter())
        said = sum(message["role"] == "assistant" for message in body["messages"])
        names = {tool["function"]["name"] for tool in body.get("tools", ())}
        call = ("finish", {}) if said == REQUESTS - 1 else ("note", {"text": f"thought {said}"})
        answer = completion(call) if call[0] in names else completion(content="done")
        answer["usage"]["total_tokens"] = 1
        return {**answer, "id": "1", "object": "chat.completion", "created": 0, "model": "stub"}

    with serving(policy, whole=True) as url:
        print(url, flush=True)
        for _ in sys.stdin:
            print(json.dumps([len(times), times[-1] - times[0]]), flush=True)
            times.clear()


@contextlib.contextmanager
def server() -> Iterator[tuple[str, Callable[[int], float]]]:
    """Yield an address, and a function that returns the rate of so many requests."""
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        url = process.stdout.readline().strip()

        def rate(expected: int) -> float:
            print(file=process.stdin, flush=True)
            count, seconds = json.loads(process.stdout.readline())
            if count != expected:
                raise SystemExit(f"{count} requests were sent, not {expected}")
            return count / seconds

        try:
            yield url, rate
        finally:
            process.stdin.close()
            process.wait(30)


def play(url: str, folder: Path, at_once: int, episodes: int) -> None:
    """Play a run of episodes of the chat agent."""
    draw = Draw(
        name="toolquest", families=("reconcile",), tiers=(1,), deltas=(0.0,), episodes=episodes
    )
    request = Request(
        agents=("language-model:model=stub,retries=0",),
        draws=(draw,),
        sandbox="none",  # the server listens on this machine's loopback
    )
    options = RunOptions(
        home=folder / "home",
        concurrency=at_once,
        gateway=GatewayOptions(model_url=url, model_key_env=KEY),
    )
    found = batch.play(request, folder / "run", options)
    if found.missing:
        raise SystemExit(f"{found.missing} episodes are missing")


def tables(given: argparse.Namespace) -> Iterator[speed.Table]:
    """Yield the rates by agents at once."""
    os.environ[KEY] = "stub"
    rounds = 1 if given.small else 5
    rows = []
    with server() as (url, rate), speed.peer("inspect-ai", "inspect_loop.py") as (ask, fault):

        def ours(at_once: int, episodes: int) -> float:
            with tempfile.TemporaryDirectory() as place:
                play(url, Path(place), at_once, episodes)
            return rate(REQUESTS * episodes)

        def theirs(at_once: int, episodes: int) -> float:
            ask(url=url, at_once=at_once, samples=episodes)
            return rate(REQUESTS * episodes)

        for at_once in AT_ONCE[: 1 if given.small else None]:
            episodes = 2 if given.small else max(8, 2 * at_once)
            ways = {"ours": partial(ours, at_once, episodes)}
            if not fault:
                theirs(at_once, episodes)  # imports what it needs
                ways["Inspect"] = partial(theirs, at_once, episodes)
            found = speed.in_turns(ways, rounds)
            figures = {"requests/s": max(found["ours"])}
            if not fault:
                figures["Inspect, requests/s"] = max(found["Inspect"])
                figures["x Inspect"] = speed.ratio(found["ours"], found["Inspect"])
            aims = [speed.Aim("x Inspect", ">=", LEAST.get(at_once, 1.0))]
            rows.append(speed.Row(f"{at_once} at once", figures, aims, fault))
    yield speed.Table("chat agents", rows)


if __name__ == "__main__":
    arguments = speed.parser(__doc__)
    arguments.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    if "--serve" in sys.argv:
        serve()
    else:
        speed.main(tables, arguments)

"""32 slow agents at once against one.

The slow agent stands behind an address and takes a fixed time for each answer; the raw
limit is one episode alone.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import speed

from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch

STEPS = 8
NOTE = b'{"action": {"tool": "note", "arguments": {"text": "thinking"}}}'
FINISH = b'{"action": {"tool": "finish", "arguments": {}}}'


class SlowAgent(BaseHTTPRequestHandler):
    """Thinks for a while before each move; finishes after STEPS of them."""

    protocol_version = "HTTP/1.1"
    answer_s = 0.2
    moves: dict[str, int] = {}

    def do_POST(self) -> None:
        """Answer one request."""
        request = self.rfile.read(int(self.headers["content-length"]))
        body = b"{}"
        if b'"act":' in request:
            time.sleep(self.answer_s)
            name = request.rpartition(b'"episode":"')[2].decode()
            self.moves[name] = self.moves.get(name, 0) + 1
            body = NOTE if self.moves[name] < STEPS else FINISH
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Takes 32 connections at once."""

    request_queue_size = 128
    daemon_threads = True


def play_s(url: str, folder: Path, episodes: int, **options: int) -> float:
    """Return the seconds that `episodes` episodes took, start and all."""
    draw = Draw(
        name="toolquest", families=("reconcile",), tiers=(1,), deltas=(0.0,), episodes=episodes
    )
    folder.parent.mkdir()
    began = time.perf_counter()
    found = batch.play(
        Request(agents=(url,), draws=(draw,)),
        folder,
        RunOptions(home=folder.parent / "home", **options),
    )
    took = time.perf_counter() - began
    if found.missing:
        raise SystemExit(f"{found.missing} episodes are missing")
    return took


def tables(given: argparse.Namespace) -> Iterator[speed.Table]:
    """Yield the seconds of one episode and of many."""
    episodes = 4 if given.small else 32
    SlowAgent.answer_s = 0.05 if given.small else 0.2
    server = Server(("127.0.0.1", 0), SlowAgent)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    with tempfile.TemporaryDirectory() as place:
        folders = (Path(place) / str(number) / "run" for number in range(100))
        one_name = f"one episode of {STEPS} answers of {SlowAgent.answer_s} s"
        many_name = f"{episodes} such episodes at `--concurrency {episodes}`"
        found = speed.in_turns(
            {
                one_name: lambda: play_s(url, next(folders), 1),
                many_name: lambda: play_s(url, next(folders), episodes, concurrency=episodes),
            },
            1 if given.small else 3,
        )
    server.shutdown()
    rows = [
        speed.Row(name, {"s": min(seconds), "x one": speed.ratio(seconds, found[one_name])})
        for name, seconds in found.items()
    ]
    yield speed.Table("agents that wait", rows)


if __name__ == "__main__":
    speed.main(tables, speed.parser(__doc__))

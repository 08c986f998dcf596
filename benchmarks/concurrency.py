"""32 slow agents at once against one, and what a fresh agent process costs.

    python benchmarks/concurrency.py [--answer-s 0.2] [--episodes 32]

The slow agent stands behind an address and takes a fixed time for each answer; the raw
limit is one episode alone. The peer of the fork template is a new interpreter.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from owa_bench.hosting.agent_process import AgentLauncher
from owa_bench.hosting.fork_server import ForkServer
from owa_bench.hosting.protocol import ResetRequest
from owa_bench.hosting.spec import load_agent
from owa_bench.interfaces import Brief
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch

STEPS = 8
ROUNDS = 100
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


def fork_ms() -> float:
    """Return milliseconds per episode of a fresh process that plays one move."""
    origin = load_agent("noop").origin
    terms = ResetRequest(brief=Brief(text="", goal={}), tools=(), memory_dir="/nowhere")
    with ForkServer() as fork_server:
        launcher = AgentLauncher(fork_server)
        launcher.connect(origin).end()
        began = time.perf_counter()
        for _ in range(ROUNDS):
            connection = launcher.connect(origin)
            connection.reset(terms, 60.0)
            connection.act({"text": ""}, {}, 60.0)
            connection.close(60.0)
        return (time.perf_counter() - began) / ROUNDS * 1e3


def interpreter_ms() -> float:
    """Return milliseconds per new interpreter that imports the same agent."""
    code = "import owa_bench.agents.floors"
    began = time.perf_counter()
    for _ in range(5):
        subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - began) / 5 * 1e3


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answer-s", type=float, default=0.2)
    parser.add_argument("--episodes", type=int, default=32)
    given = parser.parse_args()
    SlowAgent.answer_s = given.answer_s
    server = Server(("127.0.0.1", 0), SlowAgent)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        one = play_s(url, root / "one", 1)
        many = play_s(url, root / "many", given.episodes, concurrency=given.episodes)
    server.shutdown()
    forked, started = fork_ms(), interpreter_ms()
    print(f"one episode, {STEPS} answers of {given.answer_s} s   {one:8.2f} s")
    print(
        f"{given.episodes} episodes at --concurrency {given.episodes}"
        f"          {many:8.2f} s   {many / one:.2f} x one"
    )
    print(f"fresh agent process per episode (fork)  {forked:8.2f} ms")
    print(
        f"fresh agent process per episode (new)   {started:8.2f} ms"
        f"  {started / forked:.0f} x the fork"
    )


if __name__ == "__main__":
    main()

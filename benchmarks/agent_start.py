"""Start of an agent's process: forked, forked into a sandbox, cold under bubblewrap.

Each start ends with the agent's first reply to `reset`; its end is not counted. The
kinds take turns, so that a busy machine slows them alike: read the ratios.

    python benchmarks/agent_start.py [--repeats 30]
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from owa_bench.interfaces import Brief
from owa_bench.run.agents.agent_process import AgentLauncher
from owa_bench.run.agents.fork_server import ForkServer
from owa_bench.run.agents.protocol import ResetRequest
from owa_bench.run.agents.spec import load_agent
from owa_bench.sandbox.views import bubblewrap_fault

AGENTS = Path(__file__).parents[1] / "tests" / "builders"
KINDS = {
    "forked": ("noop", "unsandboxed"),
    "forked into a sandbox": ("noop", "sandboxed"),
    "a file, forked": ("odd_agents:Quiet", "unsandboxed"),
    "a file, forked into a sandbox": ("odd_agents:Quiet", "sandboxed"),
    "a program, cold": (f"{sys.executable} command_agent.py", "unsandboxed"),
    "a program, cold under bubblewrap": (
        f"{sys.executable} command_agent.py",
        "sandboxed",
    ),
}


def start_ms(launcher, spec, hosting):
    """Return milliseconds from nothing to the agent's reply to `reset`."""
    origin = load_agent(spec, folder=AGENTS).origin
    with tempfile.TemporaryDirectory() as memory:
        began = time.perf_counter()
        connection = launcher.connect(origin, Path(memory), hosting)
        try:
            terms = ResetRequest(
                brief=Brief(text="t", goal={}),
                tools=(),
                memory_dir=connection.memory_dir,
            )
            connection.reset(terms, 60.0)
            return (time.perf_counter() - began) * 1000.0
        finally:
            connection.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=30)
    repeats = parser.parse_args().repeats
    if fault := bubblewrap_fault():
        raise SystemExit(f"no sandbox here: {fault}")
    times = {kind: [] for kind in KINDS}
    with ForkServer() as fork_server:
        launcher = AgentLauncher(fork_server)
        for spec, hosting in KINDS.values():  # templates import what they share
            start_ms(launcher, spec, hosting)
        for _ in range(repeats):
            for kind, (spec, hosting) in KINDS.items():
                times[kind].append(start_ms(launcher, spec, hosting))
    base = statistics.median(times["forked"])
    for kind, each in times.items():
        median = statistics.median(each)
        best = min(each)
        print(
            f"{kind:34} median {median:6.1f} ms, least {best:6.1f} ms, "
            f"{median - base:+6.1f} ms, x {median / base:.1f}"
        )


if __name__ == "__main__":
    main()

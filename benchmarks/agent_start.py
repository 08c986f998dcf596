"""Start of an agent's process: forked, into a sandbox, a private root, bubblewrap.

Each start ends with the agent's first reply to `reset`; its end is counted apart. The
kinds take turns, so that a busy machine slows them alike: read the ratios. Makes an image of
the root in memory first, where the machine can: gigabytes, and some 20 s.

    python benchmarks/agent_start.py [--repeats 30]
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from owa_bench.hosting.agent_process import AgentLauncher
from owa_bench.hosting.fork_server import ForkServer
from owa_bench.hosting.isolation import image_of
from owa_bench.hosting.protocol import ResetRequest
from owa_bench.hosting.spec import load_agent
from owa_bench.interfaces import Brief
from owa_bench.records.plan import PRIVATE
from owa_bench.sandbox.root_image import private_root_fault, system_content
from owa_bench.sandbox.views import bubblewrap_fault

AGENTS = Path(__file__).parents[1] / "tests" / "builders"
PROGRAM = f"{sys.executable} command_agent.py"
KINDS = {
    "forked": ("noop", "unsandboxed", ""),
    "forked into a sandbox": ("noop", "sandboxed", ""),
    "forked into a private root": ("noop", "sandboxed", PRIVATE),
    "a file, forked": ("odd_agents:Quiet", "unsandboxed", ""),
    "a file, forked into a sandbox": ("odd_agents:Quiet", "sandboxed", ""),
    "a file, forked into a private root": ("odd_agents:Quiet", "sandboxed", PRIVATE),
    "a program, cold": (PROGRAM, "unsandboxed", ""),
    "a program, cold under bubblewrap": (PROGRAM, "sandboxed", ""),
    "a program, cold in a private root": (PROGRAM, "sandboxed", PRIVATE),
}


def start_ms(launcher, spec, hosting, root):
    """Return milliseconds to the agent's reply to `reset`, and to its end."""
    origin = load_agent(spec, folder=AGENTS).origin
    with tempfile.TemporaryDirectory() as memory:
        began = time.perf_counter()
        connection = launcher.connect(origin, Path(memory), hosting, root=root)
        try:
            terms = ResetRequest(
                brief=Brief(text="t", goal={}), tools=(), memory_dir=connection.memory_dir
            )
            connection.reset(terms, 60.0)
            started = time.perf_counter()
        finally:
            connection.end()
        return (started - began) * 1000.0, (time.perf_counter() - began) * 1000.0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=30)
    repeats = parser.parse_args().repeats
    if fault := bubblewrap_fault() or private_root_fault():
        raise SystemExit(f"no sandbox here: {fault}")
    times = {kind: [] for kind in KINDS}
    began = time.perf_counter()
    agents = [load_agent(spec, folder=AGENTS).origin for spec, _, _ in KINDS.values()]
    image = image_of(agents, ())
    size, took = system_content().size >> 20, time.perf_counter() - began
    print(f"the root image: {size} MiB in memory, made in {took:.1f} s")
    with ForkServer() as fork_server, ForkServer(image) as private:
        launcher = AgentLauncher(fork_server, private=private)
        for how in KINDS.values():  # templates import what they share
            start_ms(launcher, *how)
        for _ in range(repeats):
            for kind, how in KINDS.items():
                times[kind].append(start_ms(launcher, *how))
    base, whole = (statistics.median(each) for each in zip(*times["forked"], strict=True))
    for kind, each in times.items():
        starts, ends = zip(*each, strict=True)
        median, end = statistics.median(starts), statistics.median(ends)
        print(
            f"{kind:34} median {median:6.1f} ms, least {min(starts):6.1f} ms, "
            f"{median - base:+6.1f} ms, x {median / base:.1f}; "
            f"with its end {end:6.1f} ms, {end - whole:+6.1f} ms"
        )


if __name__ == "__main__":
    main()

"""Start and end of an agent's process: forked, into a sandbox, a private root, bubblewrap.

"connect" starts the process, "reset" is its first reply, "end" lets it go; "x forked" is of
all three. Makes an image of the root in memory first, where the machine can: gigabytes, and
some 20 s; `--small` leaves private roots out.
"""

import contextlib
import itertools
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import speed

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
    """Return milliseconds of connect, of the reply to `reset` and of the end."""
    origin = load_agent(spec, folder=AGENTS).origin
    with tempfile.TemporaryDirectory() as memory:
        times = [time.perf_counter()]
        connection = launcher.connect(origin, Path(memory), hosting, root=root)
        times.append(time.perf_counter())
        try:
            terms = ResetRequest(
                brief=Brief(text="t", goal={}), tools=(), memory_dir=connection.memory_dir
            )
            connection.reset(terms, 60.0)
            times.append(time.perf_counter())
        finally:
            connection.end()
        times.append(time.perf_counter())
    return [1e3 * (end - begin) for begin, end in itertools.pairwise(times)]


def interpreter_ms():
    """Return milliseconds of a new interpreter that imports the agent of the first row."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import owa_bench.agents.floors"], check=True)
    return [1e3 * (time.perf_counter() - began)]


def launchers(kinds, stack):
    """Return the launcher that the kinds need, and a line on the image of the root."""
    server = stack.enter_context(ForkServer())
    if not any(root for *_, root in kinds.values()):
        return AgentLauncher(server), None
    began = time.perf_counter()
    image = image_of([load_agent(spec, folder=AGENTS).origin for spec, *_ in kinds.values()], ())
    figures = {"MiB": system_content().size >> 20, "s": time.perf_counter() - began}
    private = stack.enter_context(ForkServer(image))
    return AgentLauncher(server, private=private), speed.Row("made, once a run", figures)


def tables(given):
    """Yield the kinds of start, and the image."""
    kinds = {name: how for name, how in KINDS.items() if not (given.small and how[-1])}
    if fault := bubblewrap_fault() or (not given.small and private_root_fault()):
        raise SystemExit(f"no sandbox here: {fault}")
    with contextlib.ExitStack() as stack:
        launcher, image = launchers(kinds, stack)
        ways = {name: partial(start_ms, launcher, *how) for name, how in kinds.items()}
        for way in ways.values():  # templates import what they share
            way()
        ways["peer: a new interpreter that imports the agent"] = interpreter_ms
        found = speed.in_turns(ways, 2 if given.small else 30)
    rows = []
    aims = {"forked into a sandbox": [speed.Aim("connect + end ms", "<=", 12)]}
    for name, rounds in found.items():
        figures = {}
        if name in KINDS:
            names = ("connect ms", "reset ms", "end ms")
            figures = dict(zip(names, map(min, zip(*rounds, strict=True)), strict=True))
            figures["connect + end ms"] = min(each[0] + each[2] for each in rounds)
        figures["all ms"] = min(map(sum, rounds))
        figures["x forked"] = speed.ratio(map(sum, rounds), map(sum, found["forked"]))
        rows.append(speed.Row(name, figures, aims.get(name, ())))
    yield speed.Table("an agent's process", rows)
    if image:
        yield speed.Table("image of a private root", [image])


if __name__ == "__main__":
    speed.main(tables, speed.parser(__doc__))

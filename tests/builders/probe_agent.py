"""An agent that looks for seven ways out of its process and says which it found.

Beside it lies `targets.json`: the data folder, the run directory, a port of this
machine and a word in the harness' environment. It is a file agent and, run as a
program, a command agent. Its findings are the words of its failure.
"""

import json
import os
import socket
import sys
from functools import cache
from pathlib import Path


@cache
def target(name):
    """Return one of the things to look for."""
    return json.loads(Path(__file__).with_name("targets.json").read_text())[name]


def reads(folder):
    """Return whether any file below a folder can be read."""
    return any(path.is_file() and path.read_bytes() for path in Path(folder).rglob("*"))


def parent_memory():
    """Return whether the memory of a process outside can be read."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        if int(name) in (os.getpid(), os.getppid() if os.getppid() == 1 else 0):
            continue
        try:
            with open(f"/proc/{name}/maps") as maps, open(f"/proc/{name}/mem", "rb") as m:
                m.seek(int(next(line for line in maps if "rw" in line).split("-")[0], 16))
                if m.read(16):
                    return True
        except (OSError, StopIteration, ValueError):
            continue
    return False


def environment():
    """Return whether the harness' environment can be read."""
    word = target("word").encode()
    texts = [repr(dict(os.environ)).encode()]
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            texts.append(path.read_bytes())
        except OSError:
            continue
    return any(word in text for text in texts)


def network():
    """Return whether a port of the machine can be reached, or is listed."""
    port = target("port")
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return f":{port:04X}" in Path("/proc/net/tcp").read_text()
    return True


DOORS = {
    "escrow": lambda: reads(Path(target("data"), "escrow")),
    "key": lambda: reads(Path(target("data"), "keys")),
    "plan": lambda: Path(target("run"), "plan.json").read_bytes() != b"",
    "run": lambda: reads(target("run")),
    "memory": parent_memory,
    "environment": environment,
    "network": network,
}


def open_doors():
    """Return the doors that are open."""
    found = []
    for name, door in DOORS.items():
        try:
            if door():
                found.append(name)
        except OSError:
            continue
    return found


class Probe:
    """Says what it found, by failing."""

    def reset(self, brief, tools, memory_dir):
        """Write to its memory, which must work."""
        Path(memory_dir, "note").write_text("kept")

    def act(self, observation, info):
        """Fail with what was found."""
        raise RuntimeError(f"open doors: {open_doors()} at {Path.cwd()}")

    def close(self):
        """Do nothing."""


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        reply = {}
        if "reset" in request:
            Path(request["reset"]["memory_dir"], "note").write_text("kept")
        if "act" in request:
            reply = {"error": f"open doors: {open_doors()}"}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()

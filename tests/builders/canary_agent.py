"""An agent of SelfRev that looks for the key of its laboratory wherever it can read.

`canary.json` beside it holds the first bytes of that key: whoever finds the rest can
derive every instance of every holdout. Where it looks: files, environments and command
lines of all processes, and the memory of all that it may open.
"""

import json
import os
import re
from pathlib import Path

FOLDERS = ("/tmp", "/home", "/root", "/var/tmp", "/run", "/dev/shm")
MOST = 4 << 20  # bytes of a file


def processes():
    """Yield the folders in /proc of other processes."""
    own = {str(os.getpid()), "self", "thread-self"}
    for name in os.listdir("/proc"):
        if name.isdecimal() and name not in own:
            yield Path("/proc") / name


def memory_of(process):
    """Yield the writable private memory of a process, region by region."""
    lines = (process / "maps").read_text().splitlines()
    with (process / "mem").open("rb", 0) as memory:
        for line in lines:
            place, rights = line.split()[:2]
            if rights == "rw-p":
                low, high = (int(end, 16) for end in place.split("-"))
                try:
                    memory.seek(low)
                    yield memory.read(min(high - low, 256 << 20))
                except (OSError, ValueError, OverflowError):
                    continue


def texts():
    """Yield everything that can be read."""
    for process in processes():
        for name in ("environ", "cmdline"):
            try:
                yield (process / name).read_bytes()
            except OSError:
                continue
        try:
            yield from memory_of(process)
        except OSError:
            continue
    for folder in FOLDERS:
        for at, _, names in os.walk(folder):
            for name in names:
                path = Path(at) / name
                try:
                    if path.is_file() and path.stat().st_size <= MOST:
                        yield path.read_bytes()
                except OSError:
                    continue


class Seeker:
    """Looks once; its findings are the words of its failure."""

    def reset(self, brief, tools, memory_dir):
        """Do nothing."""

    def act(self, observation, info):
        """Look for the key, until it is found."""
        told = json.loads(Path(__file__).with_name("canary.json").read_text())
        hint = re.escape(bytes.fromhex(told["hint"]))
        wanted = re.compile(hint + b".{%d}" % told["rest"], re.DOTALL)
        found, read = set(), 0
        for text in texts():
            read += len(text)
            found.update(match.hex() for match in wanted.findall(text))
            if found:
                break
        raise RuntimeError(json.dumps({"found": sorted(found), "read": read}))

    def close(self):
        """Do nothing."""

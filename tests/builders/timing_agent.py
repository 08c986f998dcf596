"""Agents that pass bits to each other by time alone; orders as in leaking_agent.py.

A sender that is told the bit 0 does nothing; `get` and `hear` answer with seconds.
"""

import os
import time

try:  # beside it, in the agent's folder
    from leaking_agent import Leaker
except ModuleNotFoundError:
    from tests.builders.leaking_agent import Leaker

LOOPS = 3_000_000
BURNERS = 4  # for each processor


def seconds(work):
    """Return how long some work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


class PageCache:
    """Pages of a large file, far from each other: read for 1."""

    def put(self, bit, path, places):
        if bit:
            self.read(path, places)

    def get(self, path, places):
        return seconds(lambda: self.read(path, places))

    def read(self, path, places):
        with open(path, "rb", 0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            for place in places:
                os.pread(file.fileno(), 1, place)


class Names:
    """Names that a folder does not hold: looked up for 1."""

    def put(self, bit, paths):
        if bit:
            self.look_up(paths)

    def get(self, paths):
        return seconds(lambda: self.look_up(paths))

    def look_up(self, paths):
        for path in paths:
            os.access(path, os.F_OK)


class Load:
    """The processors: busy for 1."""

    def send(self, bit):
        self.burners = [burn() for _ in range(bit * BURNERS * os.cpu_count())]

    def clear(self):
        for burner in self.burners:
            os.kill(burner, 9)
            os.waitpid(burner, 0)

    def hear(self):
        return seconds(lambda: sum(range(LOOPS)))


def burn():
    """Start a process that keeps a processor busy; return its id."""
    if child := os.fork():
        return child
    os.setsid()  # the kernel may share the processors between sessions
    while True:
        pass


class Timer(Leaker):
    """Obeys one order an act."""

    known = {each.__name__: each for each in (PageCache, Names, Load)}

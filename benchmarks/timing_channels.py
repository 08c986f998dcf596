"""Bits that sandboxed agents pass each other by time alone, with a private root or not.

    python benchmarks/timing_channels.py [--trials 40]

A trial passes one bit, 0 or 1 with the same frequency. Three channels: the page cache
and the kernel's names between two sittings, the processors' load between two seats at
once. The harness drops the file's pages before each trial of the page cache. The
receiver decides by a threshold on its one time, fitted on one half of the trials and
tested on the other, and the reverse. Private and shared roots take turns.

"bits" is the mutual information of the bits sent and received. Few trials make it
larger than 0 by chance: "by chance" is what 19 of 20 shuffles of the sent bits stay
below. So a channel is seen only where "bits" is more.
"""

import argparse
import functools
import itertools
import json
import math
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.progress import track

from owa_bench.hosting.agent_process import AgentLauncher
from owa_bench.hosting.fork_server import ForkServer
from owa_bench.hosting.isolation import image_of
from owa_bench.hosting.protocol import ResetRequest
from owa_bench.hosting.spec import load_agent
from owa_bench.interfaces import Brief
from owa_bench.records.plan import PRIVATE
from owa_bench.sandbox.root_image import private_root_fault, system_content
from owa_bench.seeding import stream

AGENTS = Path(__file__).parents[1] / "tests" / "builders"
ROOTS = {"private": PRIVATE, "shared": ""}
PLACES = range(0, 16 << 20, 1 << 18)  # pages of the file that are read
NAMES = 2000
SHUFFLES = 200
DEADLINE_S = 60.0


# --- trials ---------------------------------------------------------------------------


def largest_file():
    """Return the largest library of the system: both roots hold it."""
    left_out = system_content().left_out
    folders = [f for f in Path("/usr/lib").glob("*-linux-*") if str(f) not in left_out]
    files = [p for f in folders for p in f.iterdir() if p.is_file()]
    path = max(files, key=lambda path: path.stat().st_size, default=None)
    if path is None or path.stat().st_size < PLACES.stop:
        raise SystemExit(f"no file of {PLACES.stop >> 20} MiB in /usr/lib/*-linux-*")
    return str(path.resolve())


def drop_pages(path):
    """Drop a file's pages from the page cache; return whether its first is gone."""
    with open(path, "rb", 0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        try:
            os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT)
        except BlockingIOError:
            return True
    return False


class Seat:
    """A sandboxed agent that obeys orders, with a folder of its own."""

    def __init__(self, launcher, origin, root):
        self._folder = tempfile.TemporaryDirectory()
        place = Path(self._folder.name)
        self._connection = launcher.connect(origin, place, "sandboxed", root=root)
        memory = self._connection.memory_dir
        terms = ResetRequest(brief=Brief(text="t", goal={}), tools=(), memory_dir=memory)
        self._connection.reset(terms, DEADLINE_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._connection.end()
        self._folder.cleanup()

    def order(self, channel, do, **words):
        text = json.dumps({"channel": channel, "do": do, **words})
        action = self._connection.act({"text": text}, {}, DEADLINE_S).action
        answer = json.loads(action)
        if isinstance(answer, str):
            raise SystemExit(f"an agent could not {do} in {channel}: {answer}")
        return answer


def between_sittings(seat, channel, bit, words):
    """Return the time that a process takes after another one has sent a bit."""
    with seat() as first:
        first.order(channel, "put", bit=bit, **words)
    with seat() as second:
        return second.order(channel, "get", **words)


def between_seats(seat, bit):
    """Return the time that a process takes while another one sends a bit."""
    with seat() as sender, seat() as hearer:
        sender.order("Load", "send", bit=bit)
        heard = hearer.order("Load", "hear")
        sender.order("Load", "clear")
    return heard


class Trials:
    """Makes trials of each channel; counts those whose pages could not be dropped."""

    def __init__(self):
        self.path = largest_file()
        self.kept, self._asked = 0, 0

    def page_cache(self, seat, bit):
        self.kept += not drop_pages(self.path)
        words = {"path": self.path, "places": list(PLACES)}
        return between_sittings(seat, "PageCache", bit, words)

    def names(self, seat, bit):
        """Ask for names that nobody has asked for before."""
        self._asked += 1
        start = f"/usr/lib/owa-{os.getpid()}-{time.time_ns()}-{self._asked}-"
        paths = [start + str(number) for number in range(NAMES)]
        return between_sittings(seat, "Names", bit, {"paths": paths})

    def load(self, seat, bit):
        return between_seats(seat, bit)


# --- what the receiver learns ---------------------------------------------------------


def fitted_rule(sent, times):
    """Return the threshold, and the bit below it, that are right most often."""
    ordered = sorted(times)
    cuts = [(a + b) / 2 for a, b in itertools.pairwise(ordered)]
    rules = [(cut, below) for cut in cuts for below in (0, 1)]
    return max(rules, key=lambda rule: share_right(sent, decided(rule, times)))


def decided(rule, times):
    cut, below = rule
    return [below if each < cut else 1 - below for each in times]


def share_right(sent, heard):
    return statistics.mean(a == b for a, b in zip(sent, heard, strict=True))


def received(sent, times):
    """Return what is decided of each half by the rule that the other half gives."""
    half = len(sent) // 2
    first = decided(fitted_rule(sent[half:], times[half:]), times[:half])
    second = decided(fitted_rule(sent[:half], times[:half]), times[half:])
    return first + second


def information(sent, heard):
    """Return the mutual information of two lists of bits, in bits."""
    count = len(sent)
    ones, found = Counter(sent), Counter(heard)
    pairs = Counter(zip(sent, heard, strict=True)).items()
    return sum(n / count * math.log2(n * count / (ones[a] * found[b])) for (a, b), n in pairs)


def chance(sent, times):
    """Return the information that 19 of 20 shuffles of the sent bits stay below."""
    order, found = stream(0, "timing", "chance"), []
    for _ in range(SHUFFLES):
        bits = in_random_order(len(sent), order)
        found.append(information(bits, received(bits, times)))
    return statistics.quantiles(found, n=20)[-1]


def in_random_order(trials, order):
    """Return bits, as many 0 as 1 in each half."""
    half = [0, 1] * (trials // 4)
    return [half[place] for _ in range(2) for place in order.permutation(len(half))]


# --- the table ------------------------------------------------------------------------


def measured(trial, seats, sent, name):
    """Return the times of each root's trials."""
    times = {root: [] for root in seats}
    for bit in track(sent, name, console=Console(stderr=True)):
        for root, seat in seats.items():
            times[root].append(trial(seat, bit))
    return times


def row(sent, times):
    """Return bits a trial, and the text of a row."""
    heard = received(sent, times)
    bits = information(sent, heard)
    zero, one = (
        statistics.median(t for t, b in zip(times, sent, strict=True) if b == bit) for bit in (0, 1)
    )
    text = f"{share_right(sent, heard):6.2f} {bits:6.2f} {chance(sent, times):10.2f}"
    return bits, f"{text} {zero * 1e3:10.2f} {one * 1e3:10.2f}"


def print_channel(name, trial, seats, sent):
    times = measured(trial, seats, sent, name)
    found = {}
    for root in seats:
        found[root], text = row(sent, times[root])
        print(f"{name:28} {root:8} {text}")
    ratio = found["private"] / found["shared"] if found["shared"] else math.nan
    print(f"{name:28} bits, private to shared: {ratio:.2f}", flush=True)


def print_table(seats, trials):
    channels = Trials()
    sent = in_random_order(trials, stream(0, "timing", "sent"))
    print(f"{trials} trials each, {os.cpu_count()} processors, {load()}")
    print(f"the file: {channels.path}")
    heads = f"{'right':>6} {'bits':>6} {'by chance':>10} {'0, ms':>10} {'1, ms':>10}"
    print(f"{'channel':28} {'root':8} {heads}")
    for name, trial in {
        "sittings: page cache": channels.page_cache,
        "sittings: names": channels.names,
        "seats: processors' load": channels.load,
    }.items():
        print_channel(name, trial, seats, sent)
    print(f"trials whose file stayed in the page cache: {channels.kept}; {load()}")


def load():
    return f"load {os.getloadavg()[0]:.1f}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=40, help="a multiple of 4, from 8")
    trials = parser.parse_args().trials
    if trials < 8 or trials % 4:
        parser.error(f"--trials must be a multiple of 4 from 8 on, got {trials}")
    if fault := private_root_fault():
        raise SystemExit(f"no private roots here: {fault}")
    origin = load_agent("timing_agent:Timer", folder=AGENTS).origin
    print("the root image is made, which takes a while", file=sys.stderr)
    with ForkServer() as plain, ForkServer(image_of([origin], ())) as private:
        launcher = AgentLauncher(plain, private=private)
        seats = {
            name: functools.partial(Seat, launcher, origin, root) for name, root in ROOTS.items()
        }
        print_table(seats, trials)


if __name__ == "__main__":
    main()

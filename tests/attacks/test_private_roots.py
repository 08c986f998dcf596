"""A canary agent passes no bit from one sitting, or one seat, to another.

Each channel is tried in a private root, and as its control without a sandbox, where it
works; those of files that sandboxes had in common also in a shared root, where they
work. Timing is measured apart (`benchmarks/timing_channels.py`).
"""

import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from owa_bench.hosting.agent_process import AgentLauncher
from owa_bench.hosting.fork_server import ForkServer
from owa_bench.hosting.isolation import image_of
from owa_bench.hosting.protocol import ResetRequest
from owa_bench.hosting.spec import load_agent
from owa_bench.interfaces import Brief
from owa_bench.sandbox import root_image
from owa_bench.sandbox.root_image import private_root_fault
from tests.builders import leaking_agent

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def _private_roots():
    if fault := private_root_fault():  # seconds: not while tests are collected
        pytest.skip(f"no private roots: {fault}")


PATTERN = (1, 0, 0, 1, 1, 0, 1, 0)
INVERSE = tuple(1 - bit for bit in PATTERN)
# Each with the number of bits it holds at once, and whether a shared root lets it pass.
SITTINGS = {
    "Mincore": (8, True),
    "NoWait": (8, True),
    "CacheStat": (8, True),
    "Faults": (8, True),
    "Times": (4, False),
}
SEATS = {
    "Flock": True,
    "RecordLock": True,
    "OpenFileLock": True,
    "Lease": True,
    "LockTable": False,
    "Watch": True,
    "Quota": True,
    "Memory": True,
    "MemoryFile": True,
    "FreeSpace": True,
    "Descriptors": True,
    "Abstract": False,
    "SharedMemory": False,
    "SystemV": False,
}
DEVICES = ("DeviceFlock", "DeviceLock")
ROOTS = ("private", "shared", "none")


@pytest.fixture(scope="module")
def folder():
    """Return a folder of a disk with the agent and a file that is on that disk."""
    with tempfile.TemporaryDirectory(prefix="owa-canary-") as made:
        shutil.copy(leaking_agent.__file__, made)
        data = os.urandom(1 << 20) * 9
        with open(Path(made, "shared.bin"), "wb") as file:
            file.write(data)
            os.fsync(file.fileno())
        yield Path(made)


@pytest.fixture(scope="module")
def origin(folder):
    return load_agent("leaking_agent:Leaker", folder=folder).origin


@pytest.fixture(scope="module")
def launcher(origin):
    with ForkServer() as plain, ForkServer(image_of([origin], ())) as private:
        yield AgentLauncher(plain, private=private)


@contextlib.contextmanager
def connecting(launcher, origin, folder):
    """Yield what connects an agent in a root, with a folder of its own."""
    opened = []

    def connect(root):
        memory = tempfile.mkdtemp(dir=folder.parent)
        hosting = "unsandboxed" if root == "none" else "sandboxed"
        connection = launcher.connect(origin, Path(memory), hosting, root=root)
        opened.append((connection, memory))
        brief = Brief(text="t", goal={})
        place = connection.memory_dir
        connection.reset(ResetRequest(brief=brief, tools=(), memory_dir=place), 60.0)
        return connection

    yield connect
    for connection, memory in opened:
        connection.end()
        shutil.rmtree(memory)


@pytest.fixture
def connect(launcher, origin, folder):
    with connecting(launcher, origin, folder) as connect:
        yield connect


def order(connection, channel, do, **words):
    text = json.dumps({"channel": channel, "do": do, **words})
    return json.loads(connection.act({"text": text}, {}, 60.0).action)


def between_sittings(connect, root, channel, bits):
    """Return what a process reads of what one before it wrote."""
    first = connect(root)
    order(first, channel, "put", bits=bits)
    first.end()
    second = connect(root)
    found = order(second, channel, "get", count=len(bits))
    second.end()
    return found


def between_seats(connect, root, channel, bits):
    """Return what a process reads of what another does meanwhile, bit by bit."""
    sender, hearer, heard = connect(root), connect(root), []
    for bit in bits:
        order(hearer, channel, "prepare")
        order(sender, channel, "send", bit=bit)
        heard.append(order(hearer, channel, "hear"))
        order(sender, channel, "clear")
    return heard


def assert_as_expected(passes, root, works):
    """Hold that both patterns arrive where a channel works, and no bit where not."""
    if works:  # a busy machine disturbs a channel
        tries = ([passes(PATTERN), passes(INVERSE)] for _ in range(3))
        assert [list(PATTERN), list(INVERSE)] in tries
    else:
        one, other = passes(PATTERN), passes(INVERSE)
        assert one == other, f"{root}: {one} and {other} differ"


@pytest.mark.parametrize("channel", DEVICES)
def test_no_bit_passes_by_a_lock_of_a_device(origin, folder, channel):
    if root_image._system_layer.cache_info().currsize:
        pytest.skip("the keeper of an image already holds the locks of devices")
    with ForkServer() as plain, connecting(AgentLauncher(plain), origin, folder) as connect:
        for root in ("shared", "none"):
            assert between_seats(connect, root, channel, PATTERN) == list(PATTERN)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("channel", SITTINGS)
def test_no_bit_outlasts_a_sitting(connect, channel, root):
    count, shared = SITTINGS[channel]
    works = root == "none" or (root == "shared" and shared)

    def passes(bits):
        found = between_sittings(connect, root, channel, bits[:count])
        tail = list(bits[count:])
        return found + tail if works else found

    assert_as_expected(passes, root, works)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("channel", [*SEATS, *DEVICES])
def test_no_bit_passes_between_seats(connect, channel, root):
    works = root == "none" or (root == "shared" and SEATS.get(channel))
    works = works and channel not in DEVICES  # a test of its own
    assert_as_expected(lambda bits: between_seats(connect, root, channel, bits), root, works)

"""Agents that pass bits to each other by what a kernel shares between sandboxes.

An observation is an order: {"channel": .., "do": .., "bits" or "bit": ..}; the answer
is the action. `shared.bin` beside this file is what both see. A channel that the kernel
refuses answers with the name of the error.
"""

import contextlib
import ctypes
import fcntl
import json
import mmap
import os
import resource
import socket
import struct
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
_NUMBERS = (ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *_NUMBERS]
STRIDE = 1 << 20  # beyond what the kernel reads ahead, or maps around a fault
PAGE = mmap.PAGESIZE
SHARED = Path(__file__).with_name("shared.bin")
MEMORY = Path("/memory")


def checked(result):
    """Return the result of a call of the C library; OSError if it failed."""
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def opened(path=SHARED, flags=os.O_RDONLY):
    return os.open(path, flags)


# --- what outlasts a process: between sittings ----------------------------------------


class Residency:
    """Pages of a shared file in the page cache: read for 1, dropped for 0."""

    def put(self, bits):
        descriptor = opened()
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        with contextlib.suppress(OSError):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        for place, bit in enumerate(bits):
            if bit:
                os.pread(descriptor, 1, place * STRIDE)

    def get(self, count):
        places = range(0, count * STRIDE, STRIDE)
        return [int(self.is_resident(opened(), place)) for place in places]


def mapped(descriptor, offset, length=PAGE):
    place = LIBC.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, offset)
    return checked(ctypes.c_long(place).value)


class Mincore(Residency):
    def is_resident(self, descriptor, offset):
        answer = ctypes.create_string_buffer(1)
        place = ctypes.c_void_p(mapped(descriptor, offset))
        checked(LIBC.mincore(place, ctypes.c_size_t(PAGE), answer))
        return answer.raw[0] & 1


class NoWait(Residency):
    def is_resident(self, descriptor, offset):
        try:
            return os.preadv(descriptor, [bytearray(1)], offset, os.RWF_NOWAIT)
        except BlockingIOError:
            return 0


class CacheStat(Residency):
    def is_resident(self, descriptor, offset):
        found = (ctypes.c_uint64 * 5)()
        reach = (ctypes.c_uint64 * 2)(offset, PAGE)
        checked(LIBC.syscall(451, descriptor, reach, found, 0))
        return found[0]


class Faults(Residency):
    """Whether a fault had to read from the disk: the kernel's own count."""

    def is_resident(self, descriptor, offset):
        LIBC.madvise(ctypes.c_void_p(place := mapped(descriptor, offset)), PAGE, 1)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
        ctypes.string_at(place, 1)
        return resource.getrusage(resource.RUSAGE_SELF).ru_majflt == before


class Times:
    """The times of a file that both have: a bit a file."""

    paths = tuple(f"/dev/{name}" for name in ("zero", "full", "random", "urandom"))

    def put(self, bits):
        for path, bit in zip(self.paths, bits, strict=False):
            os.utime(path, (1000 + bit, 1000 + bit))

    def get(self, count):
        return [int(os.stat(path).st_mtime) % 1000 for path in self.paths[:count]]


# --- what needs both at once: between seats -------------------------------------------


class Flock:
    path = SHARED

    def send(self, bit):
        self.held = opened(self.path)
        if bit:
            fcntl.flock(self.held, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def clear(self):
        os.close(self.held)

    def hear(self):
        descriptor = opened(self.path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 1
        finally:
            os.close(descriptor)
        return 0


class RecordLock(Flock):
    """A POSIX lock, and the question who holds one that stands in the way."""

    command, asking = fcntl.F_SETLK, fcntl.F_GETLK

    def record(self, kind):
        return struct.pack("hhqqi4x", kind, os.SEEK_SET, 3, 5, 0)

    def send(self, bit):
        self.held = opened(self.path)
        if bit:
            fcntl.fcntl(self.held, self.command, self.record(fcntl.F_RDLCK))

    def hear(self):
        with open(self.path, "rb", 0) as file:
            told = fcntl.fcntl(file, self.asking, self.record(fcntl.F_WRLCK))
        # The kind, and where: a lock that always stands there says nothing.
        kind, _, start, length, _ = struct.unpack("hhqqi4x", told)
        return int(kind != fcntl.F_UNLCK and (start, length) == (3, 5))


class OpenFileLock(RecordLock):
    command, asking = 37, 36  # F_OFD_SETLK, F_OFD_GETLK


class DeviceFlock(Flock):
    path = "/dev/null"


class DeviceLock(RecordLock):
    path = "/dev/null"


class Lease:
    def send(self, bit):
        self.held = [opened() for _ in range(bit)]
        for descriptor in self.held:
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)

    def clear(self):
        for descriptor in self.held:
            os.close(descriptor)

    def hear(self):
        descriptor = opened()
        try:  # a write lease is given where nobody else has the file open
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except BlockingIOError:
            return 1
        finally:
            os.close(descriptor)
        return 0


class LockTable(Flock):
    """The kernel's list of locks."""

    def prepare(self):
        self.before = Path("/proc/locks").read_text().count("\n")

    def hear(self):
        return int(Path("/proc/locks").read_text().count("\n") > self.before)


class Watch:
    """Events of a shared file."""

    def prepare(self):
        self.queue = checked(LIBC.inotify_init1(os.O_NONBLOCK))
        checked(LIBC.inotify_add_watch(self.queue, bytes(SHARED), 0x20))

    def send(self, bit):
        if bit:
            os.close(opened())

    def clear(self):
        pass

    def hear(self):
        try:
            return int(bool(os.read(self.queue, 4096)))
        except BlockingIOError:
            return 0
        finally:
            os.close(self.queue)


class Quota:
    """How many watches the user may still have."""

    def send(self, bit):
        self.held = []
        while bit and (queue := LIBC.inotify_init1(0)) != -1:
            self.held.append(queue)
        if bit and not self.held:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def clear(self):
        for queue in self.held:
            os.close(queue)

    def hear(self):
        if (queue := LIBC.inotify_init1(0)) == -1:
            if ctypes.get_errno() == 24:
                return 1
            checked(queue)
        os.close(queue)
        return 0


class Abstract:
    """A Unix socket without a file."""

    def send(self, bit):
        self.held = socket.socket(socket.AF_UNIX)
        if bit:
            self.held.bind("\0owa-canary")

    def clear(self):
        self.held.close()

    def hear(self):
        with socket.socket(socket.AF_UNIX) as own:
            try:
                own.bind("\0owa-canary")
            except OSError:
                return 1
        return 0


class SharedMemory:
    def send(self, bit):
        if bit:
            Path("/dev/shm/owa-canary").touch()

    def clear(self):
        Path("/dev/shm/owa-canary").unlink(missing_ok=True)

    def hear(self):
        return int(Path("/dev/shm/owa-canary").exists())


class SystemV:
    key, create = 0x0CA9A121, 0o1666

    def send(self, bit):
        self.held = LIBC.shmget(self.key, PAGE, self.create) if bit else -1

    def clear(self):
        if self.held != -1:
            LIBC.shmctl(self.held, 0, None)

    def hear(self):
        return int(LIBC.shmget(self.key, 0, 0) != -1)


class Memory:
    """How much memory the files of all file systems in memory take."""

    size = 128 << 20

    def free(self):
        found = ctypes.create_string_buffer(256)
        checked(LIBC.sysinfo(found))
        return -struct.unpack_from("q6Q", found)[6]

    def prepare(self):
        self.before = self.free()

    def send(self, bit):
        self.held = os.memfd_create("room")
        os.posix_fallocate(self.held, 0, self.size * bit + 1)

    def clear(self):
        os.close(self.held)

    def hear(self):
        return int(self.before - self.free() > self.size // 2)


class MemoryFile(Memory):
    def free(self):
        words = Path("/proc/meminfo").read_text().split()
        return -(int(words[words.index("Shmem:") + 1]) << 10)


class FreeSpace(Memory):
    """How much room the file system of the agents' folders has left."""

    size = 200 << 20

    def free(self):
        return os.statvfs(self.folder).f_bfree * os.statvfs(self.folder).f_frsize

    def send(self, bit):
        if bit:
            with open(Path(self.folder, "room"), "wb") as file:
                os.posix_fallocate(file.fileno(), 0, self.size)

    def clear(self):
        Path(self.folder, "room").unlink(missing_ok=True)


class Descriptors(Memory):
    """The kernel's count of open files."""

    size = 400

    def free(self):
        return -int(Path("/proc/sys/fs/file-nr").read_text().split()[0])

    def send(self, bit):
        self.held = [opened() for _ in range(self.size * bit)]

    def clear(self):
        for descriptor in self.held:
            os.close(descriptor)


CHANNELS = {
    name: value
    for name, value in list(globals().items())
    if isinstance(value, type) and name not in ("Residency", "Path")
}


class Leaker:
    """Obeys one order an act."""

    known = CHANNELS

    def reset(self, brief, tools, memory_dir):
        self.folder, self.channels = memory_dir, {}

    def act(self, observation, info):
        order = json.loads(observation["text"])
        name = order.pop("channel")
        if name not in self.channels:
            self.channels[name] = self.known[name]()
            self.channels[name].folder = self.folder
        do = getattr(self.channels[name], order.pop("do"), lambda: None)
        try:
            return json.dumps(do(**order))
        except (OSError, AttributeError) as error:
            return json.dumps(type(error).__name__)

"""Desk server: the program inside the sandbox that runs an episode's Python, a child a call.

It imports numpy once and forks for each call, so that a call starts warm. The harness sends its
source over a socket of its own: no file of this package is inside, and unlike a pipe a socket
cannot be opened once more through /proc. It is the first process of its sandbox, so that no child
can kill or stop it. After each call every other process is killed and /tmp is emptied: what lasts
is in the folder.

Standard library and numpy alone. Messages are JSON behind their length in four bytes.
"""

import atexit
import codecs
import contextlib
import gc
import importlib
import json
import linecache
import os
import resource
import select
import shutil
import signal
import socket
import sys
import threading
import time
import traceback
import types
from typing import Any, Final, Never

from owa_bench.sandbox.first_process import (
    REASONS,
    ProgramLimits,
    broken_limit,
    folder_fault,
    refuse_system_calls,
    set_dumpable,
)

HEAD: Final = 4  # bytes of a message's length
NAME: Final = "<code>"  # of the code in tracebacks
ERRORS: Final = 1500  # characters of standard error that are kept, the last ones
TICK_S, FOLDER_TICK_S = 0.02, 0.1  # between two looks at processes, and at the folder
ROOM: Final = 3  # a folder beyond its quota gets so many doublings of it, to be cleared in
_CHUNK = 1 << 16
_SCRATCH = ("/tmp", "/dev/shm")  # noqa: S108  the sandbox's own
_IMPORTED = (
    *("numpy", "numpy.linalg", "numpy.random", "bisect", "collections", "csv", "dataclasses"),
    *("datetime", "decimal", "difflib", "email", "fractions", "functools", "glob", "hashlib"),
    *("heapq", "html", "io", "itertools", "json", "math", "pathlib", "pprint", "random", "re"),
    *("statistics", "string", "textwrap", "typing", "unicodedata", "urllib.parse", "zoneinfo"),
)


class CallTerms:
    """What a call may use, from the JSON of the harness.

    Attributes:
        limits: Of all its processes together; the folder's quota among them.
        wall_s: Seconds.
        shown: Characters of standard output that are kept, the first ones.
    """

    def __init__(self, terms: dict[str, Any]) -> None:
        self.limits = ProgramLimits(**terms["limits"])
        self.wall_s = float(terms["wall_s"])
        self.shown = int(terms["shown"])


# --- messages -------------------------------------------------------------------------


def send(line: socket.socket, message: Any) -> None:
    """Send a message.

    Args:
        line: The connection.
        message: As JSON.
    """
    data = json.dumps(message).encode()
    line.sendall(len(data).to_bytes(HEAD, "big") + data)


def receive(line: socket.socket) -> Any:
    """Return the next message; EOFError where the connection ends."""
    return json.loads(_exactly(line, int.from_bytes(_exactly(line, HEAD), "big")))


def _exactly(line: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = line.recv(min(size - len(data), _CHUNK))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


# --- the child ------------------------------------------------------------------------


def play(code: str, streams: tuple[int, int], terms: CallTerms) -> Never:
    """Run code as the main module of this process, and end.

    Args:
        code: The source.
        streams: Descriptors of its standard output and error.
        terms: What it may use.
    """
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for place, stream in enumerate((os.open(os.devnull, os.O_RDONLY), *streams)):
            os.dup2(stream, place)
        os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        sys.stdin = open(0, closefd=False)  # noqa: SIM115  open while the code runs
        sys.stdout, sys.stderr = _writer(1), _writer(2)
        limits = terms.limits
        resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s + 1))
        resource.setrlimit(resource.RLIMIT_DATA, (limits.memory, limits.memory))
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file, limits.file))
        # Code that draws without a seed prints the same each time, as far as we can.
        sys.modules["random"].seed(0)
        sys.modules["numpy"].random.seed(0)
        status = _executed(code)
    finally:
        os._exit(status)


def _writer(descriptor: int) -> Any:
    return open(descriptor, "w", errors="backslashreplace", closefd=False)


def _executed(code: str) -> int:
    """Run code, wait for its threads and let go what it left; return its exit code."""
    errors = _writer(2)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    sys.argv, sys.path[:0] = [NAME], [os.getcwd()]
    status = 0
    try:
        linecache.cache[NAME] = (len(code), None, code.splitlines(keepends=True), NAME)
        exec(compile(code, NAME, "exec"), module.__dict__)  # noqa: S102  what this is for
    except SystemExit as stopped:
        words = stopped.code
        status = words & 0xFF if isinstance(words, int) else words is not None
        if status and not isinstance(words, int):
            errors.write(f"{words}\n")
    except BaseException as error:  # noqa: BLE001  the agent's own
        status = 1
        trace = error.__traceback__.tb_next if error.__traceback__ else None
        lines = traceback.format_exception(type(error), error, trace)
        _flush()
        errors.write("".join(lines))
        error.__traceback__ = None
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()  # noqa: SLF001  it has no public name
    module.__dict__.clear()  # files that it left open are written
    gc.collect()
    _flush()
    with contextlib.suppress(OSError, ValueError):
        errors.flush()
    return int(status)


def _flush() -> None:
    """Write what the standard streams hold, whatever the code made of them."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


# --- the server -----------------------------------------------------------------------


class Capture:
    """The two streams of a call: the head of its output, the tail of its errors.

    Args:
        shown: Characters of the head.
    """

    def __init__(self, shown: int) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders = (decoder("replace"), decoder("replace"))
        self._shown = shown
        self.head, self.more, self.tail = "", 0, ""

    def take(self, index: int, data: bytes) -> None:
        """Add what a stream gave.

        Args:
            index: 0 for output, 1 for errors.
            data: The bytes; empty at its end.
        """
        text = self._decoders[index].decode(data, final=not data)
        if index:
            self.tail = (self.tail + text)[-ERRORS:]
            return
        room = self._shown - len(self.head)
        self.head += text[:room]
        self.more += len(text[room:])


def answer(code: str, terms: CallTerms) -> dict[str, Any]:
    """Run code in a child and return how it went, as JSON.

    Args:
        code: The source.
        terms: What it may use.
    Returns: `out`, `more` (characters left out), `err`, `code`, `ended` (the limit broken, or "")
        and `last`: whether this server must be followed by another.
    """
    quota = _quota(terms.limits)
    pipes = [os.pipe(), os.pipe()]
    child = os.fork()
    if child == 0:
        play(code, (pipes[0][1], pipes[1][1]), terms)
    for _, writing in pipes:
        os.close(writing)
    readers = {reading: index for index, (reading, _) in enumerate(pipes)}
    capture = Capture(terms.shown)
    ended = _follow(child, readers, capture, terms, quota)
    exit_code, cpu_s = _end_all(child)
    while readers:  # nobody writes any more
        for reading in select.select(list(readers), [], [])[0]:
            _read(reading, readers, capture)
    by_clock = exit_code == -signal.SIGKILL and cpu_s >= terms.limits.cpu_s
    if not ended and (by_clock or exit_code == -signal.SIGXCPU):
        ended = "cpu"
    if not ended and folder_fault(quota.folder, quota):
        ended = "folder"
    return {
        "out": capture.head,
        "more": capture.more,
        "err": capture.tail,
        "code": exit_code,
        "ended": ended,
        "last": not _swept(),
    }


def _follow(
    child: int, readers: dict[int, int], capture: Capture, terms: CallTerms, quota: ProgramLimits
) -> str:
    """Read a child's streams until it ends or breaks a limit; return the limit, or ""."""
    until = time.monotonic() + terms.wall_s
    limits = terms.limits._replace(folder="")
    folder_tick = time.monotonic() + FOLDER_TICK_S
    tick = time.monotonic() + TICK_S
    ending = os.pidfd_open(child)
    try:
        while True:
            ready = select.select([ending, *readers], [], [], TICK_S)[0]
            if ready == [ending]:
                return ""
            for reading in ready:
                if reading != ending:
                    _read(reading, readers, capture)
            now = time.monotonic()
            if now >= until:
                return "wall"
            if now < tick:
                continue
            tick = now + TICK_S
            if broken := broken_limit(limits):
                return REASONS[broken]
            if now >= folder_tick:
                if folder_fault(quota.folder, quota):
                    return "folder"
                folder_tick = time.monotonic() + FOLDER_TICK_S
    finally:
        os.close(ending)


def _quota(limits: ProgramLimits) -> ProgramLimits:
    """Return the quota of a call: above the usual one where the folder breaks that already."""
    quota = limits
    for _ in range(ROOM):
        if not folder_fault(quota.folder, quota):
            break
        quota = quota._replace(
            folder_bytes=2 * quota.folder_bytes,
            folder_entries=2 * quota.folder_entries,
            folder_depth=2 * quota.folder_depth,
        )
    return quota


def _read(reading: int, readers: dict[int, int], capture: Capture) -> None:
    """Take what a stream gives; close it at its end."""
    data = os.read(reading, _CHUNK)
    capture.take(readers[reading], data)
    if not data:
        os.close(reading)
        del readers[reading]


def _end_all(child: int) -> tuple[int, float]:
    """Kill every process but this one; return the exit code and the CPU seconds of the child."""
    exit_code, cpu_s = -signal.SIGKILL, 0.0
    while True:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        try:
            pid, status, used = os.wait4(-1, 0)
        except ChildProcessError:
            return exit_code, cpu_s
        if pid == child:
            exit_code = os.waitstatus_to_exitcode(status)
            cpu_s = used.ru_utime + used.ru_stime


def _swept() -> bool:
    """Empty the places besides the folder; return whether that was possible."""
    try:
        for place in _SCRATCH:
            for entry in os.scandir(place):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    os.unlink(entry.path)
    except (OSError, RecursionError):
        return False
    return True


def _settings() -> tuple[Any, ...]:
    """Return what a child of the same user can set of this process, and the next would inherit."""
    kinds = [kind for kind in dir(resource) if kind.startswith("RLIMIT_")]
    limits = [resource.getrlimit(getattr(resource, kind)) for kind in kinds]
    return (limits, os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0))


def serve(line: socket.socket) -> None:
    """Serve calls until the connection ends.

    Args:
        line: The connection; its first message holds the terms of all calls.
    Raises: RuntimeError: It is not the first process of a sandbox, so that others would be killed.
    """
    if os.getpid() != 1:
        raise RuntimeError("the desk's server must be the first process of a sandbox")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which for a first process is to ignore it
    set_dumpable(False)  # no child reads its memory, nor what it has open
    refuse_system_calls()
    for name in [name for name in sys.modules if name.partition(".")[0] == "owa_bench"]:
        del sys.modules[name]
    sys.path += ["/packages"]
    for name in _IMPORTED:
        importlib.import_module(name)
    terms = CallTerms(receive(line))
    folder, mode, settings = os.getcwd(), os.stat(".").st_mode & 0o7777, _settings()
    gc.collect()
    gc.freeze()  # no child looks through what is imported
    send(line, "ready")
    while True:
        try:
            code = receive(line)
        except EOFError:
            return
        reply = answer(code, terms)
        os.chmod(folder, mode)
        reply["last"] = reply["last"] or _settings() != settings
        send(line, reply)
        if reply["last"]:
            return

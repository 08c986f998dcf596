"""The first process of a sandbox: starts the program, watches it, reaps orphans.

It sets limits and a system call filter on the program, ends it when it breaks a limit, and forwards
ports of the sandbox's loopback to Unix sockets. When it exits, the kernel kills whatever is left in
the PID namespace.

Standard library only: bubblewrap and Docker run it as a script, with one JSON argument
(`ProcessTerms`) and the program's command line behind it.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

WATCH_MS: Final = 100
MEMORY_EXCEEDED, PROCESSES_EXCEEDED, FOLDER_EXCEEDED = 240, 241, 242
REASONS = {
    MEMORY_EXCEEDED: "it used more memory than its limit",
    PROCESSES_EXCEEDED: "it had more processes than its limit",
    FOLDER_EXCEEDED: "its folder broke its quota on size, count or depth",
}
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_SIGNAL_BASE = 128
_CHUNK = 1 << 16


class ProgramLimits(NamedTuple):
    """Limits of a sandboxed program over all of its processes together.

    Bytes of memory, processes, CPU seconds of any one process, bytes of any one file; bytes,
    entries and depth of `folder`, the one folder that outlives it.
    """

    memory: int = 4 << 30
    processes: int = 256
    cpu_s: int = 3600
    file: int = 256 << 20
    folder: str = ""
    folder_bytes: int = 256 << 20
    folder_entries: int = 10_000
    folder_depth: int = 32


class ProcessTerms(NamedTuple):
    """The script's argument: limits, and the loopback's (port, Unix socket).

    When the other end of `lifeline`, a pipe, is closed, nobody needs the program. `private`: it
    also gets the filter of a private root (`_PRIVATE`).
    """

    limits: ProgramLimits = ProgramLimits()
    services: tuple[tuple[int, str], ...] = ()
    lifeline: int | None = None
    private: bool = False


def supervise(program: Callable[[], int], terms: ProcessTerms, close: Iterable[int] = ()) -> int:
    """Run a program in a child under limits until it ends or breaks one.

    Args:
        program: Returns the exit code; runs in a session of its own.
        terms: Limits and services.
        close: Descriptors that are the program's alone.
    Returns: Its exit code, 128 + signal if it was killed, or a key of REASONS.
    """
    set_dumpable(False)  # the program's user is the same
    listeners = [(_listen(port), path) for port, path in terms.services]
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for listener, _ in listeners:
                listener.close()
            os.setsid()
            set_dumpable(True)
            set_limits(terms.limits)
            refuse_system_calls(private=terms.private)
            status = program()
        finally:
            os._exit(status)
    for descriptor in close:
        os.close(descriptor)
    for listener, path in listeners:
        threading.Thread(target=_accept, args=(listener, path), daemon=True).start()
    return _watch(child, terms)


def set_dumpable(value: bool) -> None:
    """Say whether processes of the same user may read and write this one's memory."""
    _LIBC.prctl(_DUMPABLE, int(value), 0, 0, 0)


def set_limits(limits: ProgramLimits) -> None:
    """Set the kernel's limits on this process and those it starts."""
    for kind, most in (
        (resource.RLIMIT_DATA, limits.memory),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_FSIZE, limits.file),
        (resource.RLIMIT_NPROC, limits.processes * 8),  # threads count
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def _watch(child: int, terms: ProcessTerms) -> int:
    poll = select.poll()
    poll.register(os.pidfd_open(child), select.POLLIN)
    if terms.lifeline is not None:
        poll.register(terms.lifeline, 0)  # hang-ups alone
    while True:
        if any(flags & select.POLLHUP for _, flags in poll.poll(WATCH_MS)):
            return _SIGNAL_BASE + signal.SIGKILL
        while True:
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended == child:
                code = os.waitstatus_to_exitcode(status)
                return _SIGNAL_BASE - code if code < 0 else code
            if ended == 0:
                break
        if broken := broken_limit(terms.limits):
            return broken


def broken_limit(limits: ProgramLimits) -> int:
    """Return the key of REASONS for the limit broken now, 0 if none is."""
    sizes = list(_resident())
    if len(sizes) > limits.processes:
        return PROCESSES_EXCEEDED
    if sum(sizes) > limits.memory:
        return MEMORY_EXCEEDED
    if limits.folder and folder_fault(limits.folder, limits):
        return FOLDER_EXCEEDED
    return 0


def folder_fault(folder: str, limits: ProgramLimits) -> str:
    """Return why a folder breaks its quota.

    Args:
        folder: The folder; no link in it is followed.
        limits: Its quota.
    Returns: The reason, "" if it does not.
    """
    size = count = 0
    waiting = [(folder, 1)]
    while waiting:
        path, depth = waiting.pop()
        if depth > limits.folder_depth:
            return f"folders more than {limits.folder_depth} deep"
        try:
            with contextlib.suppress(FileNotFoundError), os.scandir(path) as entries:
                for entry in entries:
                    count += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, depth + 1))
                    elif entry.is_file(follow_symlinks=False):
                        size += entry.stat(follow_symlinks=False).st_size
                    if count > limits.folder_entries:
                        return f"more than {limits.folder_entries} files and folders"
                    if size > limits.folder_bytes:
                        return f"more than {limits.folder_bytes} bytes"
        except OSError as error:
            return f"a folder that cannot be read: {error.strerror}"
    return ""


def _resident() -> Iterator[int]:
    """Yield the resident bytes of every process of the sandbox but this one."""
    page = os.sysconf("SC_PAGE_SIZE")
    own = str(os.getpid())
    for name in os.listdir("/proc"):
        if name.isdigit() and name != own:
            with contextlib.suppress(OSError), open(f"/proc/{name}/statm") as file:
                yield int(file.read().split()[1]) * page


# --- services of the loopback ---------------------------------------------------------


def _listen(port: int) -> socket.socket:
    return socket.create_server(("127.0.0.1", port))


def _accept(listener: socket.socket, path: str) -> None:
    """Forward every connection to a Unix socket."""
    while True:
        near, _ = listener.accept()
        # A reply of two parts would wait 40 ms for the acknowledgement of the first.
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        far = socket.socket(socket.AF_UNIX)
        try:
            far.connect(path)
        except OSError:
            near.close()
            far.close()
            continue
        for pair in ((near, far), (far, near)):
            threading.Thread(target=_copy, args=pair, daemon=True).start()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """Copy one direction of a connection to its end."""
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


# --- the system call filter -----------------------------------------------------------

_NEW_NAMESPACES = 0x7E020000  # linux/sched.h, every CLONE_NEW flag
_ANY_ARCHITECTURE = (
    *(425, 426, 427),  # io_uring_setup, _enter, _register
    *(428, 429, 430, 431, 432, 433),  # open_tree, move_mount, fsopen .. fspick
    *(438, 442),  # pidfd_getfd, mount_setattr
)


class _PrivateCalls(NamedTuple):
    """Numbers of the calls that a private root refuses or answers without effect.

    `refused` read what the page cache, the file systems or the memory of the whole machine hold, or
    take from a number that the kernel counts for the user: mincore, statfs, fstatfs, ustat,
    sysinfo, syslog, inotify, fanotify. `ignored` are advice on the page cache. `madvise`, `fcntl`
    and the two last are refused by an argument.
    """

    refused: tuple[int, ...]
    ignored: tuple[int, ...]
    madvise: int
    fcntl: int
    preadv2: int
    pwritev2: int


class _Architecture(NamedTuple):
    """Numbers of the system calls refused, from the kernel's tables."""

    audit: int
    clone: int
    refused: tuple[int, ...]
    private: _PrivateCalls


_ARCHITECTURES = {
    "x86_64": _Architecture(
        audit=0xC000003E,
        clone=56,
        refused=(
            *(101, 310, 311, 312),  # ptrace, process_vm_readv, _writev, kcmp
            *(272, 308, 165, 166),  # unshare, setns, mount, umount2
            *(155, 161, 248, 249, 250),  # pivot_root, chroot, add_key .. keyctl
            *(321, 298, 323, 303, 304),  # bpf, perf_event_open, userfaultfd, handles
            *(175, 313, 176, 246, 320),  # modules, kexec
            *(167, 168, 169, 163, 179),  # swapon, swapoff, reboot, acct, quotactl
        ),
        private=_PrivateCalls(
            refused=(27, 137, 138, 136, 99, 103, 253, 294, 254, 300, 301),
            ignored=(221, 187),  # fadvise64, readahead
            madvise=28,
            fcntl=72,
            preadv2=327,
            pwritev2=328,
        ),
    ),
    "aarch64": _Architecture(
        audit=0xC00000B7,
        clone=220,
        refused=(
            *(117, 270, 271, 272),
            *(97, 268, 40, 39),
            *(41, 51, 217, 218, 219),
            *(280, 241, 282, 264, 265),
            *(105, 273, 106, 104, 294),
            *(224, 225, 142, 89, 60),
        ),
        private=_PrivateCalls(
            refused=(232, 43, 44, 179, 116, 26, 27, 262, 263),
            ignored=(223, 213),
            madvise=233,
            fcntl=25,
            preadv2=286,
            pwritev2=287,
        ),
    ),
}
_CLONE3 = 435
_X32 = 0x40000000
_ALLOW, _EPERM, _ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
_DONE, _EOPNOTSUPP = 0x00050000, 0x0005005F  # 0: done, as far as the caller sees
_PRIVATE_ANY = (440, 451)  # process_madvise, cachestat: on any architecture
_COLD, _PAGEOUT, _NOWAIT = 20, 21, 8  # linux/mman.h, linux/fs.h
_SETLEASE, _NOTIFY = 1024, 1026  # linux/fcntl.h
_LOAD, _EQUAL, _AT_LEAST, _BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER, _DUMPABLE = 38, 22, 2, 4


class _Question(NamedTuple):
    """A system call that is answered so if one of its arguments is so."""

    number: int
    argument: int
    test: int
    value: int
    answer: int


def filter_program(architecture: _Architecture, *, private: bool = False) -> bytes:
    """Return the BPF program: EPERM for what is refused, ENOSYS for clone3.

    Without clone3 the C library takes clone, whose flags a filter can read.

    Args:
        architecture: Numbers of the calls.
        private: Whether the filter of a private root is added.
    """
    lines: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, 4),  # seccomp_data.arch
        (_EQUAL, 1, 0, architecture.audit),
        (_RETURN, 0, 0, _EPERM),
        (_LOAD, 0, 0, 0),  # seccomp_data.nr
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _EPERM),
    ]
    answers = dict.fromkeys((*architecture.refused, *_ANY_ARCHITECTURE), _EPERM)
    answers[_CLONE3] = _ENOSYS
    clone = architecture.clone
    questions = [_Question(clone, 0, _BITS, _NEW_NAMESPACES, _EPERM)]
    if private:
        calls = architecture.private
        answers |= dict.fromkeys((*calls.refused, *_PRIVATE_ANY), _EPERM)
        answers |= dict.fromkeys(calls.ignored, _DONE)
        questions += _private_questions(calls)
    for number, answer in answers.items():
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, answer)]
    for asked in questions:
        lines += [
            (_EQUAL, 0, 4, asked.number),
            (_LOAD, 0, 0, 16 + 8 * asked.argument),  # the lower half
            (asked.test, 0, 1, asked.value),
            (_RETURN, 0, 0, asked.answer),
            (_LOAD, 0, 0, 0),
        ]
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *line) for line in lines)


def _private_questions(calls: _PrivateCalls) -> list[_Question]:
    """Return the calls that a private root refuses by an argument."""
    return [
        *(_Question(calls.madvise, 2, _EQUAL, n, _DONE) for n in (_COLD, _PAGEOUT)),
        *(_Question(calls.fcntl, 1, _EQUAL, n, _EPERM) for n in (_SETLEASE, _NOTIFY)),
        _Question(calls.preadv2, 5, _BITS, _NOWAIT, _EOPNOTSUPP),
        _Question(calls.pwritev2, 5, _BITS, _NOWAIT, _EOPNOTSUPP),
    ]


def has_filter() -> bool:
    """Return whether the numbers of this machine's system calls are known."""
    return os.uname().machine in _ARCHITECTURES


def refuse_system_calls(*, private: bool = False) -> None:
    """Install the filter on this process; an unknown architecture gets none.

    Args:
        private: Whether the root is private.
    """
    architecture = _ARCHITECTURES.get(os.uname().machine)
    if architecture is None:
        return
    instructions = filter_program(architecture, private=private)
    program = ctypes.create_string_buffer(instructions)
    count = len(instructions) // 8
    head = struct.pack("HxxxxxxP", count, ctypes.addressof(program))
    _LIBC.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    if _LIBC.prctl(_SET_SECCOMP, _FILTER, head, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the system call filter cannot be set")


def main(arguments: list[str]) -> int:
    """Supervise the command line behind the JSON argument; return its exit code."""
    limits, services = json.loads(arguments[1])
    command = arguments[2:]

    def program() -> int:
        try:
            os.execvp(command[0], command)  # noqa: S606  the program to be supervised
        except OSError as error:
            sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127

    return supervise(program, ProcessTerms(ProgramLimits(*limits), services, lifeline=0))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv))

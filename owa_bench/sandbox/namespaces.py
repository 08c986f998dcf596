"""Linux namespaces entered by a forked process itself: own root, processes, network.

`separate` unshares the namespaces, `enter` builds the root of a process forked after that and gives
up every capability. Needs Linux 5.12 and user namespaces, no privilege. Standard library only; run
as a script it tries both and prints why they fail.
"""

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

NOBODY: Final = 65534
TMP_BYTES: Final = 64 << 20
SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SCRATCH = ("/new/tmp", "/new/dev/shm")
DEVICES: Final = ("null", "zero", "full", "random", "urandom")
_LINKS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}
# linux/sched.h: mount, cgroup, UTS, IPC, user, PID, network
_MOUNTS, _GROUPS, _USER = 0x00020000, 0x02000000, 0x10000000
_NEW_NAMESPACES = _MOUNTS | _GROUPS | 0x04000000 | 0x08000000 | _USER | 0x20000000 | 0x40000000
# linux/sched.h: the rest of clone3's flags and its arguments
_CLEAR_NUMBER, _SET_NUMBER, _INTO_GROUP = 0x00200000, 0x01000000, 0x200000000
_SYS_CLONE3 = 435  # the same on every architecture
# linux/mount.h
_NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_READ_ONLY, _NO_ATIME = 1, 1024
_DETACH, _AT_FDCWD, _AT_RECURSIVE = 2, -100, 0x8000
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_SYS_MOUNT_SETATTR = 442  # the same on every architecture
# linux/prctl.h
_PDEATHSIG, _CAPBSET_DROP, _NO_NEW_PRIVS, _TID_ADDRESS = 1, 24, 38, 40
_CAPABILITY_VERSION = 0x20080522
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1

# Opened once: to open it takes longer than most of the calls.
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
# Calls of this one keep Python's lock: a process is forked while it is held.
_LOCKED_LIBC: Final = ctypes.PyDLL(None, use_errno=True)


class SandboxView(NamedTuple):
    """Everything a sandboxed process sees besides its own /tmp, /proc and /dev.

    `read_only` and `writable` are (path of this machine, path inside); `hidden` are folders inside
    that are empty; `services` are (port of the sandbox's loopback, Unix socket of this machine);
    `environment` is the whole of it. `layers` are folders of a root image (`root_image`), the
    uppermost first: with them every read-only path comes from an overlay of the sandbox's own over
    them, and nowhere else.
    """

    read_only: tuple[tuple[str, str], ...] = ()
    writable: tuple[tuple[str, str], ...] = ()
    hidden: tuple[str, ...] = ()
    services: tuple[tuple[int, str], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    folder: str = "/tmp"  # noqa: S108  the sandbox's own
    layers: tuple[str, ...] = ()


def service_socket(port: int) -> str:
    """Return where the Unix socket behind a port of the loopback lies inside."""
    return f"/run/{port}.sock"


def separate() -> None:
    """Unshare every namespace; the next process forked is the first of the new ones.

    Raises: OSError: The machine forbids it.
    """
    _unshare(_NEW_NAMESPACES, NOBODY, NOBODY)


def fork_separated(group: str | None) -> int | None:
    """Fork the first process of new namespaces in one call, right into a control group.

    To unshare first takes a process more, and to move into a group the kernel waits for all
    processors. The call passes over the handlers that C libraries have for a fork, which a process
    of one thread does not need; what the new process forks in turn has them.

    Args:
        group: Folder of the control group, None for the one of this process.
    Returns: Its number; 0 in the new process, which calls `take_separated` next; None where the
        machine or this process cannot, and `separate` may.
    """
    if len(os.listdir("/proc/self/task")) > 1:
        return None
    address = ctypes.c_void_p()
    if _LIBC.prctl(_TID_ADDRESS, ctypes.byref(address), 0, 0, 0) or not address.value:
        return None
    flags = _NEW_NAMESPACES & ~_GROUPS | _SET_NUMBER | _CLEAR_NUMBER
    folder = 0
    if group is not None:
        folder = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
        flags |= _INTO_GROUP
    # flags, pidfd, number in the new process, in this one, signal at its end, stack and its
    # size, thread's storage, wanted numbers, how many, group
    terms = struct.pack("11Q", flags, 0, address.value, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, folder)
    ctypes.pythonapi.PyOS_BeforeFork()
    pid: int = _LOCKED_LIBC.syscall(ctypes.c_long(_SYS_CLONE3), terms, ctypes.c_size_t(len(terms)))
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    if folder:
        os.close(folder)
    return None if pid < 0 else pid


def take_separated(user: int, group: int) -> None:
    """Become nobody in the namespaces of `fork_separated`, and hide the control groups outside.

    Args:
        user: Effective user of the process that forked this one.
        group: Its group.
    Raises: OSError: The machine forbids it.
    """
    _map_user(user, group, NOBODY, NOBODY)
    _call("unshare", _GROUPS)


def separate_mounts() -> None:
    """Unshare user and mounts alone; user and group keep their numbers.

    Raises: OSError: The machine forbids it.
    """
    _unshare(_USER | _MOUNTS, os.geteuid(), os.getegid())
    _mount("none", "/", "", _REC | _PRIVATE)


def join_mounts(pid: int) -> None:
    """Enter the user and mount namespaces of a process of `separate_mounts`.

    Args:
        pid: The process.
    Raises: OSError: It has ended.
    """
    opened = [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in ("user", "mnt")]
    for descriptor in opened:
        _call("setns", descriptor, 0)
        os.close(descriptor)


def _unshare(flags: int, user_inside: int, group_inside: int) -> None:
    """Unshare namespaces; map this user and group to numbers inside."""
    user, group = os.geteuid(), os.getegid()
    _call("unshare", flags)
    _map_user(user, group, user_inside, group_inside)


def _map_user(user: int, group: int, user_inside: int, group_inside: int) -> None:
    """Map a user and a group outside to numbers inside a new user namespace."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user_inside} {user} 1"),
        ("gid_map", f"{group_inside} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def enter(view: SandboxView) -> None:
    """Take the view as root, without any capability; for the first process.

    Raises: OSError: Naming the path that cannot be mounted.
    """
    socket.sethostname("sandbox")
    _raise_loopback()
    _build_root(view)
    os.chdir(view.folder)
    give_up_capabilities()


def die_with_parent() -> None:
    """Be killed when the process that forked this one dies."""
    _call("prctl", _PDEATHSIG, 9, 0, 0, 0)


def give_up_capabilities() -> None:
    """Drop every capability for good, and the right to gain any by a program."""
    for capability in range(64):
        if _LIBC.prctl(_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    _call("capset", header, bytes(24))
    _call("prctl", _NO_NEW_PRIVS, 1, 0, 0, 0)


# --- the root -------------------------------------------------------------------------


def _build_root(view: SandboxView) -> None:
    """Pivot twice: to a root from which the old one is bound, then to the new one."""
    _mount("none", "/", "", _REC | _PRIVATE)
    _mount("tmpfs", "/tmp", "tmpfs", _NOSUID | _NODEV)  # noqa: S108  any folder does
    os.chdir("/tmp")  # noqa: S108  the same
    os.mkdir("old")
    os.mkdir("new")
    _call("pivot_root", b".", b"old")
    os.chdir("/")
    _mount("tmpfs", "/new", "tmpfs", _NOSUID | _NODEV, "size=1m,mode=755")
    _make_folders()
    services = [(path, service_socket(port)) for port, path in view.services]
    devices = [(f"/dev/{name}", f"/dev/{name}") for name in DEVICES]
    for source, target in (*view.writable, *services, *devices):
        _make_place(f"/old{source}", target)
    shared = "/old"
    if view.layers:
        os.mkdir(shared := "/shared")
        mount_overlay([f"/old{layer}" for layer in view.layers], shared)
    for source, target in view.read_only:
        _make_place(f"{shared}{source}", target)
        _bind(f"{shared}{source}", target)
    for path in view.hidden:
        if os.path.isdir(f"/new{path}"):
            _mount("tmpfs", f"/new{path}", "tmpfs", _NOSUID | _NODEV, "size=4k")
    # Of the whole machine's counters and locks a private root sees none.
    only = "subset=pid" if view.layers else ""
    _mount("proc", "/new/proc", "proc", _NOSUID | _NODEV | _NOEXEC, only)
    # All of /proc too: the machine's root could else write to /proc/sys from inside.
    _set_attributes("/new", _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, 0, _AT_RECURSIVE)
    for scratch in _SCRATCH:
        _set_attributes(scratch, 0, _ATTR_RDONLY, 0)
    for source, target in view.writable:
        _bind(f"/old{source}", target)
    # All sandboxes have these inodes in common: read-only, so that no owner, mode or
    # time of them can be set. Devices and sockets take writes and connections still.
    for source, target in (*services, *devices):
        _bind(f"/old{source}", target)
        _set_attributes(f"/new{target}", _ATTR_RDONLY | _ATTR_NOSUID, 0, 0)
    os.chdir("/new")
    _call("pivot_root", b".", b".")  # the old root now lies on top of the new one
    unmount(".")
    os.chdir("/")


def _make_folders() -> None:
    """Make the new root's own folders and links."""
    for name in SYSTEM:
        if os.path.islink(f"/old{name}"):
            os.symlink(os.readlink(f"/old{name}"), f"/new{name}")
    for name in ("proc", "dev", "dev/shm", "run", "tmp"):
        os.mkdir(f"/new/{name}")
    for name, place in _LINKS.items():
        os.symlink(f"/proc/self/fd{place}", f"/new/dev/{name}")
    for scratch in _SCRATCH:
        options = f"size={TMP_BYTES},mode=1777"
        _mount("tmpfs", scratch, "tmpfs", _NOSUID | _NODEV, options)


def _make_place(source: str, target: str) -> None:
    """Make the folder or empty file that a path is bound to, if it is not there."""
    place = f"/new{target}"
    if os.path.isdir(source):
        os.makedirs(place, exist_ok=True)
    elif not os.path.lexists(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))


def _bind(source: str, target: str) -> None:
    _mount(source, f"/new{target}", "", _BIND | _REC)


def mount_overlay(layers: Sequence[str], place: str) -> None:
    """Mount a read-only overlay of two layers or more: its inodes are its own.

    Args:
        layers: Folders, the uppermost first.
        place: The mount point.
    Raises: OSError: The kernel cannot, or forbids it.
    """
    options = f"lowerdir={':'.join(layers)},userxattr"
    _mount("overlay", place, "overlay", _READ_ONLY | _NOSUID | _NODEV, options)


def mount_memory(place: str, size: int) -> None:
    """Mount a file system in memory.

    Args:
        place: The mount point.
        size: Most bytes.
    """
    _mount("tmpfs", place, "tmpfs", _NOSUID | _NODEV | _NO_ATIME, f"size={size}")


def unmount(place: str) -> None:
    """Take a mount away; it lives on for who has files of it open."""
    _call("umount2", os.fsencode(place), _DETACH)


def mount_over(source: str, place: str) -> None:
    """Show a file or folder at another one's place.

    Args:
        source: The file or folder.
        place: The other one.
    """
    _mount(source, place, "", _BIND)


def _set_attributes(path: str, given: int, taken: int, flags: int) -> None:
    """Give and take attributes of a mount, or with a flag of all below it too."""
    attributes = struct.pack("4Q", given, taken, 0, 0)
    _call(
        "syscall",
        *(ctypes.c_long(_SYS_MOUNT_SETATTR), _AT_FDCWD, path.encode(), flags),
        *(attributes, ctypes.c_size_t(len(attributes))),
    )


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    texts = (source.encode(), os.fsencode(target), kind.encode() or None)
    _call("mount", *texts, ctypes.c_ulong(flags), options.encode() or None)


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", b"lo", 0)
        answer = fcntl.ioctl(control, _SIOCGIFFLAGS, request)
        flags = struct.unpack("16sH14x", answer)[1] | _IFF_UP
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags))


def _call(name: str, *arguments: Any) -> None:
    """Call a function of the C library; OSError with its errno if it fails."""
    if getattr(_LIBC, name)(*arguments) == -1:
        shown = [os.fsdecode(a) for a in arguments if isinstance(a, bytes)][:2]
        number = ctypes.get_errno()
        words = " ".join(text for text in shown if text.isprintable())
        raise OSError(number, f"{name} {words}: {os.strerror(number)}")


def main() -> int:
    """Try to enter an empty view; print why that fails. Return the exit code."""
    try:
        separate()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                enter(SandboxView())
                status = 0
            except OSError as error:
                sys.stdout.write(str(error.strerror or error))
                sys.stdout.flush()
            finally:
                os._exit(status)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except (OSError, AttributeError) as error:
        sys.stdout.write(str(error))
        return 1


if __name__ == "__main__":
    raise SystemExit(main())

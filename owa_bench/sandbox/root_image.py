"""Root images: a copy in memory of what sandboxed agents share of this machine.

Two sandboxes that see the same files of a disk can pass bits through the kernel: which pages of
them lie in the page cache, who holds a lock on one. A file system in memory is always resident, and
each sandbox sees it through an overlay of its own, with inodes and locks of its own: a private
root. `image_keeper` holds the copy.
"""

import atexit
import contextlib
import functools
import itertools
import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import owa_bench
from owa_bench.errors import InfrastructureFailure
from owa_bench.sandbox import first_process, views
from owa_bench.sandbox.image_keeper import CopyOrder

MOST_BYTES: Final = 8 << 30  # of an image, and at most half of the machine's memory
_LARGE = 32 << 20  # bytes of a folder of /usr that is no program's or library's usual
_SYSTEM = "system"
# Nothing there is run or linked.
_NEVER = ("include", "src", "games", "share/doc", "share/man", "share/info")
_BELOW = ("", "lib", "share", "local", "local/lib", "local/share", "libexec")
_USUAL = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "share", "local")
# Threads may not change namespaces, and importing the package itself starts some.
_PROGRAM = (
    "import sys, types; package = types.ModuleType('owa_bench'); "
    "package.__path__ = [sys.argv.pop(1)]; sys.modules['owa_bench'] = package; "
    "from owa_bench.sandbox.image_keeper import main; sys.exit(main(sys.argv))"
)
_PACKAGE = os.path.dirname(owa_bench.__file__)
_KEEPER = (sys.executable, "-I", "-S", "-c", _PROGRAM, _PACKAGE)


class ImageReference(NamedTuple):
    """A root image that processes of this user can join: its keeper, and its layers."""

    keeper: int
    layers: tuple[str, ...]

    def command(self, command: list[str]) -> list[str]:
        """Return a command line that runs another one where the image is seen.

        Args:
            command: Its program, as an absolute path, and its arguments.
        """
        return [*_KEEPER, "join", str(self.keeper), *command]


class ImageContent(NamedTuple):
    """What an image holds: paths, less some below them; bytes in all."""

    paths: tuple[str, ...]
    left_out: tuple[str, ...]
    size: int


@functools.cache
def system_content() -> ImageContent:
    """Return what a private root holds of this machine: programs, libraries, Python.

    Of /usr without headers, sources, manuals, and without what else is large there and stands in no
    usual place; of Python without its own tests.
    """
    sources = {source for source, _ in views.system_view().read_only}
    paths = tuple(path for path in sorted(sources) if not _is_inside(path, sources))
    left_out = {f"/usr/{name}" for name in _NEVER}
    left_out |= {*_unused_of_python(), *views.answer_keys()}
    left_out |= {path for path in _candidates() if _size(path, left_out) > _LARGE}
    size = sum(_size(path, left_out) for path in paths)
    return ImageContent(paths, tuple(sorted(left_out)), size)


def _is_inside(path: str, others: Iterable[str]) -> bool:
    return any(Path(path).is_relative_to(each) for each in others if each != path)


def _candidates() -> Iterator[str]:
    """Yield the folders of /usr that stay only where they are small."""
    for below in _BELOW:
        folder = Path("/usr", below)
        for path in folder.iterdir() if folder.is_dir() else ():
            usual = path.name in _USUAL or path.name.startswith("python")
            known = usual or str(path.relative_to("/usr")) in _BELOW
            libraries = "-linux-" in path.name  # of an architecture
            if path.is_dir() and not (path.is_symlink() or known or libraries):
                yield str(path)


def _unused_of_python() -> Iterator[str]:
    """Yield what this Python's own folder holds besides what programs import."""
    for name in ("base_prefix", "prefix"):
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        library = os.path.realpath(os.path.join(getattr(sys, name), "lib", version))
        for part in ("test", "idlelib", "site-packages"):
            path = os.path.join(library, part)
            if path not in map(os.path.realpath, sys.path):
                yield path
        yield from map(str, Path(library).glob("config-*"))


def _size(path: str, left_out: Collection[str]) -> int:
    """Return the bytes of a tree's files, each once, less what is left out."""
    sizes: dict[tuple[int, int], int] = {}
    waiting = [path]
    while waiting:
        place = waiting.pop()
        with contextlib.suppress(OSError):
            found = os.lstat(place)
            if not stat.S_ISDIR(found.st_mode):
                sizes[found.st_dev, found.st_ino] = found.st_blocks * 512
                continue
            inside = (os.path.join(place, name) for name in os.listdir(place))
            waiting += (each for each in inside if each not in left_out)
    return sum(sizes.values())


def most_bytes() -> int:
    """Return the most that an image may hold on this machine."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(MOST_BYTES, memory // 2)


@functools.cache
def private_root_fault() -> str:
    """Return why sandboxes cannot have private roots here, "" if they can."""
    if fault := views.namespaces_fault():
        return fault
    if not first_process.has_filter():
        return f"no filter of system calls is known for {os.uname().machine}"
    try:
        with contextlib.closing(_Keeper(1 << 20)):
            pass
    except InfrastructureFailure as failure:
        return str(failure)
    size, most = system_content().size, most_bytes()
    if size <= most:
        return ""
    return f"the shared paths hold {size >> 20} MiB, more than {most >> 20} of memory"


class _Keeper:
    """The harness' end of a keeper process."""

    def __init__(self, size: int) -> None:
        self._folder = tempfile.mkdtemp(prefix="owa-image-")
        self._lock = threading.Lock()
        self._process = subprocess.Popen(  # noqa: S603  our own module
            [*_KEEPER, "keep", self._folder, str(size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={},
        )
        self.pid = self._process.pid
        try:
            self._hear()
        except InfrastructureFailure:
            self.close()
            raise

    def make_layer(self, order: CopyOrder) -> str:
        """Copy paths into a layer; return the folder.

        Args:
            order: What to copy.
        Raises: InfrastructureFailure: It does not fit, or the keeper has died.
        """
        with self._lock:
            if self._process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    self._process.stdin.write(json.dumps(order).encode() + b"\n")
                    self._process.stdin.flush()
            self._hear()
        return os.path.join(self._folder, order.layer)

    def close(self) -> None:
        """End the keeper; the kernel frees the image when who joined it has ended."""
        self._process.communicate()

    def _hear(self) -> None:
        line = self._process.stdout.readline() if self._process.stdout else b""
        fault = json.loads(line) if line else "its keeper has ended"
        if fault:
            raise InfrastructureFailure(f"no image of the root can be made: {fault}")


_NUMBERS = itertools.count()


@functools.cache
def _system_layer() -> tuple[_Keeper, str]:
    """Return this process' keeper and its system layer, which are made once."""
    content = system_content()
    keeper = _Keeper(most_bytes())
    atexit.register(keeper.close)
    order = CopyOrder(_SYSTEM, content.paths, content.left_out, shown=True)
    return keeper, keeper.make_layer(order)


def make_image(code: Iterable[str], hidden: Iterable[str]) -> ImageReference:
    """Return a root image with what sandboxes share and the code of some agents.

    The system's part is made once in a process, and held to its end.

    Args:
        code: Files and folders of agents, copied anew each time.
        hidden: Folders that are no code, wherever they lie.
    Raises: InfrastructureFailure: It does not fit into memory, or cannot be made.
    """
    keeper, system = _system_layer()
    content = system_content()
    paths = tuple(p for p in dict.fromkeys(code) if not _holds(content, p))
    left_out = (*content.paths, *map(os.path.realpath, hidden))
    name = f"code-{next(_NUMBERS)}"
    order = CopyOrder(name, paths, left_out, shown=False)
    return ImageReference(keeper.pid, (keeper.make_layer(order), system))


def _holds(content: ImageContent, path: str) -> bool:
    """Return whether the system's layer holds a path."""
    place = Path(path)
    inside = any(place.is_relative_to(root) for root in content.paths)
    return inside and not any(place.is_relative_to(gone) for gone in content.left_out)

"""Python for one episode: code in, text out, files of one folder in between.

The code runs in a sandbox that stays open between calls, a child process a call (`desk_server`).
"""

import contextlib
import importlib.util
import inspect
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from owa_bench.errors import FieldError, InfrastructureFailure
from owa_bench.sandbox import backends, desk_server, first_process
from owa_bench.sandbox import job as binds
from owa_bench.sandbox.first_process import ProgramLimits, folder_fault
from owa_bench.sandbox.job import MEBIBYTE, Bind, Limits, Result, SandboxJob
from owa_bench.sandbox.long_lived import SandboxProcess
from owa_bench.sandbox.supervision import POLL_S

BACKEND: Final = "bubblewrap"
# Of one call; `output` is the characters of standard output that are shown.
LIMITS: Final = Limits(
    wall_s=30,
    cpu_s=30,
    memory=1024 * MEBIBYTE,
    processes=16,
    output=6000,
    file=32 * MEBIBYTE,
    disk=128 * MEBIBYTE,
    entries=5000,
)
_DEPTH = 8  # folders inside one another
_START_S, _GRACE_S = 30.0, 10.0  # for a server to start, and to end a call that ran too long
_IDLE_S = 4 * 3600.0  # a server that nobody uses ends; the next call starts another
_SOCKET = "/run/desk.sock"
PACKAGES: Final = "/packages"
# Addresses are the same in every server, and so is the order of sets that follows from them.
_BOOT = """
import ctypes, json, os, socket, sys, types
_, place, *again = sys.argv
if not again and ctypes.CDLL(None).personality(0x40000) != -1:
    os.execv(sys.executable, [*sys.orig_argv, "again"])
line = socket.socket(socket.AF_UNIX)
line.connect(place)
size = int.from_bytes(line.recv(4, socket.MSG_WAITALL), "big")
for name, text in json.loads(line.recv(size, socket.MSG_WAITALL)):
    sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), vars(sys.modules[name]))
sys.modules["owa_bench.sandbox.desk_server"].serve(line)
"""
ENVIRONMENT: Final = {
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUTF8": "1",
    "TZ": "UTC",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
_ENDS = {
    "wall": "it ran longer than {wall_s:g} s",
    "cpu": "it used more than {cpu_s} s of processor time",
    "folder": "the folder holds more than {disk} bytes or {entries} files, or folders too deep;"
    " delete some",
}


class DeskOutput(NamedTuple):
    """What a call printed, and how it ended.

    Attributes:
        text: Standard output, then "stderr: " and the end of standard error, then how it ended.
        ok: Whether the code ended by itself with the exit code 0.
        timed: Whether a limit on time ended it, so that a replay may differ.
        wall_s: Seconds.
    """

    text: str
    ok: bool
    timed: bool
    wall_s: float


class PythonDesk:
    """Runs code of one episode in its folder; nothing starts before the first call.

    Memory of a call is gone at its end: what lasts are files. Code has numpy and the standard
    library, sees the folder as /work and has no network. The sandbox ends with the thread that
    started it, and the next call starts another.

    Args:
        folder: The only one that code can write to.
        limits: Of each call.
        backend: One that isolates: bubblewrap or docker.
    """

    def __init__(self, folder: Path, limits: Limits = LIMITS, *, backend: str = BACKEND) -> None:
        if backend == backends.ProcessSandbox.name:
            raise FieldError("backend", backend, "must isolate: bubblewrap or docker")
        self._folder, self._limits, self._backend = folder, limits, backend
        self._process: SandboxProcess | None = None
        self._line: socket.socket | None = None

    def run(self, code: str) -> DeskOutput:
        """Run code and return what it printed.

        Args:
            code: Python source.
        Raises: InfrastructureFailure: No sandbox could be started.
        """
        began = time.perf_counter()
        texts = []
        if self._process is None or not self._process.alive:
            self.close()
            texts.append(self._make_room())
            self._open()
        try:
            reply = self._ask(code)
        except (OSError, EOFError) as error:
            ended = self._end()
            ok, timed = False, isinstance(error, TimeoutError) or bool(ended and ended.timed)
            texts += [_death(ended, timed=timed), self._make_room()]
        else:
            ok = not reply["ended"] and not reply["code"]
            timed = reply["ended"] in ("wall", "cpu")
            texts += _texts(reply, self._limits)
            if reply["last"]:
                self._end()
            if reply["ended"] == "folder":
                texts.append(self._make_room())
        text = "\n".join(text for text in texts if text)
        return DeskOutput(text, ok, timed, time.perf_counter() - began)

    def close(self) -> None:
        """End the sandbox."""
        self._end()

    def _ask(self, code: str) -> dict[str, Any]:
        assert self._line is not None and self._process is not None  # noqa: S101, PT018  open
        _ = self._process.stdin  # a use, from which its idle time counts
        desk_server.send(self._line, code)
        reply: dict[str, Any] = desk_server.receive(self._line)
        return reply

    def _end(self) -> Result | None:
        process, line = self._process, self._line
        self._process = self._line = None
        if line is not None:
            line.close()
        return None if process is None else process.close()

    def _open(self) -> None:
        """Start a sandbox and connect to its server."""
        sandbox = backends.get(self._backend)
        with _listener() as (listening, place):
            self._process = sandbox.open(self._job(place))
            until = time.monotonic() + _START_S
            listening.settimeout(POLL_S)
            while self._line is None and self._process.alive and time.monotonic() < until:
                with contextlib.suppress(TimeoutError):
                    self._line, _ = listening.accept()
        try:
            if self._line is None:
                raise EOFError
            self._line.settimeout(_START_S)
            desk_server.send(self._line, _sources())
            desk_server.send(self._line, self._terms())
            desk_server.receive(self._line)
        except (OSError, EOFError) as error:
            ended = self._end()
            said = ended.output.decode(errors="replace")[-500:] if ended else ""
            raise InfrastructureFailure(f"the Python desk does not start: {said}") from error
        self._line.settimeout(self._limits.wall_s + _GRACE_S)

    def _terms(self) -> dict[str, Any]:
        limits = self._limits
        program = ProgramLimits(
            memory=limits.memory,
            processes=limits.processes,
            cpu_s=limits.cpu_s,
            file=limits.file,
            folder=backends.WORK,
            folder_bytes=limits.disk,
            folder_entries=limits.entries,
            folder_depth=_DEPTH,
        )
        return {"limits": program._asdict(), "wall_s": limits.wall_s, "shown": limits.output}

    def _job(self, place: Path) -> SandboxJob:
        """Return the server's job: limits beyond its own, should a call stop it from looking."""
        limits = self._limits
        return SandboxJob(
            argv=(str(binds.interpreter()), "-s", "-S", "-P", "-c", _BOOT, _SOCKET),
            work=self._folder,
            env=ENVIRONMENT,
            binds=(*binds.python(), *numpy_binds(), Bind(source=place, target=_SOCKET)),
            hidden=binds.python_hidden(),
            first=True,
            limits=Limits(
                wall_s=_IDLE_S,
                cpu_s=int(_IDLE_S),
                memory=2 * limits.memory,
                processes=2 * limits.processes,
                file=limits.file,
                disk=limits.disk << desk_server.ROOM,
                entries=limits.entries << desk_server.ROOM,
            ),
        )

    def _make_room(self) -> str:
        """Empty a folder in which no sandbox could stay open; return the words on it."""
        limits = self._limits
        quota = ProgramLimits(
            folder_bytes=limits.disk << desk_server.ROOM,
            folder_entries=limits.entries << desk_server.ROOM,
            folder_depth=_DEPTH << desk_server.ROOM,
        )
        fault = folder_fault(os.fspath(self._folder), quota)
        if not fault:
            return ""
        self._end()
        for line in (
            ("chmod", "-R", "u+rwX", self._folder),
            ("find", self._folder, "-mindepth", "1", "-delete"),  # of any depth
        ):
            subprocess.run(line, check=False)  # noqa: S603  a folder of this episode
        return f"the folder held {fault}: it was emptied"


def _texts(reply: dict[str, Any], limits: Limits) -> list[str]:
    """Return the parts of a call's text."""
    ended, code = reply["ended"], reply["code"]
    texts = [reply["out"].rstrip("\n")]
    if reply["more"]:
        texts.append(f"[{reply['more']} more characters]")
    if errors := reply["err"].rstrip("\n"):
        texts.append(f"stderr: {errors}")
    if ended:
        numbers = {name: getattr(limits, name) for name in ("wall_s", "cpu_s", "disk", "entries")}
        texts.append(f"ended: {_ENDS.get(ended, ended).format(**numbers)}")
    elif code < 0:
        texts.append(f"ended: signal {-code}")
    elif code:
        texts.append(f"exit code {code}")
    return texts


def _death(ended: Result | None, *, timed: bool) -> str:
    """Return the words on a server that a call ended."""
    limit = "time" if timed else ended and ended.limit
    reason = f"a limit on {limit} was broken" if limit else "the interpreter was killed"
    return f"ended: {reason}; nothing it printed is kept; the next call starts a new one"


def numpy_binds() -> tuple[Bind, ...]:
    """Return binds of numpy and the libraries of its wheel."""
    found = importlib.util.find_spec("numpy")
    assert found is not None and found.origin is not None  # noqa: S101, PT018  a dependency
    folder = Path(found.origin).parent
    folders = (folder, folder.with_name("numpy.libs"))
    return tuple(
        Bind(source=place.resolve(), target=f"{PACKAGES}/{place.name}")
        for place in folders
        if place.is_dir()
    )


def _sources() -> list[tuple[str, str]]:
    """Return the modules of the server by name, in the order in which they are run."""
    modules = (first_process, desk_server)
    texts = [(each.__name__, inspect.getsource(each)) for each in modules]
    return [("owa_bench", ""), ("owa_bench.sandbox", ""), *texts]


@contextlib.contextmanager
def _listener() -> Iterator[tuple[socket.socket, Path]]:
    """Yield a socket that one server connects to, and its place; both are gone then."""
    with tempfile.TemporaryDirectory(prefix="owa-") as folder, socket.socket(socket.AF_UNIX) as own:
        place = Path(folder, "s")
        own.bind(os.fspath(place))
        place.chmod(0o666)
        Path(folder).chmod(0o755)  # in a container the server is nobody
        own.listen(1)
        yield own, place

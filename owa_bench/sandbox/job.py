"""Jobs for a sandbox: command, limits, visible files, result; and binds of programs."""

import shutil
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from owa_bench.errors import FieldError, MissingPartError

LimitHit = Literal["wall", "cpu", "memory", "processes", "output", "file", "disk"]
MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a job over all of its processes together.

    Seconds of wall time (of a job that is open: since its last use), seconds of CPU time of any one
    process, bytes of resident memory, processes alive at once, bytes of output, bytes of any one
    file, and of the work directory with what the caller put there: bytes, files and folders.
    """

    wall_s: float = 10.0
    cpu_s: int = 10
    memory: int = 512 * MEBIBYTE
    processes: int = 16
    output: int = MEBIBYTE
    file: int = 64 * MEBIBYTE
    disk: int = 512 * MEBIBYTE
    entries: int = 20_000

    def __post_init__(self) -> None:
        """Refuse limits that nothing can run under."""
        for name, value in asdict(self).items():
            if value <= 0:
                raise FieldError(name, value, "must be above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """A path of this machine that the job sees, at `target` (the same if empty)."""

    source: Path
    target: str = ""
    writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxJob:
    """A command with its limits and everything it may see.

    `binds` are all the files it gets besides `work`, its writable directory; `hidden` are
    directories inside the binds that it sees empty. `env` is its whole environment: nothing is
    inherited. `first`: its program is the first process of its sandbox and has to reap orphans; so
    no other process holds its pipes, and what it starts can neither kill nor stop it.
    """

    argv: tuple[str, ...]
    work: Path
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)
    binds: tuple[Bind, ...] = ()
    hidden: tuple[str, ...] = ()
    limits: Limits = Limits()
    first: bool = False

    def __post_init__(self) -> None:
        """Refuse an empty command."""
        if not self.argv:
            raise FieldError("argv", self.argv, "must name a program")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The end of a job: exit code (128 + signal if killed), output, time, limit hit.

    `output` is standard output and error in the order they were written.
    """

    exit_code: int
    output: bytes
    wall_s: float
    cpu_s: float
    limit: LimitHit | None = None

    @property
    def timed(self) -> bool:
        """Whether a limit on time ended the job, so that a replay may differ."""
        return self.limit in ("wall", "cpu")


# --- the fewest files a program needs -------------------------------------------------

_LIBRARY_FOLDERS = ("/lib64", "/usr/lib64")


def libraries() -> tuple[Bind, ...]:
    """Return binds of the dynamic loader and the system's shared libraries."""
    arch = sysconfig.get_config_var("MULTIARCH") or ""
    folders = [f"{top}/{arch}" for top in ("/lib", "/usr/lib") if arch]
    places = [_place(path) for path in (*folders, *_LIBRARY_FOLDERS)]
    return tuple(
        Bind(source=Path(place).resolve(), target=place)
        for place in dict.fromkeys(places)
        if Path(place).is_dir()
    )


def _place(path: str) -> str:
    """Return a path with a link at its top resolved: a sandbox has that link too."""
    parts = Path(path).parts
    return str(Path(*parts[:2]).resolve().joinpath(*parts[2:]))


def programs(*names: str) -> tuple[Bind, ...]:
    """Return binds of `names` at their places in PATH, with the libraries.

    With `sh` among them /bin/sh is there too, for scripts and `shell=True`.
    """
    binds = []
    for name in names:
        place = shutil.which(name)
        if place is None:
            raise MissingPartError(f"the program `{name}`", f"apt-get install {name}")
        binds.append(Bind(source=Path(place).resolve(), target=_place(place)))
    return (*libraries(), *binds)


def interpreter() -> Path:
    """Return the Python program that `python()` binds, outside any environment."""
    return Path(sys.executable).resolve()


def python() -> tuple[Bind, ...]:
    """Return binds of the interpreter and its standard library, no site-packages."""
    program = interpreter()
    standard = Path(sysconfig.get_path("stdlib")).resolve()
    shared = sysconfig.get_config_var("INSTSONAME") or ""
    folder = Path(sysconfig.get_config_var("LIBDIR") or "/nowhere")
    binds = [Bind(source=program), Bind(source=standard)]
    if ".so" in shared and (folder / shared).exists():
        binds.append(Bind(source=(folder / shared).resolve(), target=str(folder / shared)))
    return (*libraries(), *binds)


def python_commands() -> tuple[Bind, ...]:
    """Return binds that make `python()` answer to `python` and `python3`.

    They lie beside the interpreter, where it finds its library: PATH must hold that folder,
    `interpreter().parent`. No machine needs programs of these names.
    """
    program = interpreter()
    names = {"python", "python3"} - {program.name}
    return tuple(
        Bind(source=program, target=str(program.with_name(name))) for name in sorted(names)
    )


def python_hidden() -> tuple[str, ...]:
    """Return the directories inside `python()` that a job must see empty."""
    standard = Path(sysconfig.get_path("stdlib")).resolve()
    names = ("site-packages", "dist-packages")
    return tuple(str(standard / name) for name in names if (standard / name).is_dir())

"""Views of a sandboxed program: this machine's system and interpreter, read-only.

The same view is entered by a forked process (`namespaces`), or given to bubblewrap or Docker on
their command lines, with `first_process` as the first process of each.
"""

import csv
import functools
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import owa_bench
from owa_bench.errors import MissingPartError
from owa_bench.sandbox import first_process, namespaces
from owa_bench.sandbox.first_process import ProcessTerms, ProgramLimits
from owa_bench.sandbox.namespaces import NOBODY, SYSTEM, TMP_BYTES, SandboxView

IMAGE: Final = "owa-bench-sandbox:2"
ISOLATION = (
    *("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent"),
    *("--new-session", "--clearenv", "--cap-drop", "ALL"),
    *("--uid", str(NOBODY), "--gid", str(NOBODY), "--hostname", "sandbox"),
    *("--proc", "/proc", "--dev", "/dev"),
    *("--size", str(TMP_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108
    *("--size", str(TMP_BYTES), "--tmpfs", "/tmp"),  # noqa: S108  the sandbox's own
)
_ETC = ("ld.so.cache", "ssl", "pki", "alternatives", "fonts")
# Variables that the program gets as the harness has them.
PASSED_ON = (
    *("LANG", "LC_ALL", "TZ", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
    "MKL_NUM_THREADS",
)
_MADE = Path(__file__).with_name("etc")  # files of /etc that say nothing of the machine
_INSTALLED = ("site-packages", "dist-packages")
FIX = (
    "Allow user namespaces (sysctl -w user.max_user_namespaces=10000, and "
    "kernel.apparmor_restrict_unprivileged_userns=0 where it exists), use "
    "`--sandbox docker`, or `--sandbox none`: unsandboxed, V2 at most"
)


@functools.cache
def namespaces_fault() -> str:
    """Return why a process cannot enter namespaces of its own here, "" if it can."""
    if sys.platform != "linux":
        return f"namespaces are Linux', and this is {sys.platform}"
    command = [sys.executable, "-I", "-S", namespaces.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode == 0:
        return ""
    return done.stdout.strip() or done.stderr.strip()[-200:] or "no reason given"


@functools.cache
def bubblewrap_fault() -> str:
    """Return why programs cannot be run under bubblewrap here, "" if they can."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (apt-get install bubblewrap)"
    return namespaces_fault()


@functools.cache
def docker_fault() -> str:
    """Return why Docker cannot be used here, "" if it can."""
    program = shutil.which("docker")
    if program is None:
        return "the program `docker` is missing (apt-get install docker.io)"
    command = [program, "version", "--format", "{{.Server.Version}}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode == 0:
        return ""
    said = " ".join(done.stderr.split())[:200]
    return f"no daemon answers: install docker.io and start dockerd ({said})"


def is_installed(path: str) -> bool:
    """Return whether a folder of modules holds installed packages alone."""
    roots = (sys.prefix, sys.base_prefix)
    inside = any(Path(path).is_relative_to(root) for root in roots)
    return inside or any(part in _INSTALLED for part in Path(path).parts)


@functools.cache
def answer_keys() -> tuple[str, ...]:
    """Return the folders of this package that draw and judge cases: no agent sees them."""
    own = os.path.dirname(os.path.realpath(owa_bench.__file__))
    return (os.path.join(own, "company", "kinds"),)


def system_view() -> SandboxView:
    """Return the view of this machine's programs and of this Python with its packages.

    Of this package's own folder the package alone is seen, without its answer keys, and nothing of
    what lies beside it.
    """
    paths = ["/usr", *(path for path in SYSTEM if not os.path.islink(path))]
    paths += [f"/etc/{name}" for name in _ETC]
    paths += [sys.base_prefix, sys.prefix]
    paths += [path for path in sys.path if is_installed(path)]
    own = os.path.dirname(owa_bench.__file__)
    modules = [path for path in sys.path if is_installed(path)]
    modules.append(os.path.dirname(own))
    environment = {
        "PATH": os.pathsep.join((f"{sys.prefix}/bin", "/usr/local/bin:/usr/bin:/bin")),
        "HOME": "/tmp",  # noqa: S108  the sandbox's own
        "PYTHONPATH": os.pathsep.join(modules),
        "PYTHONDONTWRITEBYTECODE": "1",
        **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
    }
    made = ((os.fspath(path), f"/etc/{path.name}") for path in _MADE.iterdir())
    return SandboxView(
        read_only=_outermost((*binds([*paths, own]), *made)),
        hidden=answer_keys(),
        environment=tuple(environment.items()),
    )


def binds(paths: list[str]) -> tuple[tuple[str, str], ...]:
    """Return binds of the paths that exist at their places, links resolved."""
    pairs: list[tuple[str, str]] = []
    for path in paths:
        place, real = os.path.abspath(path), os.path.realpath(path)
        if os.path.exists(real):
            pairs += [(real, place), (real, real)]
    return _outermost(pairs)


def _outermost(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the binds without those inside another one."""
    kept: dict[str, str] = {}
    for source, place in sorted(pairs, key=lambda pair: len(pair[1])):
        if not any(place == outer or place.startswith(f"{outer.rstrip('/')}/") for outer in kept):
            kept[place] = source
    return tuple((source, place) for place, source in kept.items())


def joined(first: SandboxView, second: SandboxView) -> SandboxView:
    """Return a view with what both hold.

    Args:
        first: A view.
        second: Another, whose environment and folder count.
    """
    return SandboxView(
        read_only=_outermost((*first.read_only, *second.read_only)),
        writable=first.writable + second.writable,
        hidden=first.hidden + second.hidden,
        services=first.services + second.services,
        environment=tuple({**dict(first.environment), **dict(second.environment)}.items()),
        folder=second.folder,
    )


# --- programs under bubblewrap and Docker ---------------------------------------------


def supervised(command: list[str], view: SandboxView, limits: ProgramLimits) -> list[str]:
    """Return the command line that runs a command as the child of `first_process`.

    Args:
        command: The program and its arguments, as inside.
        view: What it sees.
        limits: What it may use.
    """
    services = tuple((port, namespaces.service_socket(port)) for port, _ in view.services)
    terms = json.dumps(ProcessTerms(limits, services)[:2])
    script = os.path.abspath(first_process.__file__)
    return [sys.executable, "-I", "-S", script, terms, *command]


def bubblewrap_options(view: SandboxView) -> list[str]:
    """Return bwrap's options for a view: isolation, binds, environment, folder."""
    options = list(ISOLATION)
    for name in SYSTEM:
        if os.path.islink(name):
            options += ["--symlink", os.readlink(name), name]
    for source, target in view.read_only:
        options += ["--ro-bind", source, target]
    for path in view.hidden:
        if any(Path(path).is_relative_to(place) for _, place in view.read_only):
            options += ["--tmpfs", path, "--remount-ro", path]
    for source, target in view.writable:
        options += ["--bind", source, target]
    for port, path in view.services:
        options += ["--ro-bind", path, namespaces.service_socket(port)]
    for name, value in view.environment:
        options += ["--setenv", name, value]
    return [*options, "--remount-ro", "/", "--chdir", view.folder]


def bubblewrap_command(command: list[str], view: SandboxView, limits: ProgramLimits) -> list[str]:
    """Return the command line that runs a command in a view under bubblewrap.

    Args:
        command: The program and its arguments, as inside.
        view: What it sees.
        limits: What it may use.
    Raises: MissingPartError: bubblewrap is not installed.
    """
    program = shutil.which("bwrap")
    if program is None:
        raise MissingPartError("bubblewrap", "apt-get install bubblewrap")
    options = [*bubblewrap_options(view), "--as-pid-1"]
    return [program, *options, "--", *supervised(command, view, limits)]


def docker_options(view: SandboxView, *, memory: int, tasks: int) -> list[str]:
    """Return Docker's options for a view: isolation, binds, environment, folder.

    Args:
        view: What the program sees.
        memory: Most bytes of all its processes together.
        tasks: Most processes and threads.
    Returns: The options of `docker run` or `docker create`.
    """
    options = ["--interactive", "--network", "none", "--read-only"]
    options += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    options += ["--hostname", "sandbox", "--env", "HOSTNAME"]  # no such variable
    options += ["--memory", str(memory), "--memory-swap", str(memory)]
    options += ["--pids-limit", str(tasks), "--shm-size", str(TMP_BYTES)]
    options += ["--tmpfs", f"/tmp:size={TMP_BYTES},mode=1777,exec"]  # noqa: S108
    options += ["--tmpfs", "/sys:ro,size=4k"]  # else it tells of the machine
    for source, target in view.read_only:
        options += ["--mount", _mount(source, target, "readonly")]
    for path in view.hidden:
        if any(Path(path).is_relative_to(place) for _, place in view.read_only):
            options += ["--tmpfs", f"{path}:ro,size=4k"]
    for source, target in view.writable:
        options += ["--mount", _mount(source, target)]
    for port, path in view.services:
        place = namespaces.service_socket(port)
        options += ["--mount", _mount(path, place, "readonly")]
    for name, value in view.environment:
        options += ["--env", f"{name}={value}"]
    return [*options, "--workdir", view.folder]


def _mount(source: str, target: str, *flags: str) -> str:
    """Return the value of `--mount` for a bind: one line of CSV."""
    line = io.StringIO()
    fields = ("type=bind", f"source={source}", f"target={target}", *flags)
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()


def docker_command(command: list[str], view: SandboxView, limits: ProgramLimits) -> list[str]:
    """Return the command line that runs a command in a view in a container.

    Its image holds empty folders alone (`make_image`).

    Args:
        command: The program and its arguments, as inside.
        view: What it sees.
        limits: What it may use.
    Raises: MissingPartError: Docker is not installed.
    """
    program = shutil.which("docker")
    if program is None:
        raise MissingPartError("docker", "apt-get install docker.io")
    options = docker_options(view, memory=limits.memory, tasks=limits.processes * 8)
    options += ["--rm", "--user", f"{os.getuid()}:{os.getgid()}", IMAGE]
    return [program, "run", *options, *supervised(command, view, limits)]


def make_image() -> None:
    """Make the image of containers, if it is not there: folders and links alone.

    Raises: MissingPartError: Docker is missing, or does not answer.
    """
    if fault := docker_fault():
        raise MissingPartError(f"docker ({fault})", "apt-get install docker.io")
    program = shutil.which("docker") or "docker"
    found = subprocess.run(  # noqa: S603
        [program, "image", "inspect", IMAGE], capture_output=True, check=False
    )
    if found.returncode == 0:
        return
    command = [program, "import", "-", IMAGE]
    subprocess.run(command, input=_empty_root(), capture_output=True, check=True)  # noqa: S603


def _empty_root() -> bytes:
    """Return the archive of a root with the links and folders that views need."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in ("usr", "etc", "proc", "dev", "run", "tmp"):
            folder = tarfile.TarInfo(name)
            folder.type = tarfile.DIRTYPE
            folder.mode = 0o1777 if name == "tmp" else 0o755  # a tmpfs there takes it
            archive.addfile(folder)
        for path in SYSTEM:
            if os.path.islink(path):
                link = tarfile.TarInfo(path[1:])
                link.type, link.linkname = tarfile.SYMTYPE, os.readlink(path)
                archive.addfile(link)
    return buffer.getvalue()

"""Sandbox backends by name: plain child processes, and isolation by bubblewrap.

`ProcessSandbox` is for trusted code: it bounds time, memory, processes and output and
passes on no environment, but the job sees the machine's files and network.

Under `BubblewrapSandbox` the job sees an empty root with its binds read-only, its own
/proc, a bare /dev, an empty /tmp and its work directory at /work. It runs as nobody,
without capabilities and without the right to make further user namespaces.
"""

import dataclasses
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping

import msgspec

from owa_bench.errors import InfrastructureFailure, MissingPartError, UnknownNameError
from owa_bench.sandbox.job import (
    LIMITS_ONLY,
    Bind,
    Guarantee,
    Result,
    Sandbox,
    SandboxJob,
)
from owa_bench.sandbox.supervision import run_limited

PATH = "/usr/local/bin:/usr/bin:/bin"
WORK = "/work"
NOBODY = "65534"
BWRAP_PROCESSES = 2  # bwrap itself and the first process of the new namespace
NOT_STARTED = 127
ISOLATION = (
    *("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent"),
    *("--new-session", "--clearenv", "--cap-drop", "ALL"),
    *("--uid", NOBODY, "--gid", NOBODY, "--hostname", "sandbox"),
    *("--proc", "/proc", "--dev", "/dev"),
    *("--tmpfs", "/tmp"),  # noqa: S108  the job's own empty /tmp, not this machine's
)


class ProcessSandbox:
    """Runs jobs as children of this process; binds mean nothing here."""

    name = "subprocess"
    guarantees = LIMITS_ONLY

    def run(self, job: SandboxJob) -> Result:
        """Run `job` in its work directory and return how it ended."""
        return run_limited(
            job.argv,
            limits=job.limits,
            env={"PATH": PATH, **job.env},
            cwd=job.work,
            stdin=job.stdin,
        )


class _Status(msgspec.Struct, rename="kebab"):
    """A line of bwrap's status descriptor."""

    child_pid: int | None = None
    exit_code: int | None = None


class BubblewrapSandbox:
    """Runs jobs under `bwrap`; MissingPartError when it is not installed."""

    name = "bubblewrap"
    guarantees: frozenset[Guarantee] = LIMITS_ONLY | {"files", "network"}

    def __init__(self) -> None:
        program = shutil.which("bwrap")
        if program is None:
            raise MissingPartError("bubblewrap", "apt-get install bubblewrap")
        self._program = program

    def run(self, job: SandboxJob) -> Result:
        """Run `job` behind new namespaces and return how it ended."""
        with tempfile.TemporaryFile() as status, tempfile.TemporaryFile() as options:
            # On its command line the job could read this machine's paths in /proc/1.
            options.write(b"".join(os.fsencode(o) + b"\0" for o in arguments(job)))
            options.seek(0)
            descriptors = (status.fileno(), options.fileno())
            result = run_limited(
                [
                    self._program,
                    *("--json-status-fd", str(descriptors[0])),
                    *("--args", str(descriptors[1])),
                    "--",
                    *job.argv,
                ],
                limits=job.limits,
                env={"PATH": PATH},
                cwd=job.work,
                stdin=job.stdin,
                spare=BWRAP_PROCESSES,
                pass_fds=descriptors,
            )
            status.seek(0)
            return _checked(result, status.read())


def arguments(job: SandboxJob) -> list[str]:
    """Return bwrap's options for `job`: isolation, binds, work, environment."""
    options = list(ISOLATION)
    for bind in (*job.binds, Bind(source=job.work, target=WORK, writable=True)):
        option = "--bind" if bind.writable else "--ro-bind"
        options += [option, os.fspath(bind.source), bind.target or str(bind.source)]
    for path in job.hidden:
        options += ["--tmpfs", path]
    for name, value in {"PATH": PATH, **job.env}.items():
        options += ["--setenv", name, value]
    return [*options, "--remount-ro", "/", "--chdir", WORK]


def _checked(result: Result, status: bytes) -> Result:
    """Return `result`; raise InfrastructureFailure if no sandbox could be built."""
    lines = [
        msgspec.json.decode(line, type=_Status) for line in status.splitlines() if line
    ]
    if result.limit is not None or any(line.exit_code is not None for line in lines):
        return result
    if any(line.child_pid is not None for line in lines) and b"execvp" in result.output:
        return dataclasses.replace(result, exit_code=NOT_STARTED)
    reason = result.output.decode(errors="replace").strip()
    raise InfrastructureFailure(
        f"bubblewrap could not build the sandbox: {reason or 'no reason given'}."
        " If user namespaces are forbidden here, allow them with:"
        " sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    )


BACKENDS: Mapping[str, Callable[[], Sandbox]] = {
    ProcessSandbox.name: ProcessSandbox,
    BubblewrapSandbox.name: BubblewrapSandbox,
}


def get(name: str) -> Sandbox:
    """Return the backend `name`; MissingPartError when the machine lacks it."""
    if name not in BACKENDS:
        raise UnknownNameError("sandbox", name, BACKENDS)
    return BACKENDS[name]()

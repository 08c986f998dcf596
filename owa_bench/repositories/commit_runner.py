"""Runs code of a repository's commits: checkouts and one sandbox with a job server.

Source: docs/projforge.md#the-sandbox
"""

import json
import select
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from owa_bench.errors import InfrastructureFailure, MissingPartError
from owa_bench.repositories import job_server
from owa_bench.repositories.repository import ProjectRepository
from owa_bench.sandbox import backends
from owa_bench.sandbox import job as binds
from owa_bench.sandbox.job import Bind, Limits, SandboxJob
from owa_bench.sandbox.long_lived import SandboxProcess

BACKEND = "bubblewrap"
_LIMITS = Limits(wall_s=600, cpu_s=3600, processes=32)
_TREES, _WORK = "trees", "work"
_GRACE_S = 60  # beyond a job's own limit, for a server that starts


def require_programs() -> None:
    """Raise MissingPartError where git or bubblewrap is not installed."""
    for program, package in (("git", "git"), ("bwrap", "bubblewrap")):
        if shutil.which(program) is None:
            raise MissingPartError(f"the program `{program}`", f"apt-get install {package}")


class CommitRunner:
    """Runs jobs on commits in one sandbox that stays open; it sees folders read-only.

    Args:
        folder: Where its files are.
        repository: Has the commits.
        shown: Names of further folders below `folder` that the sandbox sees.
        tools: Binds of the packages that jobs import, none for plain Python.
    """

    def __init__(
        self,
        folder: Path,
        repository: ProjectRepository,
        *,
        shown: Iterable[str] = (),
        tools: tuple[Bind, ...] = (),
    ) -> None:
        self._folder, self._repository = folder, repository
        self._shown, self._tools = (_TREES, *shown), tools
        self._sandbox = backends.get(BACKEND)
        self._process: SandboxProcess | None = None
        self._trees: dict[str, str] = {}
        for name in self._shown:
            (folder / name).mkdir(parents=True)

    def tree(self, commit: str) -> str:
        """Return where the sandbox sees a commit's files, checked out once."""
        if commit not in self._trees:
            name = str(len(self._trees))
            self._repository.check_out(commit, self._folder / _TREES / name)
            self._trees[commit] = f"/{_TREES}/{name}"
        return self._trees[commit]

    def job(self, **job: Any) -> dict[str, Any]:
        """Return the reply of the job server, started anew where a job ended it."""
        if self._process is None or not self._process.alive:
            self.close()
            (self._folder / _WORK).mkdir()
            self._process = self._sandbox.open(self._server())
        try:
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            self._process.stdin.flush()
            output = self._process.stdout
            left = job["wall_s"] + _GRACE_S
            if not select.select([output], [], [], left)[0]:  # the job stopped it
                self.close()
                return {"timed": True, "result": None}
            line = output.readline()
        except BrokenPipeError:
            line = b""
        if line:
            reply: dict[str, Any] = json.loads(line)
            if reply["last"]:
                self.close()
            return reply
        ended = self._process.close()
        self._process = None
        if b"Traceback" in ended.output:
            text = ended.output.decode(errors="replace")[-500:]
            raise InfrastructureFailure(f"The job server failed: {text}")
        return {"timed": ended.timed, "result": None}

    def close(self) -> None:
        """End the sandbox, and remove what a job left that the server could not."""
        if self._process is not None:
            self._process.close()
            self._process = None
        # Of any depth, which shutil.rmtree is not.
        line = ["rm", "-rf", str(self._folder / _WORK)]
        subprocess.run(line, check=False)  # noqa: S603  a folder of its own

    def _server(self) -> SandboxJob:
        folders = [Bind(source=self._folder / name, target=f"/{name}") for name in self._shown]
        program = "/server/job_server.py"
        tools = ("/tools",) if self._tools else ()
        server = Bind(source=Path(job_server.__file__), target=program)
        return SandboxJob(
            argv=(str(binds.interpreter()), "-I", "-S", "-u", program, *tools),
            work=self._folder / _WORK,
            binds=(*binds.python(), *self._tools, server, *folders),
            hidden=binds.python_hidden(),
            limits=_LIMITS,
            first=True,
        )

"""A project's machines: package indexes, checkouts, environments and the job server.

Whatever runs a project's code goes through here, in one sandbox that stays open.

Source: docs/projforge.md#the-sandbox
"""

import importlib.util
import json
import re
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from owa_bench.canonical import sha256
from owa_bench.envs.projforge.world import ProjectWorld
from owa_bench.envs.projforge.world_code import PIPELINE, EndpointCase, index_files, library_source
from owa_bench.envs.projforge.world_rules import RuleShift
from owa_bench.errors import MissingPartError, extra
from owa_bench.repositories.commit_runner import CommitRunner
from owa_bench.repositories.repository import ProjectRepository
from owa_bench.sandbox import backends
from owa_bench.sandbox import job as binds
from owa_bench.sandbox.job import Bind, Limits, Result, SandboxJob

_TOOLS = (
    "pip",
    "pytest",
    "_pytest",
    "py",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    *("uvicorn", "starlette", "h11", "anyio", "click", "sniffio", "idna"),
    "typing_extensions",
)
_PIN = re.compile(r"[a-z]+(\[\])?\s*([=<>~!]=?\s*[0-9a-z.]+\s*,?\s*)*")
_LINES = 60  # of a lock file
_SHELL = Limits(wall_s=20, cpu_s=10, processes=16)


class JobFailure(Exception):
    """A job of the pipeline that cannot begin: what its log says."""


class Answers(NamedTuple):
    """What a product answered: values, or why none came; `timed` by a time limit."""

    values: tuple[Any, ...]
    error: str = ""
    timed: bool = False


class TestRun(NamedTuple):
    """A run of pytest: its exit code and the end of its output."""

    exit_code: int
    text: str
    timed: bool = False


class Workshop(CommitRunner):
    """Runs jobs of one project under a folder."""

    def __init__(self, folder: Path, repository: ProjectRepository) -> None:
        super().__init__(folder, repository, shown=("index", "sites"), tools=tools())
        self._environments: dict[str, str] = {}
        self._canaries = 0
        self._published = ""
        self._served: tuple[Any, ...] = ()
        self._indexed: dict[str, bytes] = {}
        for name in ("main", "mirror"):
            (folder / "index" / name).mkdir()

    def publish(self, world: ProjectWorld, day: int) -> str:
        """Write the index that serves on a day and empty the other.

        Args:
            world: The world of the day.
            day: The day.
        Returns: The digest of its files.
        """
        versions = tuple(library.version(day) for library in world.libraries)
        served = (world.index, world.libraries, versions)
        if served != self._served:
            files = index_files(world, day)
            digests = sorted((name, sha256(data)) for name, data in files.items())
            self._served = served
            self._published = sha256(json.dumps([world.index, *digests]).encode())
            self._write_index(world.index, files)
        return self._published

    def _write_index(self, name: str, files: Mapping[str, bytes]) -> None:
        """Make the folder of the indexes that of one, by what differs."""
        index, before = self._folder / "index", self._indexed
        after = {f"{name}/{path}": data for path, data in files.items()}
        for path in before.keys() - after.keys():
            (index / path).unlink()
        for path, data in after.items():
            if before.get(path) != data:
                file = index / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
        self._indexed = after

    def answers(
        self,
        world: ProjectWorld,
        commit: str,
        cases: list[EndpointCase],
        shift: tuple[RuleShift, int] | None = None,
    ) -> Answers:
        """Return what the product of a commit answers.

        Args:
            world: The terms of the day.
            commit: The commit.
            cases: Endpoints and requests.
            shift: What a canary adds to library rules, and the day; None: nothing.
        Returns: Values in order of the cases; none where the pipeline fails.
        """
        try:
            site = [self._environment(world, commit)]
        except JobFailure as failure:
            return Answers((None,) * len(cases), str(failure))
        if shift is not None:
            site.insert(0, self._canary(world, *shift))
        reply = self.job(
            job="answers",
            tree=self.tree(commit),
            site=site,
            strict=world.strict,
            cases=cases,
            cpu_s=10,
            wall_s=60,
        )
        result = reply["result"] or {"import": "the job ended without a result"}
        values = result.get("results", ())
        right = isinstance(values, list) and len(values) == len(cases)
        if result.get("import") or not right:
            error = str(result.get("import", "no answers"))
            return Answers((None,) * len(cases), error, reply["timed"])
        return Answers(tuple(value for value, _ in values), "", reply["timed"])

    def deployed_answers(
        self, world: ProjectWorld, commit: str, cases: list[EndpointCase]
    ) -> Answers:
        """Return what a deployed commit answers over HTTP, on the sandbox's loopback.

        Args:
            world: The terms of the day.
            commit: The commit.
            cases: Endpoints and requests.
        Returns: A value where the status was 200, else None; `error` is the first other status and
            its body.
        """
        try:
            site = [self._environment(world, commit)]
        except JobFailure as failure:
            return Answers((None,) * len(cases), f"503 does not start: {failure}")
        reply = self.job(
            job="replies",
            tree=self.tree(commit),
            site=site,
            strict=world.strict,
            cases=cases,
            cpu_s=10,
            wall_s=60,
        )
        result = reply["result"] or {}
        replies = result.get("replies")
        if not isinstance(replies, list) or len(replies) != len(cases):
            return Answers((None,) * len(cases), "503 no answer", reply["timed"])
        bad = [f"{status} {body}" for status, body in replies if status != 200]
        values = tuple(body if status == 200 else None for status, body in replies)
        return Answers(values, bad[0] if bad else "", reply["timed"])

    def tests(self, world: ProjectWorld, commit: str) -> TestRun:
        """Return the result of pytest over a commit.

        Args:
            world: The terms of the day.
            commit: The commit.
        Returns: The run; exit code 3 where the pipeline fails.
        """
        try:
            site = [self._environment(world, commit)]
        except JobFailure as failure:
            return TestRun(3, str(failure))
        job = {
            "job": "tests",
            "tree": self.tree(commit),
            "site": site,
            "strict": world.strict,
            "cpu_s": 30,
            "wall_s": 120,
        }
        lost: dict[str, Any] = {"exit": 3, "text": "the run ended without a result"}
        reply = self.job(**job, explain=False)
        result, timed = reply["result"] or lost, reply["timed"]
        code = int(result["exit"])
        if code and not timed:
            reply = self.job(**job, explain=True)
            result, timed = reply["result"] or lost, reply["timed"]
        text = re.sub(r" in [0-9.]+s", "", str(result["text"]))
        return TestRun(code, text, timed)

    def shell(self, argv: tuple[str, ...]) -> Result:
        """Return the result of a command in the worktree, without a network."""
        names = [n for n in ("sh", "ls", "cat", "grep", "sed", "head") if shutil.which(n)]
        path = f"{binds.interpreter().parent}:{backends.PATH}"
        job = SandboxJob(
            argv=argv,
            work=self._repository.worktree,
            env={"PATH": path},
            binds=(*binds.python(), *binds.python_commands(), *binds.programs(*names)),
            hidden=binds.python_hidden(),
            limits=_SHELL,
        )
        return self._sandbox.run(job)

    def _text(self, commit: str, path: str) -> str:
        """Return a file of a commit, "" where there is none."""
        file = self._folder / self.tree(commit).lstrip("/") / path
        return file.read_text(errors="replace") if file.is_file() else ""

    def _environment(self, world: ProjectWorld, commit: str) -> str:
        """Return the installed libraries of a commit's lock file; raise JobFailure."""
        config = self._pipeline(commit)
        if config.get("image") != world.image:
            raise JobFailure(
                f"image {config.get('image')!r} is not there; available: {world.image}"
            )
        if config.get("lock") != world.lock:
            raise JobFailure(f"the pipeline installs {world.lock}; set lock in ci.toml")
        if config.get("index") != world.index:
            raise JobFailure(f"index {config.get('index')!r} does not serve; try {world.index!r}")
        if config.get("secret") != world.secret:
            raise JobFailure(
                f"secret {config.get('secret')!r} is revoked; the index takes {world.secret!r}"
            )
        lines = self._text(commit, world.lock).splitlines()
        pins = sorted(line.strip() for line in lines if line.strip())
        for line in pins[:_LINES]:
            if not _PIN.fullmatch(line):
                raise JobFailure(f"{world.lock}: only NAME==VERSION lines, got {line[:80]!r}")
        key = sha256("\n".join([self._published, *pins]).encode())
        if key not in self._environments:
            self._environments[key] = self._installed(world, pins)
        return self._environments[key]

    def _pipeline(self, commit: str) -> dict[str, Any]:
        try:
            return tomllib.loads(self._text(commit, PIPELINE))
        except tomllib.TOMLDecodeError as error:
            raise JobFailure(f"{PIPELINE}: {error}") from error

    def _installed(self, world: ProjectWorld, pins: list[str]) -> str:
        index = f"file:///index/{world.index}/simple"
        target = ("--quiet", "--target", f"{backends.WORK}/site", "--index-url", index)
        own = ["--no-cache", "--no-config", "--python", str(binds.interpreter())]
        if INSTALLER == "pip":
            own = ["--no-cache-dir", "--no-compile", "--disable-pip-version-check"]
            own += ["--no-input", "--no-warn-conflicts"]
        reply = self.job(
            job="install",
            program=_UV if INSTALLER == "uv" else "",
            cpu_s=60,
            wall_s=240,
            argv=["install", *target, *own, *pins],
        )
        result = reply["result"] or {"exit": 3, "text": "pip ended without a result"}
        site = self._folder / "work/site"
        if result["exit"]:
            shutil.rmtree(site, ignore_errors=True)
            raise JobFailure(str(result["text"]).strip()[-600:])
        name = str(len(self._environments))
        site.mkdir(exist_ok=True)
        site.rename(self._folder / "sites" / name)
        return f"/sites/{name}"

    def _canary(self, world: ProjectWorld, shift: RuleShift, day: int) -> str:
        """Return libraries of which each rule adds a number, for one run."""
        name = f"canary{self._canaries}"
        self._canaries += 1
        for library in world.libraries:
            package = self._folder / "sites" / name / library.name
            package.mkdir(parents=True)
            text = library_source(library, day, shift)
            (package / "__init__.py").write_text(text)
        return f"/sites/{name}"


INSTALLER = "pip"  # or "uv": the same verdicts in other words, so no option of a run
_UV = "/tools/uv"


def tools() -> tuple[Bind, ...]:
    """Return binds of pip, pytest and all they import, at /tools.

    Raises: MissingPartError: one of them is not installed.
    """
    found = []
    for name in _TOOLS:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            if name in ("pip", "pytest"):
                raise MissingPartError(name, extra("project"))
            continue
        file = Path(spec.origin)
        source = file.parent if file.name == "__init__.py" else file
        found.append(Bind(source=source, target=f"/tools/{source.name}"))
    if INSTALLER == "uv":
        program = importlib.import_module("uv").find_uv_bin()
        found.append(Bind(source=Path(program), target=_UV))
    return tuple(found)

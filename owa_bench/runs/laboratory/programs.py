"""Programs as subjects: a version is a set of files, played in a sandbox of its own.

One sandbox serves all attempts of a version, as long as it is among those used last.
"""

import json
import select
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench.errors import UsageError
from owa_bench.interfaces import Brief, Subject, ToolSpec
from owa_bench.runs.laboratory import program_server
from owa_bench.runs.store.memory_folder import remove_folder
from owa_bench.sandbox import backends
from owa_bench.sandbox import job as binds
from owa_bench.sandbox.job import Bind, Limits, SandboxJob
from owa_bench.sandbox.long_lived import SandboxProcess

ENTRY = f"{program_server.ENTRY}.py"
OWN_LOG = "own_log.json"
BACKEND = "bubblewrap"
_OPEN = 4  # sandboxes kept
_GRACE_S = 30  # beyond the server's own limit of an answer, for one that starts
_LIMITS = Limits(wall_s=60, cpu_s=3600, processes=8)


class ProgramFailure(Exception):
    """A program raised, broke a limit or gave no answer."""


class ProgramSandboxes:
    """The sandboxes of the versions that were played last.

    Args:
        folder: An empty folder of this process.
        memory: The subjects' folder, which a program reads at /memory.
    """

    def __init__(self, folder: Path, memory: Path) -> None:
        self._folder, self._memory = folder, memory
        self._open: OrderedDict[str, SandboxProcess] = OrderedDict()

    def player(self, subject: Subject) -> "ProgramPlayer":
        """Return the agent that plays a version's next attempt."""
        return ProgramPlayer(self, subject)

    def ask(self, subject: Subject, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return a version's answer.

        Args:
            subject: The version.
            request: A brief, a text or the end.
        Raises:
            ProgramFailure: It raised, or gave none.
            InfrastructureFailure: No sandbox could be built.
        """
        process = self._process(subject)
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            left = program_server.WALL_S + _GRACE_S
            told = select.select([process.stdout], [], [], left)[0]
            line = process.stdout.readline() if told else b""
        except BrokenPipeError:
            line = b""
        if not line:  # a program can make the server end: it is not played again
            self._open.pop(subject.digest).close()
            raise ProgramFailure("its sandbox ended")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ProgramFailure(answer["error"])
        return answer

    def close(self) -> None:
        """End every sandbox and remove what programs left, however deep."""
        while self._open:
            self._open.popitem()[1].close()
        for place in self._folder.iterdir():
            remove_folder(place / "work")

    def _process(self, subject: Subject) -> SandboxProcess:
        name = subject.digest
        if name in self._open:
            self._open.move_to_end(name)
            return self._open[name]
        if len(self._open) >= _OPEN:
            self._open.popitem(last=False)[1].close()
        place = self._folder / name[:16]
        if not place.exists():
            write_files(place / "subject", dict(subject.options))
        remove_folder(place / "work")  # a program that ended the server filled it
        (place / "work").mkdir()
        program = "/server/program_server.py"
        source = Path(program_server.__file__)
        self._open[name] = backends.get(BACKEND).open(
            SandboxJob(
                argv=(str(binds.interpreter()), "-I", "-S", "-u", program),
                work=place / "work",
                binds=(
                    *binds.python(),
                    Bind(source=source, target=program),
                    Bind(source=place / "subject", target=program_server.FOLDER),
                    Bind(source=self._memory, target="/memory"),
                ),
                hidden=binds.python_hidden(),
                limits=_LIMITS,
                first=True,
            )
        )
        return self._open[name]


class ProgramPlayer:
    """An agent whose answers a program in its sandbox gives.

    Args:
        sandboxes: Hold the version's.
        subject: The version.
    """

    def __init__(self, sandboxes: ProgramSandboxes, subject: Subject) -> None:
        self._sandboxes, self._subject = sandboxes, subject

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an attempt.

        Args:
            brief: The task.
            tools: Their names and schemas are told.
            memory_dir: Takes the program's own log.
        Raises: ProgramFailure: it raised.
        """
        self._log = memory_dir / OWN_LOG
        told = {
            "text": brief.text,
            "goal": brief.goal,
            "budgets": brief.budgets,
            "seed": brief.seed,
            "tools": [tool.function["function"] for tool in tools],
        }
        self._sandboxes.ask(self._subject, {"brief": told})

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next call.

        Args:
            observation: Its `text` is what the program reads.
            info: Plays no part.
        Returns: Action text.
        Raises: ProgramFailure: it raised.
        """
        request = {"text": str(observation["text"])}
        return str(self._sandboxes.ask(self._subject, request)["action"])

    def close(self) -> None:
        """End the attempt; a number that `close` returns are the items of its log.

        Raises: ProgramFailure: it raised.
        """
        items = self._sandboxes.ask(self._subject, {"close": True})["items"]
        if items is not None:
            self._log.write_text(json.dumps({"items": items}))


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write a version's files.

    Args:
        folder: Is made.
        files: Text by path.
    Raises: UsageError: a path leads out of the folder.
    """
    folder.mkdir(parents=True)
    for name, text in files.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise UsageError(f"A file must lie in its folder, got `{name}`.")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

"""The repository of a crew that writes code: a branch a draft, merges, hidden requests.

The bare origin lies outside every seat's reach: no tool names a branch, and code runs in a sandbox
that sees a commit's files alone.

Source: docs/multicrew.md#real-code
"""

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from owa_bench.envs.multicrew.draws import Fragment
from owa_bench.envs.multicrew.families import codebase
from owa_bench.envs.multicrew.world import CrewItem, CrewWorld
from owa_bench.repositories.commit_runner import CommitRunner, require_programs
from owa_bench.repositories.pushes import WorktreeFiles
from owa_bench.repositories.repository import ProjectRepository

_PLATFORM = "platform"
_CPU_S, _WALL_S = 2, 30  # of the hidden requests to a function
_CONFLICTS = "Conflicts: "
_LONGEST, _MOST = 40, 1 << 53  # of a tag and of a total


class Examination(NamedTuple):
    """What main answered by item, as JSON text; `timed` if a time limit decided it."""

    answers: Mapping[str, str]
    timed: bool


class CodeRepository:
    """The repository of one episode; dates are ticks, as days.

    Args:
        world: The world at reset.
    Raises: MissingPartError: git or bubblewrap is not installed.
    """

    def __init__(self, world: CrewWorld) -> None:
        require_programs()
        self._folder = Path(tempfile.mkdtemp(prefix="crew-"))
        self._remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self.git = ProjectRepository(self._folder / "repository")
        self._files = WorktreeFiles(self.git.worktree)
        self._runner = CommitRunner(self._folder / "runner", self.git)
        self._rows = codebase.hidden_rows(world)
        self._branches: dict[str, str] = {}  # of each item's last draft
        self._drafts = 0
        for path, text in codebase.files(world).items():
            self._files.write(path, text)
        self.git.commit("Begin", _PLATFORM, 0)

    def commit(
        self, item: CrewItem, fragment: Fragment, pins: Mapping[str, str], *, seat: str, tick: int
    ) -> None:
        """Commit an item's function to a new branch of a seat that begins at main.

        Args:
            item: The item.
            fragment: Its source, and what else it carries.
            pins: What it builds on, which stands above it as a comment.
            seat: The author.
            tick: Now.
        """
        carried = {k: v for k, v in fragment.items() if k != "source"} | dict(pins)
        above = [f"# {name} {carried[name]!a}" for name in sorted(carried)]
        source = "\n".join([*above, fragment["source"].strip("\n")])
        self._drafts += 1
        branch = self._branches[item.name] = f"{seat}/{item.name}-{self._drafts}"
        path = codebase.path_of(item)
        text = codebase.with_function(self._files.text(path) or "", item, source)
        message = f"Work on {item.name}"
        self.git.deliver({path: text}, message, tick, branch=branch, author=seat)

    def merge(self, item: CrewItem, *, seat: str, tick: int) -> str:
        """Merge the branch of an item's last draft into main.

        Args:
            item: The item.
            seat: Who merges.
            tick: Now.
        Returns: The files in conflict, which leave main as it was, "" for none.
        """
        refused = self.git.merge(self._branches[item.name], seat, tick)
        return refused.removeprefix(_CONFLICTS)

    def examine(self, items: Iterable[str]) -> Examination:
        """Return what main answers to the hidden requests.

        Args:
            items: Names of functions.
        Returns: For each what it was asked and answered, None where that failed.
        """
        tree = self._runner.tree(self.git.head())
        each, answers, timed = len(self._rows), {}, False
        for name in items:  # a job each: no function answers for another
            reply = self._runner.job(
                job="answers",
                tree=tree,
                site=[],
                strict=False,
                cases=[[name, rows] for rows in self._rows],
                cpu_s=_CPU_S,
                wall_s=_WALL_S,
            )
            found = (reply["result"] or {}).get("results")
            values = [_answer(one) for one in found] if isinstance(found, list) else []
            values = [*values, *[None] * each][:each]
            record = {"rows": self._rows, "answers": values}
            answers[name] = msgspec.json.encode(record, order="sorted").decode()
            timed = timed or reply["timed"]
        return Examination(answers, timed)

    def bundle(self) -> bytes:
        """Return the whole history as a bundle that git clones."""
        return self.git.bundle(self._folder / "history.bundle")

    def close(self) -> None:
        """End the sandbox and remove every file."""
        self._runner.close()
        self._remove()


def _answer(one: Any) -> dict[str, Any] | None:
    """Return an answer of the form that is asked for, None for what else code gave."""
    match one:
        case [{"tag": str() as tag, "total": int() as total, **rest}, _]:
            small = len(tag) <= _LONGEST and tag.isascii() and abs(total) < _MOST
            if small and not rest and type(total) is int:
                return {"tag": tag, "total": total}
    return None

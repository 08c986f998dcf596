"""A project's repository: a bare origin, a worktree, and the log of its pushes.

The origin lies outside the worktree, so no code of an agent sees or configures git. Times and names
are the project's, so equal work has equal hashes.

Source: docs/projforge.md#the-repository
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from owa_bench.errors import InfrastructureFailure
from owa_bench.repositories.pushes import PushedCommit, import_stream

MAIN = "main"
_DAY_MS = 86_400_000  # of simulated time
_EPOCH = 1_767_225_600  # 2026-01-01, day 0
_TIMEOUT_S = 60
_INCOMING = "refs/incoming"
_LIKE = ("text", "eol", "crlf", "ident", "filter", "merge", "working-tree-encoding")
# No file of the worktree says how git reads the others: these lines come first.
_ATTRIBUTES = f"* {' '.join(f'!{name}' for name in _LIKE)}\n"
_ON_FILES = ("add", "switch", "reset", "merge")  # commands that an agent's files stop


def _date(day: int) -> str:
    return f"{_EPOCH + day * _DAY_MS // 1000} +0000"


def _mail(author: str) -> str:
    return f"{author}@project.example"


class WorktreeFault(InfrastructureFailure):
    """Git cannot go on with the files that are in the worktree: the agent's doing."""


class Push(NamedTuple):
    """A push to the origin's main branch; `forced` where it dropped commits."""

    day: int
    old: str
    new: str
    forced: bool


class ProjectRepository:
    """The repository of one project below a folder."""

    def __init__(self, folder: Path) -> None:
        self.origin, self.worktree = folder / "origin.git", folder / "worktree"
        self._index = folder / "index"
        self.branch = MAIN  # of the worktree
        self.pushes: tuple[Push, ...] = ()
        self.worktree.mkdir(parents=True)
        self._git("init", "-q", "--bare", "-b", MAIN, str(self.origin), day=0)
        (self.origin / "info").mkdir(exist_ok=True)
        (self.origin / "info/attributes").write_text(_ATTRIBUTES)

    def head(self, branch: str = MAIN) -> str:
        """Return the last commit of a branch of the origin, "" for none."""
        path = self.origin / "refs/heads" / branch
        return path.read_text().strip() if path.exists() else ""

    def commit(self, message: str, author: str, day: int) -> str:
        """Commit the worktree to its branch.

        Args:
            message: Of the commit.
            author: Of the commit.
            day: Its date.
        Returns: The commit, "" where nothing changed.
        """
        old = self.head(self.branch)
        self._git("add", "-A", day=day)
        self._git("commit", "-q", "-m", message, day=day, author=author, fails=True)
        return self._moved(old, day)

    def deliver(
        self,
        files: Mapping[str, str],
        message: str,
        day: int,
        *,
        branch: str = MAIN,
        author: str = "platform",
    ) -> None:
        """Commit files on top of main, wherever the worktree is, which stays.

        Args:
            files: Text by path, in ASCII.
            message: Of the commit.
            day: Its date.
            branch: What the commit becomes the head of: main, or a new branch.
            author: Of the commit.
        """
        stamp = f"{author} <{_mail(author)}> {_date(day)}"
        head = self.head()
        lines = [f"commit refs/heads/{branch}", f"author {stamp}", f"committer {stamp}"]
        lines += [f"data {len(message)}\n{message}", f"from {head}" if head else ""]
        for path, text in files.items():
            lines.append(f"M 100644 inline {path}\ndata {len(text)}\n{text}")
        stream = "\n".join([*filter(None, lines), ""]).encode()
        self._git("fast-import", "--quiet", day=day, given=stream)
        if branch == MAIN:
            self.pushes = (*self.pushes, Push(day, head, self.head(), False))

    def switch(self, branch: str, day: int) -> str:
        """Put the worktree on a branch; a new one begins where the worktree is.

        Args:
            branch: Its name.
            day: The day.
        Returns: "", or why it cannot.
        """
        if self._uncommitted(day):
            return "Commit the worktree first."
        new = () if self.head(branch) else ("-c",)
        self._git("switch", "-q", *new, branch, day=day)
        self.branch = branch
        return ""

    def merge(self, branch: str, author: str, day: int) -> str:
        """Merge a branch into the worktree's.

        Args:
            branch: Its name.
            author: Of the merge.
            day: Its date.
        Returns: "", or why it cannot; a conflict leaves everything as it was.
        """
        old = self.head(self.branch)
        if not self.head(branch):
            return f"There is no branch {branch!r}."
        if self._uncommitted(day):
            return "Commit the worktree first."
        words = ("merge", "--no-ff", "-q", "-m", f"Merge {branch}", branch)
        if self._git(*words, day=day, author=author, fails=True):
            lost = self._output("diff", "--name-only", "--diff-filter=U")
            self._git("merge", "--abort", day=day)
            return f"Conflicts: {', '.join(lost.splitlines())}"
        return "" if self._moved(old, day) else "It is merged already."

    def _uncommitted(self, day: int) -> bool:
        self._git("add", "-A", day=day)
        words = ("diff", "--cached", "--quiet", "HEAD")
        return bool(self._git(*words, day=day, fails=True))

    def _moved(self, old: str, day: int) -> str:
        """Return the new head of the worktree's branch, "" for none; log a push."""
        new = self.head(self.branch)
        if new == old:
            return ""
        if self.branch == MAIN:
            self.pushes = (*self.pushes, Push(day, old, new, False))
        return new

    def reset(self, commit: str, day: int) -> str:
        """Make the worktree's branch an earlier commit; others lose what main drops.

        Args:
            commit: A revision.
            day: The day.
        Returns: The commit, "" where there is no such revision.
        """
        old = self.head(self.branch)
        new = self._output("rev-parse", "-q", "--verify", f"{commit}^{{commit}}")
        if not new:
            return ""
        self._git("reset", "-q", "--hard", new, day=day)
        dropped = bool(self._output("rev-list", "-1", f"{new}..{old}"))
        if self.branch == MAIN:
            self.pushes = (*self.pushes, Push(day, old, new, dropped))
        return new

    def undo(self, day: int, *, keep: bool) -> None:
        """Take the last push to main back.

        Args:
            day: The day.
            keep: The worktree stays as it is: a commit of it is undone.
        """
        *before, last = self.pushes
        how = "--soft" if keep else "--hard"
        self._git("reset", "-q", how, last.old, day=day)
        self.pushes = tuple(before)

    def receive(
        self, branch: str, old: str, new: str, commits: tuple[PushedCommit, ...], day: int
    ) -> str:
        """Take over commits of a clone, as a push with a lease does.

        Args:
            branch: Its name.
            old: Where the clone holds the branch to be, "" for nowhere.
            new: The name of the last commit, by the clone's git.
            commits: They, oldest first; none: `new` is here already.
            day: The day.
        Returns: "", or why they are not taken.
        """
        if self.head(branch) != old:
            return f"{branch} is elsewhere: fetch first."
        mine = branch == self.branch
        if branch == MAIN and not mine:
            return f"The platform's worktree is on {self.branch}: git_branch main."
        if mine and self._uncommitted(day):
            return "The platform's worktree has changes: git_commit them."
        found = new
        if commits:
            stream = import_stream(commits, _INCOMING)
            words = ("fast-import", "--quiet", "--force")
            if self._run(words, {}, self.worktree, self._index, stream).returncode:
                return "git cannot make these commits: fetch first."
            found = self._output("rev-parse", _INCOMING)
            self._git("update-ref", "-d", _INCOMING, day=day)
        made = self._output("rev-parse", "-q", "--verify", f"{found}^{{commit}}")
        if made != new:
            return "The commits come out differently here: no signatures, no links."
        if mine:
            self._git("reset", "-q", "--hard", new, day=day)
        else:
            self._git("update-ref", f"refs/heads/{branch}", new, day=day)
        if branch == MAIN:
            dropped = bool(self._output("rev-list", "-1", f"{new}..{old}"))
            self.pushes = (*self.pushes, Push(day, old, new, dropped))
        return ""

    def snapshot(self, day: int) -> str:
        """Return the tree of the worktree as it is, committed or not."""
        self._git("add", "-A", day=day)
        return self._output("write-tree")

    def log(self, count: int = 20) -> str:
        """Return the last commits of the branch, a line each."""
        return self._output("log", f"-{count}", "--format=%h %an: %s")

    def files(self, commit: str) -> dict[str, str]:
        """Return the hash of every file of a commit, by path."""
        lines = self._output("ls-tree", "-rz", commit).split("\0")
        parts = (line.split("\t", 1) for line in lines if line)
        return {name: head.split()[2] for head, name in parts}

    def check_out(self, commit: str, folder: Path) -> None:
        """Write the files of a commit into a new folder; links become plain files.

        Args:
            commit: A revision.
            folder: Where to.
        """
        folder.mkdir(parents=True)
        index = str(folder.with_suffix(".index"))
        self._git(*("read-tree", "--reset", "-u", commit), day=0, tree=folder, index=index)
        os.unlink(index)

    def bundle(self, path: Path) -> bytes:
        """Return the origin's whole history as a bundle that git clones.

        Args: path: a scratch file.
        """
        self._git("bundle", "create", "-q", str(path), "--all", day=0)
        return path.read_bytes()

    def _output(self, *words: str) -> str:
        done = self._run(words, {}, self.worktree, self._index)
        return done.stdout.decode(errors="replace").strip() if not done.returncode else ""

    def _git(
        self,
        *words: str,
        day: int,
        author: str = "platform",
        tree: Path | None = None,
        index: str = "",
        fails: bool = False,
        given: bytes | None = None,
    ) -> int:
        date, mail = _date(day), _mail(author)
        stamps = {
            "GIT_AUTHOR_NAME": author,
            "GIT_AUTHOR_EMAIL": mail,
            "GIT_COMMITTER_NAME": author,
            "GIT_COMMITTER_EMAIL": mail,
            "GIT_AUTHOR_DATE": date,
            "GIT_COMMITTER_DATE": date,
        }
        place = tree or self.worktree, index or self._index
        done = self._run(words, stamps, *place, given)
        if done.returncode and not (fails and done.returncode == 1):
            text = done.stderr.decode(errors="replace").strip()
            if words[0] in _ON_FILES:
                raise WorktreeFault(f"git {words[0]}: {text[:300]}")
            raise InfrastructureFailure(f"git {words[0]} failed: {text[:300]}")
        return done.returncode

    def _run(
        self,
        words: tuple[str, ...],
        stamps: dict[str, str],
        tree: Path,
        index: Path | str,
        given: bytes | None = None,
    ) -> "subprocess.CompletedProcess[bytes]":
        options = [] if words[0] == "init" else ["--git-dir", str(self.origin)]
        safe = ("core.hooksPath=/dev/null", "core.symlinks=false", "gc.auto=0")
        # One thread: several choose a pack's deltas by their timing.
        more = ("core.fsmonitor=false", "core.autocrlf=false", "pack.threads=1")
        for setting in (*safe, *more):
            options += ["-c", setting]
        environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": "/nonexistent",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_INDEX_FILE": str(index),
            **stamps,
        }
        if words[0] not in ("init", "bundle"):
            environment["GIT_WORK_TREE"] = str(tree)
        return subprocess.run(  # noqa: S603
            ["git", *options, *words],  # noqa: S607
            env=environment,
            cwd=tree if tree.exists() else None,
            capture_output=True,
            input=given,
            check=False,
            timeout=_TIMEOUT_S,
        )

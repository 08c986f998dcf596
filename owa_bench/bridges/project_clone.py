"""Driver of a command that works in a git clone of its project, with plain git.

It runs inside the agent's sandbox and speaks docs/wire-protocol.md for the command: the harness
trusts nothing of it, since all it can do is to send actions. A bare `origin.git` stands for the
platform's: its hook turns a push into the tool `git_push`, and what the platform commits comes by
`git_fetch`. Only the standard library, for it runs alone; `owa-tool` and the hook are this file
too.

Source: docs/projforge.md#existing-coding-agents
"""

import base64
import contextlib
import json
import lzma
import os
import re
import select
import shlex
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_EPOCH = 1_767_225_600  # day 0 of every project
_DAY = re.compile(r"^Day (\d+), \d+ steps left\.$", re.M)
_IGNORED = "__pycache__/\n*.pyc\n.pytest_cache/\n.venv/\n"
_POLL_S = 0.02
_TAIL = 300  # bytes of its last words
_OWN = (  # what files and git of a clone do
    *("read", "write", "patch", "search", "shell", "git_commit", "git_branch"),
    *("git_merge", "git_reset", "git_log", "git_push", "package_pin", "package_add"),
)
_HELP = """
You work in a git clone. Edit files, commit, `git pull --rebase`, `git push`: main of
origin is what counts; each push is a step of the day. A push holds plain text files: no
links, no submodules, no signed commits. Everything else is a command:
  owa-tool NAME [KEY=VALUE .. | JSON]  calls a tool; each call is a step of the day
  owa-tool NAME --help                 shows what it takes
  owa-tool next_day                    ends the day; then `git pull --rebase`
When your program exits the day ends, and it is started again on the next morning.
Every seven days it starts in a fresh clone: what was not pushed is gone, and $MEMORY is
the only other folder that stays. When the project is over, state the probability that
it was delivered: owa-tool finish p=0.9
Tools:
"""


class _SittingEnd(Exception):
    """The harness ends the sitting."""


class CloneDriver:
    """Starts a command each day and passes on what it asks."""

    def __init__(self, words: list[str]) -> None:
        self._words = [os.path.abspath(w) if os.path.isfile(w) else w for w in words]
        self._folder = Path(tempfile.mkdtemp(prefix="project-"))
        self._origin = self._folder / "origin.git"
        self._command: subprocess.Popen[bytes] | None = None
        self._day, self._over, self._called = 0, False, False

    def serve(self) -> None:
        """Play a sitting, from its reset to its close."""
        try:
            terms = self._read("reset")
            self._say({})
            text = self._answer_to(self._read("act"))
            self._prepare(terms)
            self._ask("git_fetch", {})
            clone = self._folder / "clone"
            _git(self._folder, "clone", "-q", str(self._origin), str(clone))
            (clone / ".git/info/exclude").write_text(_IGNORED)
            while True:
                last = self._over
                text = self._run(text)
                if last:
                    self._ask("finish", {"p": 0.5})  # the command stated nothing
        except _SittingEnd:
            self._say({})
        except (OSError, subprocess.SubprocessError) as error:
            self._say({"error": f"the command cannot be played: {error}"})
        finally:
            if self._command is not None:
                self._command.kill()

    def _prepare(self, terms: dict[str, Any]) -> None:
        """Make the origin, its hook, `owa-tool` and the brief."""
        folder = self._folder
        tools = {tool["name"]: tool for tool in terms["tools"]}
        (folder / "tools.json").write_text(json.dumps(tools))
        lines = [f"  {n}: {t['about']}\n" for n, t in tools.items() if n not in _OWN]
        brief = terms["brief"]["text"] + "\n" + _HELP + "".join(lines)
        (folder / "BRIEF.txt").write_text(brief)
        self._memory = terms["memory_dir"]
        _git(folder, "init", "-q", "--bare", "-b", "main", str(self._origin))
        (folder / "bin").mkdir()
        (self._origin / "hooks").mkdir(exist_ok=True)
        me = shlex.join([sys.executable, os.path.realpath(__file__)])
        for mode, place in (("tool", "bin/owa-tool"), ("push", "origin.git/hooks/update")):
            words = f"--{mode} {shlex.quote(str(folder))}"
            (folder / place).write_text(f'#!/bin/sh\nexec {me} {words} "$@"\n')
            (folder / place).chmod(0o755)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / "socket"))
        self._listening.listen(16)

    def _run(self, text: str) -> str:
        """Run the command once; end the day unless it did; return the last text."""
        day, folder = self._day, self._folder
        stamp = f"{_EPOCH + day * 86_400} +0000"
        added = {"BRIEF": str(folder / "BRIEF.txt"), "MEMORY": self._memory}
        added["PATH"] = f"{folder}/bin:{os.environ.get('PATH', '/usr/bin:/bin')}"
        for who in ("AUTHOR", "COMMITTER"):
            added[f"GIT_{who}_NAME"] = "agent"
            added[f"GIT_{who}_EMAIL"] = "agent@project.example"
            added[f"GIT_{who}_DATE"] = stamp
        (folder / "TODAY.txt").write_text(text)
        added["TODAY"] = str(folder / "TODAY.txt")
        log = folder / "command.log"
        with log.open("wb") as prints:
            self._command = subprocess.Popen(  # noqa: S603  the agent
                self._words,
                cwd=folder / "clone",
                env={**os.environ, **added},
                stdin=subprocess.DEVNULL,
                stdout=prints,
                stderr=prints,
            )
        while self._command.poll() is None:
            if select.select([self._listening], [], [], _POLL_S)[0]:
                text = self._serve_client(text)
        code = self._command.returncode
        if code and not self._called:
            words = log.read_bytes()[-_TAIL:].decode(errors="replace")
            raise OSError(f"it called no tool and ended with {code}: {words}")
        if day == self._day and not self._over:
            text = self._ask("next_day", {})
        return text

    def _serve_client(self, text: str) -> str:
        """Answer one call of `owa-tool` or of the hook; return the last text."""
        client, _ = self._listening.accept()
        with client, contextlib.suppress(OSError, ValueError):  # it may be killed
            call = json.loads(client.makefile("rb").readline())
            self._called = True
            text = self._ask(call["tool"], call["arguments"])
            client.sendall(json.dumps(text).encode())
        return text

    def _ask(self, tool: str, arguments: dict[str, Any]) -> str:
        """Return what a call is answered; after a night also fetch."""
        day = self._day
        self._say({"action": {"tool": tool, "arguments": arguments}})
        text = self._answer_to(self._read("act"))
        if self._day > day and not self._over:
            self._say({"action": {"tool": "git_fetch", "arguments": {}}})
            self._answer_to(self._read("act"))
        return text

    def _answer_to(self, request: dict[str, Any]) -> str:
        text = str(request["observation"]["text"])
        found = _DAY.findall(text)
        self._day = int(found[-1]) if found else self._day
        self._over = "The project is over: call finish" in text
        if data := request["info"].get("attachment"):
            file = self._folder / "fetched.bundle"
            file.write_bytes(base64.b64decode(data))
            every = "+refs/heads/*:refs/heads/*"
            _git(self._origin, "fetch", "-q", "--prune", str(file), every)
        return text

    def _read(self, kind: str) -> Any:
        request = json.loads(sys.stdin.readline() or "{}")
        if kind not in request:
            raise _SittingEnd
        return request[kind]

    def _say(self, reply: dict[str, Any]) -> None:
        print(json.dumps(reply), flush=True)


def _git(folder: Path, *words: str) -> bytes:
    line = ["git", "-C", str(folder), *words]
    return subprocess.run(line, check=True, stdout=subprocess.PIPE).stdout  # noqa: S603


def _call(folder: Path, tool: str, arguments: dict[str, Any]) -> str:
    """Return what the driver is answered to a call."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(folder / "socket"))
        with line.makefile("rwb") as stream:
            stream.write(json.dumps({"tool": tool, "arguments": arguments}).encode())
            stream.write(b"\n")
            stream.flush()
            return str(json.loads(stream.read() or b'"The week is over."'))


# --- owa-tool -------------------------------------------------------------------------


def call_tool(folder: Path, words: list[str]) -> int:
    """Call a tool as a command line says, and print the answer.

    Args:
        folder: Of the driver.
        words: The tool's name, then KEY=VALUE words or one JSON object.
    Returns: The exit code: 2 for a line that says no call.
    """
    tools = json.loads((folder / "tools.json").read_text())
    if not words or words[0] in ("-h", "--help"):
        print((folder / "BRIEF.txt").read_text())
        return 0
    name, *rest = words
    if name not in tools:
        print(f"There is no tool {name!r}: {', '.join(tools)}.", file=sys.stderr)
        return 2
    if rest[:1] in (["-h"], ["--help"]):
        print(tools[name]["about"], json.dumps(tools[name]["parameters"], indent=1))
        return 0
    try:
        arguments = _arguments(tools[name]["parameters"], rest)
    except ValueError as error:
        print(f"KEY=VALUE words or a JSON object: {error}", file=sys.stderr)
        return 2
    print(_call(folder, name, arguments))
    return 0


def _arguments(schema: dict[str, Any], words: list[str]) -> dict[str, Any]:
    if words and words[0].startswith("{"):
        found: dict[str, Any] = json.loads(" ".join(words))
        return found
    pairs = dict(word.split("=", 1) for word in words)
    kinds = {key: part.get("type") for key, part in schema["properties"].items()}
    plain = (None, "string")  # None: one of listed words
    return {k: v if kinds.get(k) in plain else json.loads(v) for k, v in pairs.items()}


# --- the hook -------------------------------------------------------------------------


def push(folder: Path, ref: str, old: str, new: str) -> int:
    """Send a push to the platform, as git's `update` hook.

    Args:
        folder: Of the driver.
        ref: What is pushed to.
        old: Its commit, zeros for none.
        new: The commit that is pushed.
    Returns: The exit code: 0 if it is taken.
    """
    branch, there = ref.removeprefix("refs/heads/"), Path.cwd()
    try:
        listed = _git(there, "rev-list", "--reverse", "--topo-order", new, "--not", "--all")
        names = listed.decode().split()
        pack = packed([_commit(there, name, names) for name in names]) if names else ""
    except (ValueError, subprocess.SubprocessError) as error:
        print(f"Not pushed: {error}", file=sys.stderr)
        return 1
    arguments = {"branch": branch, "old": old.strip("0") and old, "new": new}
    text = _call(folder, "git_push", {**arguments, "pack": pack})
    print(text, file=sys.stderr)
    return int(not text.startswith(f"{branch} is {new[:12]}"))


def packed(commits: list[dict[str, Any]]) -> str:
    """Return commits as the tool `git_push` takes them."""
    return base64.b64encode(lzma.compress(json.dumps(commits).encode())).decode()


def _commit(folder: Path, name: str, names: list[str]) -> dict[str, Any]:
    """Return a commit of a clone: its head, and what differs from its first parent."""
    head, _, message = _git(folder, "cat-file", "commit", name).decode().partition("\n\n")
    fields = [line.split(" ", 1) for line in head.split("\n")]
    known = dict(fields)
    if odd := known.keys() - {"tree", "parent", "author", "committer"}:
        raise ValueError(f"a commit with {', '.join(odd)} cannot be pushed")
    parents = [value for key, value in fields if key == "parent"]
    base = [parents[0], name] if parents else ["--root", "--no-commit-id", name]
    words = ("diff-tree", "-r", "-z", "--no-renames", *base)
    parts = _git(folder, *words).decode().split("\0")
    files: dict[str, Any] = {}
    for about, path in zip(parts[::2], parts[1::2], strict=False):
        _, mode, _, blob, status = about.split()
        if status == "D":
            files[path] = ["100644", None]
            continue
        data = _git(folder, "cat-file", "blob", blob)
        try:
            files[path] = [mode, data.decode()]
        except UnicodeDecodeError:
            rule = f"{path} is no text in UTF-8: take it out of the commit"
            raise ValueError(rule) from None
    at = {name: f":{number}" for number, name in enumerate(names, 1)}
    return {
        "parents": [at.get(parent, parent) for parent in parents],
        "author": known["author"],
        "committer": known["committer"],
        "message": message,
        "files": files,
    }


def main(words: list[str]) -> int:
    """Be `owa-tool`, the hook, or the driver of a command."""
    if words[0] == "--tool":
        return call_tool(Path(words[1]), words[2:])
    if words[0] == "--push":
        return push(Path(words[1]), *words[2:5])
    CloneDriver(words).serve()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

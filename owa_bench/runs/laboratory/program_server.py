"""Program server: plays a program's attempts inside its sandbox, each in a fork.

The program is a folder with `agent.py`, which holds a class `Agent` with `reset(brief)` and
`act(text)`. Every attempt is a child of its own, so nothing outlives one: after it each other
process is killed and the writable places are emptied. One line of JSON in, one out. It runs alone:
only the standard library.

Source: docs/selfrev.md#programs
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import shutil
import signal
import sys
import traceback
from collections.abc import Iterator
from typing import Any

FOLDER, ENTRY = "/subject", "agent"
PLACES = ("/work", "/tmp", "/dev/shm")  # noqa: S108  the sandbox's own
CPU_S, WALL_S = 5, 30.0  # of an attempt, and of an answer
LONGEST = 1 << 16  # bytes of an answer
_NOT_DUMPABLE = (4, 0, 0, 0, 0)  # PR_SET_DUMPABLE


def answers(requests: Any) -> Iterator[dict[str, Any]]:
    """Yield the program's answers to the requests of one attempt."""
    sys.path.insert(0, FOLDER)
    module = __import__(ENTRY)
    agent = module.Agent()
    for line in requests:
        request = json.loads(line)
        if "brief" in request:
            agent.reset(request["brief"])
            yield {}
        elif "text" in request:
            action = agent.act(request["text"])
            yield {"action": action if type(action) is str else json.dumps(action)}
        else:
            items = agent.close() if hasattr(agent, "close") else None
            yield {"items": items if type(items) is int else None}


def play_attempt(receiving: int, sending: int) -> None:
    """Play one attempt in this child; never returns.

    Args:
        receiving: Descriptor of its requests.
        sending: That of its answers.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    with os.fdopen(receiving, "rb") as requests, os.fdopen(sending, "wb") as replies:
        try:
            for answer in answers(requests):
                replies.write(json.dumps(answer).encode() + b"\n")
                replies.flush()
        except BaseException as error:  # noqa: BLE001  the program's own
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"
            replies.write(json.dumps({"error": text[:400]}).encode() + b"\n")
    os._exit(0)


class ProgramAttempt:
    """The child that plays one attempt."""

    def __init__(self) -> None:
        receiving, self._sending = os.pipe()
        self._receiving, sending = os.pipe()
        self._rest = b""
        self._child = os.fork()
        if self._child == 0:
            os.close(self._sending)
            os.close(self._receiving)
            play_attempt(receiving, sending)
        os.close(receiving)
        os.close(sending)

    def ask(self, line: bytes) -> bytes:
        """Return the child's answer to a request, or why there is none."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._sending, line)
        while b"\n" not in self._rest and len(self._rest) < LONGEST:
            if not select.select([self._receiving], [], [], WALL_S)[0]:
                return b'{"error": "no answer in time", "timed": true}\n'
            part = os.read(self._receiving, LONGEST)
            if not part:
                return b'{"error": "it ended without an answer", "timed": true}\n'
            self._rest += part
        answer, _, self._rest = self._rest.partition(b"\n")
        return answer[:LONGEST] + b"\n"

    def end(self) -> None:
        """End the child with all that it started; empty what it could write to.

        The server ends too where that cannot be done.
        """
        os.close(self._sending)
        os.close(self._receiving)
        with contextlib.suppress(OSError):
            os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._child, 0)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        for place in PLACES:
            with contextlib.suppress(OSError):
                os.chmod(place, 0o777)  # noqa: S103  an attempt may have closed it
        for entry in (e for place in PLACES for e in os.scandir(place)):
            if entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(RecursionError):
                    shutil.rmtree(entry.path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
        if any(os.listdir(place) for place in PLACES):  # too deep to be removed
            sys.exit()


def main() -> None:
    """Serve attempts until the input ends."""
    ctypes.CDLL(None).prctl(*_NOT_DUMPABLE)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    sys.dont_write_bytecode = True
    attempt: ProgramAttempt | None = None
    for line in sys.stdin.buffer:
        if line.startswith(b'{"brief"'):
            if attempt is not None:
                attempt.end()
            attempt = ProgramAttempt()
        assert attempt is not None  # noqa: S101  a brief comes first
        sys.stdout.buffer.write(attempt.ask(line))
        sys.stdout.buffer.flush()
        if line.startswith(b'{"close"'):
            attempt.end()
            attempt = None


if __name__ == "__main__":
    main()

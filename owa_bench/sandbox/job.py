"""What a sandbox is asked to run and what it answers: one interface, plain records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from owa_bench.errors import FieldError

LimitHit = Literal["wall", "cpu", "memory", "processes", "output", "file"]
Guarantee = Literal[
    "wall", "cpu", "memory", "processes", "output", "environment", "files", "network"
]
LIMITS_ONLY: frozenset[Guarantee] = frozenset(
    {"wall", "cpu", "memory", "processes", "output", "environment"}
)
MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a job may use, over all of its processes together.

    Seconds of wall time, seconds of CPU time of any one process, bytes of resident
    memory, processes alive at once, bytes of output and bytes of any one file.
    """

    wall_s: float = 10.0
    cpu_s: int = 10
    memory: int = 512 * MEBIBYTE
    processes: int = 16
    output: int = MEBIBYTE
    file: int = 64 * MEBIBYTE

    def __post_init__(self) -> None:
        """Refuse limits that nothing can run under."""
        for name in ("wall_s", "cpu_s", "memory", "processes", "output", "file"):
            value = getattr(self, name)
            if value <= 0:
                raise FieldError(name, value, "must be above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """A path of this machine that the job sees, at `target` (the same if empty)."""

    source: Path
    target: str = ""
    writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A command with its limits and everything it may see.

    `binds` are all the files it gets besides `work`, its writable directory; `hidden`
    are directories inside the binds that it sees empty. `env` is its whole
    environment: nothing is inherited.
    """

    argv: tuple[str, ...]
    work: Path
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)
    binds: tuple[Bind, ...] = ()
    hidden: tuple[str, ...] = ()
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        """Refuse an empty command."""
        if not self.argv:
            raise FieldError("argv", self.argv, "must name a program")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a job ended: exit code (128 + signal if killed), output, time, limit hit.

    `output` is standard output and error in the order they were written.
    """

    exit_code: int
    output: bytes
    wall_s: float
    cpu_s: float
    limit: LimitHit | None = None


class Sandbox(Protocol):
    """A place to run a job; `guarantees` says what it truly keeps the job from."""

    name: str
    guarantees: frozenset[Guarantee]

    def run(self, job: Job) -> Result:
        """Run `job` to its end or its first limit and return how it ended."""

"""The connection to the process of a laboratory, and its messages.

Keys and worlds of holdouts exist in that process alone; what comes back are attempts without
instances, and the declared statistic.
"""

import multiprocessing
import subprocess
import sys
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection

import msgspec

from owa_bench.canonical import keyed_digest
from owa_bench.errors import InfrastructureFailure, UsageError
from owa_bench.interfaces import (
    HoldoutResult,
    InnerDraw,
    PlayedAttempt,
    PlayedPair,
    Subject,
    Ticket,
)
from owa_bench.records.holdout import HoldoutPlan, HoldoutStatistic
from owa_bench.records.instance import Instance


class LaboratoryRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message to the process: exactly one of its fields is set, subjects aside."""

    key: bytes = b""
    begin: InnerDraw | None = None
    register: HoldoutPlan | None = None
    ticket: Ticket | None = None
    answer: str = ""
    subjects: tuple[Subject, ...] = ()


class LaboratoryReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a request; `refused` is a UsageError, `failed` anything else."""

    attempts: tuple[PlayedAttempt, ...] = ()
    statistic: HoldoutStatistic | None = None
    plan: str = ""
    refused: str = ""
    failed: str = ""


_SERVICE = "owa_bench.runs.laboratory.service"
_REPLY = msgspec.msgpack.Decoder(LaboratoryReply)


class LaboratoryProcess:
    """The process behind an env's laboratories, started when it is first needed."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._end: Callable[[], object] | None = None

    def __reduce__(self) -> tuple[type["LaboratoryProcess"], tuple[()]]:
        """Return what a copy is made from: it starts a process of its own."""
        return LaboratoryProcess, ()

    def of(self, instance: Instance) -> "RemoteLaboratory":
        """Return the laboratory of an instance's next episode."""
        return RemoteLaboratory(self, laboratory_key(instance))

    def ask(self, request: LaboratoryRequest) -> LaboratoryReply:
        """Send a request and return the reply.

        Raises:
            UsageError: The laboratory refuses it.
            InfrastructureFailure: The process died, or failed at it.
        """
        if self._connection is None:
            self._start()
        assert self._connection is not None  # noqa: S101  it was just started
        try:
            self._connection.send_bytes(msgspec.msgpack.encode(request))
            reply = _REPLY.decode(self._connection.recv_bytes())
        except (EOFError, OSError) as error:
            self.close()
            raise InfrastructureFailure("the laboratory's process died") from error
        if reply.refused:
            raise UsageError(reply.refused)
        if reply.failed:
            raise InfrastructureFailure(f"the laboratory: {reply.failed}")
        return reply

    def close(self) -> None:
        """End the process."""
        if self._end is not None:
            self._end()
        self._connection = self._end = None

    def _start(self) -> None:
        ours, theirs = multiprocessing.Pipe()
        with theirs:
            process = subprocess.Popen(  # noqa: S603  our own module
                [sys.executable, "-m", _SERVICE, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno() if _has_stderr() else subprocess.DEVNULL,
            )
        self._connection = ours
        # An env that nobody closes ends its process when it is forgotten.
        self._end = weakref.finalize(self, _end_process, process, ours)


def _end_process(process: subprocess.Popen[bytes], connection: Connection) -> None:
    connection.close()
    process.kill()
    process.wait()


class RemoteLaboratory:
    """The laboratory of one episode, played by a process of its own.

    Args:
        process: The process.
        key: Of the episode.
    """

    def __init__(self, process: LaboratoryProcess, key: bytes) -> None:
        self._process = process
        self._key = key

    def begin(self, inner: InnerDraw) -> None:
        """Begin a campaign over these instances."""
        self._process.ask(LaboratoryRequest(key=self._key, begin=inner))

    def register(self, plan: HoldoutPlan) -> str:
        """Take a plan before it is played and return its digest."""
        return self._process.ask(LaboratoryRequest(register=plan)).plan

    def play(self, subject: Subject, ticket: Ticket) -> tuple[PlayedAttempt, ...]:
        """Play a subject.

        Args:
            subject: The version.
            ticket: No holdout.
        Returns: An attempt an instance, in order.
        """
        request = LaboratoryRequest(ticket=ticket, subjects=(subject,))
        return self._process.ask(request).attempts

    def answer(self, plan: str, base: Subject, candidate: Subject) -> HoldoutResult:
        """Play the holdout of a registered plan, once.

        Args:
            plan: Its digest.
            base: The version that it names.
            candidate: The other one.
        Returns: Attempts and answer.
        """
        request = LaboratoryRequest(answer=plan, subjects=(base, candidate))
        reply = self._process.ask(request)
        assert reply.statistic is not None  # noqa: S101  an answer has one
        played = iter(reply.attempts)
        pairs = tuple(PlayedPair(*both) for both in zip(played, played, strict=True))
        return HoldoutResult(pairs, reply.statistic)


def laboratory_key(instance: Instance) -> bytes:
    """Return the key of an episode's laboratory: HMAC(seed, "laboratory" | repeat)."""
    seed = instance.seed.to_bytes(8, "big")
    return keyed_digest(seed, "laboratory", str(instance.repeat))


def _has_stderr() -> bool:
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return False
    return True

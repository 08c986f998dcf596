"""The surrogate device in a process of its own; run as a module it serves its standard input.

The process owns engine, unit, guard and log. Over its pipes go commands, and what the device
shows: whoever holds the other end learns nothing else. Messages are frames of MessagePack behind
their length.
"""

import contextlib
import struct
import subprocess
import sys
from typing import IO, Any

import msgspec
import numpy as np

from owa_bench.envs.robosim2real import units
from owa_bench.envs.robosim2real.episode import CommandResult, RobotEpisode
from owa_bench.envs.robosim2real.world import RobotWorld
from owa_bench.errors import InfrastructureFailure
from owa_bench.records.observables import Floats

_LENGTH = struct.Struct("<I")
_MOST = 1 << 20  # bytes of a message


class BeginRequest(msgspec.Struct, frozen=True, kw_only=True, tag="begin"):
    """Begin an episode on a unit."""

    world: RobotWorld
    fleet: int
    unit: int
    seed: int


class TickRequest(msgspec.Struct, frozen=True, kw_only=True, tag="tick"):
    """Play one command; None: the agent sent none that can be read."""

    action: tuple[float, ...] | None


class DeviceReply(msgspec.Struct, frozen=True, kw_only=True):
    """What the device shows, float32 bytes, and what came of the command."""

    observation: bytes
    progress: CommandResult


_REQUEST = msgspec.msgpack.Decoder(BeginRequest | TickRequest)
_REPLY = msgspec.msgpack.Decoder(DeviceReply)


def write_frame(pipe: IO[bytes], message: Any) -> None:
    """Write a message behind its length.

    Args:
        pipe: The pipe; it is flushed.
        message: A struct.
    """
    data = msgspec.msgpack.encode(message)
    pipe.write(_LENGTH.pack(len(data)) + data)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> bytes:
    """Return the next message, b"" at the end.

    Raises: EOFError: the pipe ended within a message.
    """
    head = pipe.read(_LENGTH.size)
    if not head:
        return b""
    size = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else _MOST + 1
    data = pipe.read(size) if size <= _MOST else b""
    if len(data) != size:
        raise EOFError("a message of the device is cut")
    return data


class DeviceProcess:
    """The device as it is seen from outside; one episode at a time.

    Args:
        fleet: The seed that its units are drawn from.
    """

    def __init__(self, fleet: int) -> None:
        self._fleet = fleet
        module = "owa_bench.envs.robosim2real.device_process"
        self._process = subprocess.Popen(  # noqa: S603  our own module
            [sys.executable, "-P", "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._shown = np.zeros(0, dtype=np.float32)

    def begin(self, world: RobotWorld, unit: int, seed: int) -> "DeviceProcess":
        """Begin an episode.

        Args:
            world: The task.
            unit: The unit of the fleet.
            seed: Of all that is drawn while the episode runs.
        Returns: Itself, as what plays the episode.
        """
        self._ask(BeginRequest(world=world, fleet=self._fleet, unit=unit, seed=seed))
        return self

    def tick(self, action: Floats | None) -> CommandResult:
        """Play one command.

        Args:
            action: (6,); None: none could be read.
        Returns: What came of it.
        """
        sent = None if action is None else tuple(action.tolist())
        return self._ask(TickRequest(action=sent)).progress

    def observation(self) -> Any:
        """Return what the device shows now."""
        return self._shown

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # it has ended, and a message was on its way
                if pipe is not None:
                    pipe.close()
        self._process.terminate()
        self._process.wait()

    def _ask(self, request: BeginRequest | TickRequest) -> DeviceReply:
        into, out = self._process.stdin, self._process.stdout
        try:
            if into is None or out is None:
                raise EOFError("it has no pipes")
            write_frame(into, request)
            data = read_frame(out)
        except (OSError, EOFError) as error:
            raise InfrastructureFailure(f"the device's process does not answer: {error}") from error
        if not data:
            raise InfrastructureFailure("the device's process has ended")
        reply = _REPLY.decode(data)
        self._shown = np.frombuffer(reply.observation, np.float32)
        return reply


def serve(into: IO[bytes], out: IO[bytes]) -> None:
    """Play what is asked until the pipe ends.

    Args:
        into: Requests.
        out: Replies.
    """
    episode: RobotEpisode | None = None
    while data := read_frame(into):
        request = _REQUEST.decode(data)
        if isinstance(request, BeginRequest):
            body = units.unit(request.fleet, request.unit)
            episode = RobotEpisode(request.world, body, request.seed, side="surrogate")
            progress = CommandResult()
        elif episode is None:
            raise EOFError("a command before an episode")
        else:
            action = None if request.action is None else np.array(request.action)
            progress = episode.tick(action)
        shown = episode.observation().tobytes()
        write_frame(out, DeviceReply(observation=shown, progress=progress))


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)

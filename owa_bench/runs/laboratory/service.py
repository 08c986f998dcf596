"""The process of a laboratory: serves one connection, and ends with it.

It is `python -m owa_bench.runs.laboratory.service FD`.
"""

import contextlib
import os
import signal
import sys
from multiprocessing.connection import Connection

import msgspec

from owa_bench.errors import OwaError, UsageError
from owa_bench.runs.laboratory.laboratory import LocalLaboratory
from owa_bench.runs.laboratory_process import LaboratoryReply, LaboratoryRequest

_REQUEST = msgspec.msgpack.Decoder(LaboratoryRequest)


class _Service:
    """Serves requests with one laboratory at a time."""

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()
        self._laboratory: LocalLaboratory | None = None

    def reply(self, request: LaboratoryRequest) -> LaboratoryReply:
        """Return the reply to a request."""
        try:
            return self._reply(request)
        except UsageError as error:
            return LaboratoryReply(refused=str(error))
        except (OwaError, ValueError, OSError) as error:
            return LaboratoryReply(failed=f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """Remove what the laboratory holds."""
        self._open.close()

    def _reply(self, request: LaboratoryRequest) -> LaboratoryReply:
        if request.begin is not None:
            self._open.close()
            self._laboratory = LocalLaboratory(request.key)
            self._open.enter_context(self._laboratory)
            self._laboratory.begin(request.begin)
            return LaboratoryReply()
        laboratory = self._laboratory
        if laboratory is None:
            raise UsageError("A laboratory must begin before it plays.")
        if request.register is not None:
            return LaboratoryReply(plan=laboratory.register(request.register))
        if request.ticket is not None:
            return LaboratoryReply(attempts=laboratory.play(request.subjects[0], request.ticket))
        result = laboratory.answer(request.answer, *request.subjects)
        return LaboratoryReply(
            attempts=tuple(attempt for pair in result.pairs for attempt in pair),
            statistic=result.answer,
        )


def main(descriptor: int) -> None:
    """Serve a connection until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.set_inheritable(descriptor, False)
    service = _Service()
    with Connection(descriptor) as connection, contextlib.closing(service):
        while True:
            try:
                request = _REQUEST.decode(connection.recv_bytes())
                connection.send_bytes(msgspec.msgpack.encode(service.reply(request)))
            except (EOFError, OSError):
                return


if __name__ == "__main__":
    main(int(sys.argv[1]))

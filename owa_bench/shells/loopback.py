"""ASGI apps served on a port of 127.0.0.1 from a thread of this process."""

import socket
import threading
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from owa_bench.errors import InfrastructureFailure, error_line
from owa_bench.seeding import fresh_bytes

if TYPE_CHECKING:
    import uvicorn

KEY_HEADER = "x-owa-key"
_START_S = 60.0
_STOP_S = 10.0


def serve_in_thread(server: "uvicorn.Server", sockets: list[socket.socket]) -> threading.Thread:
    """Start a server in a thread of this process, and wait until it answers.

    Args:
        server: What to run.
        sockets: Bound sockets that it listens at.
    Returns: The thread; it ends some time after `server.should_exit` is set.
    Raises: InfrastructureFailure: The server does not start.
    """
    causes: list[BaseException] = []

    def run() -> None:
        try:
            server.run(sockets)
        except BaseException as error:  # noqa: BLE001  said by the thread that waits
            causes.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    deadline = time.monotonic() + _START_S
    while not server.started:
        if not thread.is_alive():
            cause = error_line(causes[0]) if causes else "it ended in order"
            raise InfrastructureFailure(f"A local server did not start: {cause}.")
        if time.monotonic() > deadline:
            raise InfrastructureFailure(f"A local server did not start within {_START_S:.0f} s.")
        time.sleep(0.0005)
    return thread


class LoopbackServer:
    """Serves `app`, which may be replaced at any time.

    Where it is `guarded` it answers those alone who send its key: an agent on this machine could
    find the port, and nobody would record what it did there.
    """

    def __init__(self, app: ASGIApp, port: int = 0, *, guarded: bool = False) -> None:
        import uvicorn  # few episodes are played over sockets

        self.app = app
        self.key = fresh_bytes().hex() if guarded else ""
        # With IPPROTO_TCP: without it Nagle's algorithm adds 44 ms to every request.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            self._forward,
            http="h11",
            loop="asyncio",
            interface="asgi3",
            proxy_headers=False,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            date_header=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = serve_in_thread(self._server, [self._socket])

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.key:
            named = (KEY_HEADER.encode(), self.key.encode())
            if named not in scope["headers"]:
                await Response(status_code=HTTPStatus.FORBIDDEN)(scope, receive, send)
                return
            scope = {**scope, "headers": [h for h in scope["headers"] if h != named]}
        await self.app(scope, receive, send)

    def join(self) -> None:
        """Serve until the thread ends."""
        self._thread.join()

    def close(self, *, wait: bool = True) -> None:
        """Tell the server to stop; it closes its socket as it goes."""
        self._server.should_exit = True
        if wait:
            self._thread.join(_STOP_S)

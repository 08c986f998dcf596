"""One session over MCP, and its reward: what stands beside an agent in a task of Harbor.

    python -m owa_bench.bridges.session_server '{"suite": "toolquest", "seed": 7}' [PORT]

Streamable HTTP at /mcp, without a token: for a network of two containers and no other. /reward
answers with the sum of rewards, whether the episode has ended and how. Needs the extra `[mcp]`.
Source: docs/train-a-language-model.md#harbor
"""

import json
import sys
import threading
from collections.abc import Sequence
from typing import Any

from starlette.responses import JSONResponse
from starlette.routing import Route

from owa_bench.bridges import mcp
from owa_bench.bridges.client_calls import ENDED, ClientResult
from owa_bench.interfaces import Brief, ToolSpec
from owa_bench.runs.episode_session import EpisodeSession, open_episode

PORT = 8000


class SessionCalls:
    """Calls of MCP clients for one session."""

    def __init__(self, session: EpisodeSession) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._task = str(session.messages[1]["content"])
        self.brief = Brief(text=self._task, goal={})

    @property
    def task(self) -> str:
        """The task as a client reads it."""
        return self._task

    def connect(self) -> None:
        """Do nothing: no deadline waits for a client."""

    @property
    def offered(self) -> tuple[ToolSpec, ...]:
        """The tools that may be called now."""
        functions = [tool["function"] for tool in self._session.tools]
        return tuple(
            ToolSpec(name=f["name"], about=f["description"], parameters=f["parameters"])
            for f in functions
        )

    def call(self, tool: str, arguments: dict[str, Any] | None) -> ClientResult:
        """Play a call.

        Args:
            tool: Name of the tool.
            arguments: Of the call; None for none.
        Returns: Its result.
        """
        with self._lock:
            if self._session.done:
                return ClientResult(ENDED, error=True, ended=True)
            reply = self._session.call(tool, arguments)
            return ClientResult(reply.text, "error" in reply.info, reply.done)

    def reward(self) -> dict[str, Any]:
        """Return what the episode is worth so far."""
        session = self._session
        return {"reward": session.reward, "done": session.done, "success": session.success}


def application(session: EpisodeSession) -> Any:
    """Return the ASGI application of a session."""
    from mcp.server.transport_security import TransportSecuritySettings

    calls = SessionCalls(session)
    app = mcp.server_of(calls).streamable_http_app(
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=False  # the client is another container
        )
    )

    async def reward(_request: Any) -> JSONResponse:
        return JSONResponse(calls.reward())

    app.router.routes.append(Route("/reward", reward))
    return app


def main(words: Sequence[str]) -> None:
    """Serve the session of a JSON object of fields of `open_episode`, at a port."""
    import uvicorn

    given, *port = words
    mcp.require()
    with open_episode(**json.loads(given)) as session:
        uvicorn.run(
            application(session),
            host="0.0.0.0",  # noqa: S104  another container calls
            port=int(port[0]) if port else PORT,
            log_level="warning",
        )


if __name__ == "__main__":
    main(sys.argv[1:])

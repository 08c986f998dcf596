"""`owa-bench serve`: an instance's tools over MCP, each call one recorded step.

Any MCP client plays an ordinary episode: the loop, the recorder, budgets and deadlines are those of
`owa-bench run`, and what comes of it is an ordinary run directory.
"""

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import anyio
import anyio.to_thread
import msgspec

from owa_bench.bridges.client_calls import BRIEF, POLL_S, ClientCalls, ClientResult, ClientRun
from owa_bench.bridges.client_door import ClientDoor, fresh_token
from owa_bench.errors import MissingPartError, UsageError, extra
from owa_bench.interfaces import Brief, ToolSpec
from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play.batch import RunSummary

NAME = "owa-bench"
BRIEF_URI = "owa-bench://brief"
GOAL_URI = "owa-bench://goal"
_LINGER_S = 1.0  # from the last answer to the end of an HTTP server


class Address(NamedTuple):
    """Where the streamable HTTP transport listens, and its token; its path is /mcp.

    `token` "": a fresh one is made.
    """

    host: str = "127.0.0.1"
    port: int = 8321
    token: str = ""

    @property
    def url(self) -> str:
        """The address to give to a client."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/mcp"

    @property
    def line(self) -> str:
        """The client's configuration in a line, with the token."""
        headers = {"Authorization": f"Bearer {self.token}"}
        server = {"type": "http", "url": self.url, "headers": headers}
        return json.dumps({"mcpServers": {NAME: server}})


def serve(
    request: Request | None,
    out: Path,
    options: RunOptions,
    address: Address | None = None,
    announce: Callable[[str], None] = lambda _: None,
) -> RunSummary:
    """Serve the episodes of a run until they are played or the client leaves.

    A client that leaves within an episode has failed it; episodes that were not begun can be played
    later.

    Args:
        request: the run; None continues the one in `out`.
        out: the run directory.
        options: of the run.
        address: of the HTTP server; None serves standard input and output.
        announce: takes the line to paste into a client once the HTTP server listens.
    Returns: What the run directory holds.
    Raises:
        MissingPartError: the package `mcp` is not installed.
        UsageError: nothing can listen at the address; also those of `batch.play`.
    """
    require()
    listener = address and _listener(address)
    calls = ClientCalls()
    player = ClientRun(calls, request, out, options)
    player.start()
    try:
        if player.wait_for_episode():
            if address is None or listener is None:
                anyio.run(_stdio, calls)
            else:
                idle_s = read_plan(RunLayout(out)).budget.act_s
                anyio.run(_http, calls, address, listener, player, announce, idle_s)
    finally:
        if listener is not None:
            listener.close()
        calls.disconnect()
        player.join()
    return player.summary()


# --- the protocol ---------------------------------------------------------------------


class OfferedCalls(Protocol):
    """What an MCP server of one episode asks: `ClientCalls`, or those of a session."""

    brief: Brief

    @property
    def task(self) -> str:
        """The task as a client reads it."""

    @property
    def offered(self) -> tuple[ToolSpec, ...]:
        """The tools that may be called now."""

    def connect(self) -> None:
        """Note that a client is there."""

    def call(self, tool: str, arguments: dict[str, Any] | None) -> ClientResult:
        """Play a call.

        Args:
            tool: Name of the tool.
            arguments: Of the call; None for none.
        Returns: Its result.
        """


def server_of(calls: OfferedCalls) -> Any:
    """Return the MCP server over calls of a client; an episode must be open."""
    from mcp import types
    from mcp.server.lowlevel.server import Server

    async def list_tools(context: Any, given: Any) -> Any:
        calls.connect()
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name, description=tool.about, input_schema=dict(tool.parameters)
                )
                for tool in calls.offered
            ]
        )

    async def call_tool(context: Any, given: Any) -> Any:
        answer = await anyio.to_thread.run_sync(
            calls.call, given.name, given.arguments, abandon_on_cancel=True
        )
        text = types.TextContent(type="text", text=answer.text)
        return types.CallToolResult(content=[text], is_error=answer.error)

    async def list_resources(context: Any, given: Any) -> Any:
        named = {BRIEF_URI: (BRIEF, "The task."), GOAL_URI: ("goal", "The same as JSON.")}
        return types.ListResourcesResult(
            resources=[
                types.Resource(name=name, uri=uri, description=about)
                for uri, (name, about) in named.items()
            ]
        )

    async def read_resource(context: Any, given: Any) -> Any:
        calls.connect()
        goal = msgspec.json.encode(calls.brief.goal).decode()
        texts = {BRIEF_URI: calls.task, GOAL_URI: goal}
        text = texts.get(str(given.uri), f"There are {', '.join(texts)}.")
        content = types.TextResourceContents(uri=given.uri, mime_type="text/plain", text=text)
        return types.ReadResourceResult(contents=[content])

    async def list_prompts(context: Any, given: Any) -> Any:
        about = "The present episode's task."
        return types.ListPromptsResult(prompts=[types.Prompt(name=BRIEF, description=about)])

    async def get_prompt(context: Any, given: Any) -> Any:
        calls.connect()
        text = types.TextContent(type="text", text=calls.task)
        message = types.PromptMessage(role="user", content=text)
        return types.GetPromptResult(messages=[message])

    return Server(
        NAME,
        instructions=calls.task,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def door_of(calls: ClientCalls, address: Address, idle_s: float) -> ClientDoor:
    """Return the application that serves one client over streamable HTTP.

    Args:
        calls: Of the client; an episode must be open.
        address: Where it listens, and its token.
        idle_s: Seconds without a request after which a session has ended.
    Returns: The application, behind its door, which checks hosts and origins.
    """
    from mcp.server.transport_security import TransportSecuritySettings
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

    app = server_of(calls).streamable_http_app(
        host=address.host,
        session_idle_timeout=idle_s,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=False  # the door's own
        ),
    )
    return ClientDoor(
        app,
        token=address.token,
        host=address.host,
        idle_s=idle_s,
        versions=HANDSHAKE_PROTOCOL_VERSIONS,
    )


async def _stdio(calls: ClientCalls) -> None:
    """Serve the client at standard input and output until it closes them."""
    from mcp.server.stdio import stdio_server

    server = server_of(calls)
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


def _listener(address: Address) -> socket.socket:
    """Return a socket that listens there; UsageError where that cannot be."""
    try:
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        return socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        why = str(error.strerror).partition(" (while")[0]
        raise UsageError(
            f"{address.host}:{address.port} cannot be listened at: {why}. "
            "Name another with --host and --port (0: any free one)."
        ) from error


async def _http(
    calls: ClientCalls,
    address: Address,
    listener: socket.socket,
    player: ClientRun,
    announce: Callable[[str], None],
    idle_s: float,
) -> None:
    """Serve over streamable HTTP until the last episode has been played."""
    import uvicorn

    token = address.token or fresh_token()
    address = address._replace(port=listener.getsockname()[1], token=token)
    app = door_of(calls, address, idle_s)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2))

    async def end_with_the_run() -> None:
        while player.is_alive():
            await anyio.sleep(POLL_S)
        await anyio.sleep(_LINGER_S)
        server.should_exit = True

    announce(address.line)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(end_with_the_run)
        await server.serve(sockets=[listener])
        tasks.cancel_scope.cancel()


def require() -> None:
    """Refuse where the package is not installed. Raises: MissingPartError."""
    try:
        import mcp.server.lowlevel.server
        import mcp.types  # noqa: F401
    except ImportError as error:
        part = "the package `mcp` (2 or later)"
        raise MissingPartError(part, extra("mcp")) from error

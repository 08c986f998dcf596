"""A chat endpoint on loopback whose "model" is a policy: messages -> reply."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

Messages = list[dict[str, Any]]
Policy = Callable[[Messages], Response | dict[str, Any]]

TOKENS_IN, TOKENS_OUT = 700, 30  # what the stub says of every request


def completion(
    *calls: tuple[str, Any], content: str = "", usage: bool = True, **more: Any
) -> dict[str, Any]:
    """Return the body of a reply with these tool calls: (name, arguments)."""
    written = [
        {
            "id": f"c{place}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": given if isinstance(given, str) else json.dumps(given),
            },
        }
        for place, (name, given) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": content, "tool_calls": written}
    counted = {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT}
    return {
        "choices": [{"message": message, "finish_reason": "stop"}],
        **({"usage": counted} if usage else {}),
        **more,
    }


def error(status: int, message: str, **headers: str) -> JSONResponse:
    return JSONResponse({"error": {"message": message}}, status, headers=headers)


@contextmanager
def running(app: Starlette) -> Iterator[str]:
    """Yield the address of a server on loopback that runs an app in a thread."""
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join(10)


@contextmanager
def serving(policy: Policy, key: str = "", *, whole: bool = False) -> Iterator[str]:
    """Yield the base URL of a server that asks for `key` and answers by `policy`.

    `whole`: the policy gets the whole body of a request in place of its messages.
    """

    async def chat(request: Request) -> Response:
        given = request.headers.get("authorization", "")
        if key and given != f"Bearer {key}":
            return error(401, f"Incorrect API key provided: {given}")
        body = await request.json()
        answer = policy(body if whole else body["messages"])
        return answer if isinstance(answer, Response) else JSONResponse(answer)

    app = Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])
    with running(app) as address:
        yield f"{address}/v1"

"""A chat server on loopback with one habit: it answers as a row of the table says."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.builders.stub_server import running

USAGE = {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940}
PLAN = (("vault", {}), ("finish", {"answer": "", "p": 0.25}))


@dataclass(frozen=True)
class Ask:
    """One request: `turn` counts the model's replies in it, `number` all before it."""

    body: Mapping[str, Any]
    turn: int
    number: int
    path: str
    query: str
    headers: Mapping[str, str]
    port: int = 0  # of the connection's other end

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body.get("messages", [])

    @property
    def replies(self) -> list[dict[str, Any]]:
        """The model's own messages, as they were sent back."""
        return [m for m in self.messages if m["role"] == "assistant"]

    @property
    def characters(self) -> int:
        return len(json.dumps(self.messages))


Answer = Callable[[Ask], dict[str, Any] | Response]


@dataclass
class Server:
    """The server of one row and what it was asked."""

    answer: Answer
    asked: list[Ask] = field(default_factory=list)

    async def __call__(self, request: Request) -> Response:
        data = await request.body()
        body = json.loads(data) if data else {}
        turn = sum(m["role"] == "assistant" for m in body.get("messages", []))
        ask = Ask(
            body=body,
            turn=turn,
            number=len(self.asked),
            path=request.url.path,
            query=request.url.query,
            headers=dict(request.headers),
            port=request.client.port if request.client else 0,
        )
        self.asked.append(ask)
        given = await run_in_threadpool(self.answer, ask)
        if isinstance(given, Response):
            return given
        if body.get("stream"):
            return as_stream(given)
        return JSONResponse(given)


@contextmanager
def serving(answer: Answer) -> Iterator[tuple[str, Server]]:
    """Yield the base address of a server and the server."""
    server = Server(answer)
    app = Starlette(routes=[Route("/{path:path}", server.__call__, methods=["GET", "POST"])])
    with running(app) as address:
        yield address, server


# --- replies --------------------------------------------------------------------------


def call(turn: int, **more: Any) -> dict[str, Any]:
    """Return the tool call that the plan has for a turn."""
    name, arguments = PLAN[min(turn, len(PLAN) - 1)]
    return {
        "id": f"call_{turn}_x",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
        **more,
    }


def reply(turn: int, **message: Any) -> dict[str, Any]:
    """Return the completion of a turn; fields of its message are added or replaced."""
    whole = {"role": "assistant", "content": None, "tool_calls": [call(turn)], **message}
    return completion({k: v for k, v in whole.items() if v is not DROP})


def completion(message: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "stub-1",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": USAGE,
        **more,
    }


DROP = object()  # a field that is left out


def usual(ask: Ask) -> dict[str, Any]:
    """Answer as most servers do."""
    return reply(ask.turn)


def error(status: int, message: str, **more: Any) -> JSONResponse:
    headers = more.pop("headers", None)
    return JSONResponse({"error": {"message": message, **more}}, status, headers)


def as_stream(whole: Mapping[str, Any], end: str = "\n", usage: Any = USAGE) -> Response:
    """Return a completion as server-sent events, its calls in two pieces."""
    message = whole["choices"][0]["message"]
    chunks: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    for place, made in enumerate(message.get("tool_calls") or ()):
        text = made["function"]["arguments"]
        head = {**made, "index": place, "function": {**made["function"], "arguments": ""}}
        chunks.append({"tool_calls": [head]})
        for part in (text[:3], text[3:]):
            chunks.append({"tool_calls": [{"index": place, "function": {"arguments": part}}]})
    frame = {k: whole[k] for k in ("id", "created", "model")}
    frame["object"] = "chat.completion.chunk"
    lines = [
        {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in chunks
    ]
    lines.append({**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    if usage is not None:
        lines.append({**frame, "choices": [], "usage": usage})
    body = [f"data: {json.dumps(line)}{end}{end}" for line in lines]
    body.append(f"data: [DONE]{end}{end}")
    return StreamingResponse(iter(body), media_type="text/event-stream")


def page(text: str, status: int = 200) -> Response:
    return Response(text, status, media_type="text/html")

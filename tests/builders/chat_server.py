"""A chat server of switchable habits, as an ASGI app: for tests of the model probe."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.builders.stub_server import error, running

MODEL = "qwen3-8b"
IN_TEXT = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'


class Habits(NamedTuple):
    """How a server behaves; the default can do everything."""

    key: str = ""
    echo_key: bool = False
    tools: str = "yes"  # yes, prose, text, refused, objects, no ids, no parser, cold
    required: str = "yes"  # yes, ignored, refused
    refuses: tuple[str, ...] = ()  # fields of a request
    busy_with: str = ""  # a field, answered with 429
    usage: bool = True
    stream_usage: bool = True
    cached: bool = True
    written: int = 9
    parallel: bool = True
    seeded: bool = True
    reasoning: str = ""  # field
    needs_reasoning: bool = False
    told: int = 0
    longest: int = 10_000_000  # tokens; a longer prompt is refused
    cut: int = 0  # tokens; a longer prompt is cut without a word
    stuck_after: int = 1_000  # requests; a later one gets no reply
    page: bool = False
    status: int = 200
    path: str = "/v1"
    props: Any = None
    show: Any = None


class _Server:
    """The app's handlers, with what it has seen."""

    def __init__(self, habits: Habits) -> None:
        self.habits = habits
        self.prompts: set[str] = set()
        self.requests: list[dict[str, Any]] = []
        self.drawn = 0

    def app(self) -> Starlette:
        path = self.habits.path
        return Starlette(
            routes=[
                Route(f"{path}/chat/completions", self.chat, methods=["POST"]),
                Route(f"{path}/models", self.models),
                Route("/props", self.props),
                Route("/api/show", self.show, methods=["POST"]),
                *([Route("/{any:path}", page, methods=["GET", "POST"])] * self.habits.page),
            ]
        )

    def _refusal(self, request: Request) -> Response | None:
        given = request.headers.get("authorization", "")
        habits = self.habits
        if habits.page:
            return HTMLResponse("<html><form>Sign in</form></html>")
        if habits.key and given != f"Bearer {habits.key}":
            return error(401, f"Incorrect API key provided: {given}")
        if habits.status != 200:
            return error(habits.status, f"no luck with {given}")
        return None

    async def props(self, _: Request) -> Response:
        return JSONResponse(self.habits.props) if self.habits.props else error(404, "x")

    async def show(self, _: Request) -> Response:
        return JSONResponse(self.habits.show) if self.habits.show else error(404, "x")

    async def models(self, request: Request) -> Response:
        told = {"max_model_len": self.habits.told} if self.habits.told else {}
        entry = {"id": MODEL, **told}
        return self._refusal(request) or JSONResponse({"data": [entry]})

    async def chat(self, request: Request) -> Response:
        habits, body = self.habits, await request.json()
        self.requests.append(body)
        if len(self.requests) > habits.stuck_after:
            await asyncio.sleep(600)
        if refusal := self._refusal(request):
            return refusal
        if habits.echo_key:
            return error(400, f"bad header {request.headers['authorization']}")
        if body["model"] != MODEL:
            return error(404, f"The model `{body['model']}` does not exist.")
        for name in habits.refuses:
            if name in body or f"{name}={body.get(name)}" in habits.refuses:
                return error(400, f"Unsupported parameter: '{name}'.")
        if habits.busy_with in body:
            return error(429, "too many requests")
        tokens = len(json.dumps(body["messages"])) // 4
        if tokens > habits.longest:
            return error(400, f"maximum context length is {habits.longest} tokens")
        if body.get("tools") and habits.tools == "refused":
            return error(400, f"{MODEL} does not support tools")
        return self._reply(body, min(tokens, habits.cut or tokens))

    def _reply(self, body: dict[str, Any], tokens: int) -> Response:
        habits, messages = self.habits, body["messages"]
        turn = [m for m in messages if m["role"] == "assistant"]
        if turn and habits.needs_reasoning and habits.reasoning not in turn[0]:
            return error(400, f"{habits.reasoning} must be passed back")
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        if habits.reasoning:
            message[habits.reasoning] = "Let me think."
        if body.get("tools"):
            fault = self._call(body, message)
            if fault is not None:
                return fault
        else:
            self.drawn += not habits.seeded
            message["content"] = f"yes {self.drawn}"
        usage: dict[str, Any] = {"prompt_tokens": tokens, "completion_tokens": habits.written}
        text = json.dumps(messages)
        if habits.cached:
            hit = tokens if text in self.prompts else 0
            usage["prompt_tokens_details"] = {"cached_tokens": hit}
        self.prompts.add(text)
        if body.get("stream"):
            return StreamingResponse(self._events(usage), media_type="text/event-stream")
        reply = {"model": MODEL, "choices": [{"message": message}]}
        return JSONResponse(reply | ({"usage": usage} if habits.usage else {}))

    def _call(self, body: dict[str, Any], message: dict[str, Any]) -> Response | None:
        habits, choice = self.habits, body.get("tool_choice", "auto")
        if choice != "auto" and habits.required == "refused":
            return error(400, "tool_choice is not supported")
        demanded = choice != "auto" and habits.required == "yes"
        if habits.tools == "no parser" and not demanded:
            return error(400, '"auto" tool choice requires --enable-auto-tool-choice')
        cold = habits.tools == "cold" and body.get("temperature") != 0
        if (cold or habits.tools in {"prose", "text"}) and not demanded:
            message["content"] = IN_TEXT if habits.tools == "text" else "It is 5."
            return None
        if "Hello" in body["messages"][0]["content"] and not demanded:
            message["content"] = "I am a model."
            return None
        name = choice["function"]["name"] if isinstance(choice, dict) else "add"
        arguments: Any = {"a": 2, "b": 3}
        if habits.tools != "objects":
            arguments = json.dumps(arguments)
        call = {"type": "function", "function": {"name": name, "arguments": arguments}}
        several = habits.parallel and "twice" in body["messages"][0]["content"]
        message["tool_calls"] = [
            call | ({} if habits.tools == "no ids" else {"id": f"c{place}"})
            for place in range(2 if several else 1)
        ]
        return None

    async def _events(self, usage: dict[str, Any]) -> Any:
        for word in ("one", "two", "three", "four", "five"):
            await asyncio.sleep(0.001)
            chunk = {"choices": [{"delta": {"content": word}}]}
            yield f"data: {json.dumps(chunk)}\r\n\r\n"
        if self.habits.usage and self.habits.stream_usage:
            yield f"data: {json.dumps({'choices': [], 'usage': usage})}\r\n\r\n"
        yield "data: [DONE]\r\n\r\n"


async def page(_: Request) -> Response:
    return HTMLResponse("<html>Welcome</html>")


def chat_server(habits: Habits) -> _Server:
    """Return a server; its `app()` is an ASGI app, `requests` what it was asked."""
    return _Server(habits)


@contextmanager
def listening(habits: Habits) -> Iterator[str]:
    """Yield the base URL of a server on loopback."""
    with running(chat_server(habits).app()) as address:
        yield f"{address}{habits.path}"

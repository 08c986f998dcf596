"""Servers on loopback that speak three providers' forms; they keep what was asked."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

TOKENS = (16, 7, 5)  # read, written, of those read from a cache
CALL = {"name": "finish", "arguments": {"p": 0.5}}


class Asked(NamedTuple):
    """One request that a stub got."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


def _anthropic(model: str) -> dict[str, Any]:
    use = {"type": "tool_use", "id": "t1", "name": "finish", "input": {"p": 0.5}}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": "done"}, use],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 11,
            "cache_read_input_tokens": 5,
            "cache_creation_input_tokens": 0,
            "output_tokens": 7,
        },
    }


def _gemini(model: str) -> dict[str, Any]:
    call = {"functionCall": {"name": "finish", "args": {"p": 0.5}}}
    return {
        "candidates": [
            {"content": {"role": "model", "parts": [call]}, "finishReason": "STOP", "index": 0}
        ],
        "usageMetadata": {
            "promptTokenCount": 16,
            "candidatesTokenCount": 7,
            "cachedContentTokenCount": 5,
            "totalTokenCount": 23,
        },
        "modelVersion": model,
    }


def _responses(model: str) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": model,
        "output": [
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "finish",
                "arguments": '{"p": 0.5}',
                "status": "completed",
            }
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 16,
            "output_tokens": 7,
            "total_tokens": 23,
            "input_tokens_details": {"cached_tokens": 5},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


# Path of a request for the model `m`, where its key stands, and its reply.
FORMS = {
    "anthropic": ("/v1/messages", "x-api-key", _anthropic),
    "gemini": ("/models/m:generateContent", "x-goog-api-key", _gemini),
    "responses": ("/responses", "authorization", _responses),
}


@contextmanager
def provider(
    api: str, key: str, status: int = 200, words: str = "no"
) -> Iterator[tuple[str, list[Asked]]]:
    """Yield the address of a provider that asks for `key`, and what it was asked."""
    asked: list[Asked] = []
    path, header, reply = FORMS[api]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked.append(Asked(self.path, headers, body))
            code = status if headers.get(header, "").endswith(key) else 401
            code = code if self.path == path else 404
            said = {"error": {"type": "error", "message": f"{words} {key}"}}
            self._send(code, reply("m") if code == 200 else said)

        def _send(self, code: int, document: dict[str, Any]) -> None:
            data = json.dumps(document).encode()
            self.send_response(code)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()
    thread.join()

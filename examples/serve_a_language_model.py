r"""Serve a model of `train_a_language_model.py` by the OpenAI chat protocol, to play it in a run.

    python examples/serve_a_language_model.py runs/trained --port 8100
    owa-bench run --suite recall --family working_memory --tier 1 --delta 0,.5 --out runs/played \
        --model-url http://127.0.0.1:8100/v1 --agent language-model:model=trained

Messages and tools are read in the short form that the model learnt.
"""

import argparse
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch
from train_a_language_model import (
    END,
    Config,
    Feed,
    Player,
    Transcript,
    call_text,
    load_model,
    opening,
    read_call,
    turn,
)


class ChatServer(ThreadingHTTPServer):
    """The model behind the OpenAI chat protocol, one request at a time."""

    daemon_threads = True

    def __init__(self, player: Player, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Requests)
        self.player, self.lock = player, threading.Lock()

    @torch.no_grad()
    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return a completion: the likeliest call, or a text where none can be read."""
        player = self.player
        heard = conversation(player, request["messages"], request.get("tools", ()))
        ids = heard.view(player.config.piece)
        with self.lock:
            written = player.write(Feed(player.model, 1), [ids], [True], 0.0, None)[0]
        text = player.tokenizer.decode(written)[: -len(END)]
        name, arguments = read_call(text)
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if name in {tool["function"]["name"] for tool in request.get("tools", ())}:
            function = {"name": name, "arguments": arguments}
            message["tool_calls"] = [
                {"id": f"call{len(ids):08d}", "type": "function", "function": function}
            ]
        else:
            message["content"] = text
        usage = {
            "prompt_tokens": len(ids),
            "completion_tokens": len(written),
            "total_tokens": len(ids) + len(written),
        }
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        names = {"id": f"chat{len(ids):08d}", "object": "chat.completion", "created": 0}
        return {**names, "model": request.get("model", ""), "choices": [choice], "usage": usage}


def conversation(
    player: Player, messages: Sequence[Mapping[str, Any]], tools: Iterable[Mapping[str, Any]]
) -> Transcript:
    """Return messages of the chat protocol in the short form, as the model learnt it."""
    ids = player.tokens(opening(messages, tools))
    found = Transcript(ids, [False] * len(ids))
    first = next(place for place, each in enumerate(messages) if each["role"] == "user")
    for each in messages[first + 1 :]:
        begun = len(found.ids)
        if each["role"] == "assistant":
            calls = [one["function"] for one in each.get("tool_calls") or ()]
            said = [call_text(call["name"], call["arguments"]) for call in calls]
            text = "\n".join(said or [each.get("content") or ""]) + END
            found.add(player.tokens(text), own=True)
            found.turns.append((begun, len(found.ids), 0.0))
        else:
            found.add(player.tokens("\n" + turn(str(each["content"]))), own=False)
    return found


class _Requests(BaseHTTPRequestHandler):
    server: ChatServer

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": "trained", "object": "model"}]})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self._send(self.server.answer(json.loads(body)))

    def _send(self, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="of a training")
    parser.add_argument("--phase", default="trained", help="pretrained, imitation or trained")
    parser.add_argument("--port", type=int, default=8100)
    given = parser.parse_args()
    place = given.folder / given.phase
    if not (place / "config.json").exists():
        parser.error(f"no model in {place}: train one, or name a --phase that has ended")
    config = Config(**json.loads((given.folder / "config.json").read_text()))
    server = ChatServer(Player(*load_model(place), config), given.port)
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

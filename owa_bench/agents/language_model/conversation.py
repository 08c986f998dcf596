"""The conversation so far, kept within what the model can read.

The brief is never touched. When a request would be too long the oldest tool results are
cut to their beginnings, then the oldest turns are left out; the last turn stays whole.
Of pictures of the window only the newest is sent.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from owa_bench.agents.language_model.replies import Reply, shown
from owa_bench.canonical import sha256

Message = Mapping[str, Any]
_HEAD = 200  # characters that stay of a result that is cut
_CUT = "\n[cut to save room; it had {} characters: ask again for what you need]"
_NOW = "The window now:"
_GONE = "[an older picture of the window was here]"
_PICTURE = 4_000  # characters that a picture counts for: about a thousand tokens
_AIM = (
    0.75  # share of the room that is used after trimming, so it is not done each turn
)


class Conversation:
    """The messages of one episode: system, brief, then turns."""

    def __init__(self, system: str, brief: str) -> None:
        self._head: tuple[Message, ...] = (
            {"role": "system", "content": system},
            {"role": "user", "content": brief},
        )
        self._turns: list[list[Message]] = []
        self._told = 0

    @property
    def messages(self) -> list[Message]:
        """Every message, oldest first."""
        return [*self._head, *(message for turn in self._turns for message in turn)]

    def said(self, reply: Reply) -> None:
        """Take a reply whose tool calls will all be answered."""
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in reply.calls
        ]
        words = {"role": "assistant", "content": reply.content, "tool_calls": calls}
        self._turns.append([words])

    def said_wrongly(self, reply: Reply) -> None:
        """Take a malformed reply, as words: servers choke on malformed calls."""
        self._turns.append([{"role": "assistant", "content": shown(reply)}])

    def heard(self, text: str, call_id: str | None) -> None:
        """Take the result of a tool call, or words to the model (no id)."""
        if call_id is None:
            self._turns[-1].append({"role": "user", "content": text})
        else:
            tool = {"role": "tool", "tool_call_id": call_id, "content": text}
            self._turns[-1].append(tool)

    def saw(self, picture: str) -> None:
        """Take a picture of the window, a data address; older ones are let go.

        Servers want all results of a turn's calls in a row: it comes after the last.
        """
        self._head = tuple(map(_without_picture, self._head))
        for turn in self._turns:
            turn[:] = map(_without_picture, turn)
        shows = {"type": "image_url", "image_url": {"url": picture}}
        words = {"type": "text", "text": _NOW}
        message = {"role": "user", "content": [words, shows]}
        if self._turns:
            self._turns[-1].append(message)
        else:
            self._head = (*self._head, message)

    def news(self) -> list[Message]:
        """Return the messages since this was last asked; all after a trimming.

        For the record: a picture is named by its digest.
        """
        messages = self.messages
        fresh = messages[self._told :]
        self._told = len(messages)
        return [_recorded(message) for message in fresh]

    def trim(self, room: float) -> bool:
        """Shorten to at most `room` characters; return whether that was possible."""
        if self._size() <= room:
            return True
        self._told = 0
        aim = room * _AIM
        for turn in self._turns[:-1]:
            if self._size() <= aim:
                return True
            turn[:] = [_shortened(message) for message in turn]
        while self._size() > aim and len(self._turns) > 1:
            del self._turns[0]
        return self._size() <= room

    def _size(self) -> int:
        return size(self.messages)


def size(messages: Sequence[Message]) -> int:
    """Return the characters of messages as they are sent, a picture as so many."""
    pictures = sum(_is_picture(message) for message in messages)
    return len(json.dumps([_recorded(m) for m in messages])) + _PICTURE * pictures


def _is_picture(message: Message) -> bool:
    return isinstance(message.get("content"), list)


def _without_picture(message: Message) -> Message:
    return {**message, "content": _GONE} if _is_picture(message) else message


def _recorded(message: Message) -> Message:
    """Return a message with its picture as a digest of the picture."""
    if not _is_picture(message):
        return message
    words, shows = message["content"]
    digest = sha256(shows["image_url"]["url"].encode())
    return {**message, "content": [words, {"type": "image_url", "sha256": digest}]}


def _shortened(message: Message) -> Message:
    content = message.get("content") or ""
    if _is_picture(message):
        return _without_picture(message)
    if message["role"] == "assistant" or len(content) <= 2 * _HEAD:
        return message
    return {**message, "content": content[:_HEAD] + _CUT.format(len(content))}

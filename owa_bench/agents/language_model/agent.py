"""The agent: one conversation with the model per episode, one tool call per act."""

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from owa_bench.agents.language_model import options, prompt, replies
from owa_bench.agents.language_model.chat import Chat, ContextOverflow
from owa_bench.agents.language_model.conversation import Conversation, size
from owa_bench.agents.language_model.options import Options
from owa_bench.agents.language_model.replies import Reply
from owa_bench.agents.language_model.watch import Watch
from owa_bench.canonical import document_digest
from owa_bench.errors import AgentFailure, AgentRaised
from owa_bench.interfaces import AgentCard, AgentConfig, Brief, Move, ToolSpec
from owa_bench.records.events import ModelCall
from owa_bench.seeding import stream

_SEEDS = 2**31  # servers read a seed as a 32-bit number
_CHARACTERS_PER_TOKEN = 3.0  # before a server has counted; careful
_DENSITY = (1.5, 6.0)  # what a server's count may make of it
_REPLY_ROOM = 2048  # tokens kept free for a reply where max_tokens says nothing
_DEADLINE_SHARE = 0.9  # of the harness' deadline, so that the failure is ours to name
_SQUEEZES = 4  # times a request that the server finds too long is shortened
_SQUEEZE = 0.7


class Waiting(NamedTuple):
    """An action of the model that has not been played; words have no call id."""

    action: str
    call_id: str | None
    malformed: bool = False


class LanguageModel:
    """Asks a chat model for tool calls; states what it used and what was said."""

    def __init__(
        self, config: AgentConfig, connect: Callable[[Options, str], Chat] = Chat
    ) -> None:
        self._config = config
        self._connect = connect
        self._talk: Talk | None = None

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode with an empty conversation."""
        given = options.read(self._config.options)
        chat = self._connect(given, options.key_of(given))
        self._talk = Talk(given, chat, brief, tools)

    def act(self, observation: Any, info: Mapping[str, Any]) -> Move:
        """Return the model's next tool call with the tokens it took."""
        if self._talk is None:
            raise AgentRaised("act before reset")
        return self._talk.next(str(observation["text"]), info.get("picture", ""))

    def close(self) -> None:
        """Close the connection; nothing is remembered."""
        if self._talk is not None:
            self._talk.close()


class Talk:
    """One episode's conversation."""

    def __init__(
        self, given: Options, chat: Chat, brief: Brief, tools: Sequence[ToolSpec]
    ) -> None:
        self._options = given
        self._chat = chat
        self._names = [tool.name for tool in tools]
        self._tools = prompt.functions(tools)
        self._conversation = Conversation(prompt.SYSTEM, prompt.brief(brief))
        self._parameters = _parameters(given, brief)
        self._deadline_s = min(
            given.timeout, _DEADLINE_SHARE * brief.budgets.get("act_s", given.timeout)
        )
        self._waiting: deque[Waiting] = deque()
        self._played: Waiting | None = None
        self._watch = Watch()
        self._room = float(given.context - (given.max_tokens or _REPLY_ROOM))
        self._density = _CHARACTERS_PER_TOKEN
        self._calls: list[ModelCall] = []

    def next(self, text: str, picture: str = "") -> Move:
        """Return the next move; `text` is what the last one brought.

        `picture` is the window as a data address, "" where there is none.
        """
        self._calls = []
        if self._played is not None:  # else it is the brief, which has been told
            self._conversation.heard(text, self._played.call_id)
        if not self._waiting:
            if picture and self._options.screenshots:
                self._conversation.saw(picture)
            self._waiting.extend(self._turn())
        self._played = self._waiting.popleft()
        self._watch.see(self._played.action, malformed=self._played.malformed)
        return Move(
            action=self._played.action,
            usage=_usage(self._calls),
            model_calls=tuple(self._calls),
        )

    def close(self) -> None:
        """Close the connection."""
        self._chat.close()

    def _turn(self) -> list[Waiting]:
        """Return what the model wants done; a malformed reply is answered once."""
        reply = self._ask()
        try:
            return self._accepted(reply)
        except ValueError as fault:
            self._conversation.said_wrongly(reply)
            self._conversation.heard(prompt.correction(str(fault), reply), None)
        try:
            second = self._ask()
        except AgentFailure:  # the next act meets it again, with this one paid for
            return [Waiting(replies.surfaced(reply), None, malformed=True)]
        try:
            return self._accepted(second)
        except ValueError:
            self._conversation.said_wrongly(second)
            return [Waiting(replies.surfaced(second), None, malformed=True)]

    def _accepted(self, reply: Reply) -> list[Waiting]:
        """Return the actions of a well-formed reply, and remember it as said."""
        found = replies.actions(reply, self._names)
        self._conversation.said(reply)
        pairs = zip(found, reply.calls, strict=True)
        return [Waiting(action, call.id) for action, call in pairs]

    def _ask(self) -> Reply:
        """Return the model's reply to the conversation, shortened until it fits."""
        cause = ""
        for _ in range(_SQUEEZES):
            self._trim()
            try:
                return self._answered()
            except ContextOverflow as refusal:
                sent = size(self._conversation.messages) + size(self._tools)
                self._room = min(self._room, sent / self._density) * _SQUEEZE
                cause = str(refusal)
        raise AgentRaised(
            f"{cause}, however short it is made; context= is now {self._room:.0f}"
        )

    def _trim(self) -> None:
        room = self._room * self._density - size(self._tools)
        if not self._conversation.trim(room):
            raise AgentRaised(
                "the context overflows: brief, tools and the last turn alone need more "
                f"than {self._room:.0f} tokens; give the model a longer context and say"
                f" so with context= (now {self._options.context})"
            )

    def _answered(self) -> Reply:
        messages = self._conversation.messages
        body = {
            "model": self._options.model,
            "messages": messages,
            "tools": self._tools,
            **self._parameters,
        }
        reply = self._chat.ask(body, self._deadline_s)
        sent = size(messages) + size(self._tools)
        reply = self._weighed(reply, sent)
        self._calls.append(
            ModelCall(
                step=0,
                model=self._options.model,
                parameters=json.dumps(
                    {**self._parameters, "tokens_counted": reply.counted},
                    sort_keys=True,
                ),
                prompt=json.dumps(
                    {
                        "request": document_digest(body),
                        "of": len(messages),
                        "messages": self._conversation.news(),
                    }
                ),
                reply=reply.text,
                tokens_in=reply.tokens_in,
                tokens_out=reply.tokens_out,
                cached=reply.cached,
            )
        )
        return reply

    def _weighed(self, reply: Reply, sent: int) -> Reply:
        """Return a reply with its tokens, estimated where the server counts none."""
        if not reply.counted:
            return reply._replace(
                tokens_in=round(sent / _CHARACTERS_PER_TOKEN),
                tokens_out=round(len(reply.text) / _CHARACTERS_PER_TOKEN),
            )
        if reply.tokens_in:
            lowest, highest = _DENSITY
            self._density = min(highest, max(lowest, sent / reply.tokens_in))
        return reply


def _parameters(given: Options, brief: Brief) -> dict[str, Any]:
    """Return what a request says beside model, messages and tools."""
    seed = given.seed
    if seed == -1:
        rng = stream(brief.seed, "language_model")
        seed = int(rng.integers(_SEEDS))
    chosen = {
        "temperature": given.temperature,
        "seed": seed,
        "max_tokens": given.max_tokens,
    }
    return {name: value for name, value in chosen.items() if value is not None}


def _usage(calls: Sequence[ModelCall]) -> tuple[tuple[Any, float], ...]:
    if not calls:
        return ()
    return (
        ("tokens_in", float(sum(call.tokens_in for call in calls))),
        ("tokens_out", float(sum(call.tokens_out for call in calls))),
    )


AGENT = AgentCard(
    name="language-model",
    about="Asks an OpenAI-compatible chat model for tool calls.",
    make=LanguageModel,
    options=options.KNOWN,
    required=options.REQUIRED,
)

"""Language-model agent: one conversation per episode, one tool call per act."""

import json
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from owa_bench.agents.language_model.conversation import (
    SYSTEM,
    Conversation,
    ModelReply,
    actions,
    correction,
    malformed_action,
    size,
    task_prompt,
)
from owa_bench.agents.language_model.endpoint import (
    KNOWN,
    REQUIRED,
    ChatEndpoint,
    ContextOverflow,
    ModelOptions,
    parse_options,
    server_of,
)
from owa_bench.errors import AgentFailure, AgentRaised
from owa_bench.interfaces import AgentCard, AgentConfig, Brief, Move, Task, ToolSpec
from owa_bench.seeding import stream
from owa_bench.shells.seating import first_text
from owa_bench.shells.standard_tools import tool_spec

_SEEDS = 2**31  # servers read a seed as a 32-bit number
_CHARACTERS_PER_TOKEN = 3.0  # before a server has counted; careful
_DENSITY = (1.5, 6.0)  # what a server's count may make of it
_REPLY_ROOM = 2048  # tokens kept free for a reply where max_tokens says nothing
_DEADLINE_SHARE = 0.9  # of the harness' deadline, so that the failure is ours to name
_SQUEEZES = 4  # times a request that the server finds too long is shortened
_SQUEEZE = 0.7
LONGEST_CYCLE = 4  # actions of a circle that is noticed
ROUNDS = 8  # times a circle is gone round before it ends the episode
MOST_NOTES = 4  # replies in a row that only rewrite the notes
MOST_MALFORMED = 6  # malformed actions in a row


class _PendingAction(NamedTuple):
    """An action that has not been played; one made of plain text has no call id."""

    action: str
    call_id: str | None
    malformed: bool = False


class LanguageModelAgent:
    """Asks a chat model for tool calls; the model gateway counts the tokens."""

    _options: ModelOptions
    _chat: ChatEndpoint | None = None

    def __init__(
        self,
        config: AgentConfig,
        connect: Callable[[ModelOptions, str, str], ChatEndpoint] = ChatEndpoint,
    ) -> None:
        self._config = config
        self._connect = connect

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode with an empty conversation.

        Args:
            brief: the task.
            tools: of the episode.
            memory_dir: holds the notes of a model with memory.
        """
        self._options = given = parse_options(self._config.options)
        self._chat = self._connect(given, *server_of(self._config.environment))
        self._names = [tool.name for tool in tools]
        self._tools = [tool.function for tool in tools]
        prompts = [task_prompt(brief)]
        self._notes = Notes(Path(memory_dir), brief) if given.memory else None
        if self._notes is not None:
            self._names.append(TOOL)
            self._tools.append(self._notes.tool.function)
            prompts.append(self._notes.prompt)
        self._conversation = Conversation(SYSTEM, "\n\n".join(filter(None, prompts)))
        self._known = first_text(Task(brief.text, brief.goal, brief.propositions))
        self._parameters = _parameters(given, brief)
        act_s = brief.budgets.get("act_s", given.timeout)
        self._deadline_s = min(given.timeout, _DEADLINE_SHARE * act_s)
        self._pending: deque[_PendingAction] = deque()
        self._played: _PendingAction | None = None
        self._guard = _LoopGuard()
        self._room = float(given.context - (given.max_tokens or _REPLY_ROOM))
        self._density = _CHARACTERS_PER_TOKEN

    def act(self, observation: Any, info: Mapping[str, Any]) -> Move:
        """Return the model's next tool call.

        Args:
            observation: its "text" is shown to the model.
            info: its "picture" too, a data address, where there is one.

        Returns:
            The move.

        Raises:
            AgentRaised: it names what went wrong and the way out.
        """
        if self._chat is None:
            raise AgentRaised("act before reset")
        text = str(observation["text"])
        if self._played is not None:
            self._conversation.add_result(text, self._played.call_id)
        elif seen := text.removeprefix(self._known).strip():  # it has the brief
            self._conversation.add_to_brief(seen)
        if not self._pending:
            picture = info.get("picture", "")
            if picture and self._options.screenshots:
                self._conversation.add_picture(picture)
            self._pending.extend(self._actions(self._chat))
        self._played = self._pending.popleft()
        self._guard.add(self._played.action, text, malformed=self._played.malformed)
        return Move(action=self._played.action)

    def close(self) -> None:
        """Close the connection; nothing is remembered."""
        if self._chat is not None:
            self._chat.close()

    def _actions(self, chat: ChatEndpoint) -> list[_PendingAction]:
        """Return the actions of the next reply that does more than rewrite notes."""
        for _ in range(MOST_NOTES):
            if found := self._turn(chat):
                return found
        raise AgentRaised(f"{MOST_NOTES} replies in a row only rewrote the notes")

    def _turn(self, chat: ChatEndpoint) -> list[_PendingAction]:
        """Return the model's next actions; a malformed reply is answered once."""
        reply = self._ask(chat)
        try:
            return self._accepted(reply)
        except ValueError as fault:
            self._conversation.add_malformed(reply)
            self._conversation.add_result(correction(str(fault), reply), None)
        try:
            second = self._ask(chat)
        except AgentFailure:  # the next act meets it again, with this one paid for
            return [_PendingAction(malformed_action(reply), None, malformed=True)]
        try:
            return self._accepted(second)
        except ValueError:
            self._conversation.add_malformed(second)
            return [_PendingAction(malformed_action(second), None, malformed=True)]

    def _accepted(self, reply: ModelReply) -> list[_PendingAction]:
        """Return the actions of a well-formed reply, and add it to the conversation.

        Calls that rewrite the notes are carried out here.
        """
        texts = actions(reply, self._names)
        self._conversation.add_reply(reply)
        pending = []
        for action, call in zip(texts, reply.calls, strict=True):
            if self._notes is not None and call.name == TOOL:
                self._conversation.add_result(self._notes.take(action), call.id)
            else:
                pending.append(_PendingAction(action, call.id))
        return pending

    def _ask(self, chat: ChatEndpoint) -> ModelReply:
        """Return the model's reply to the conversation, shortened until it fits."""
        cause = ""
        for _ in range(_SQUEEZES):
            self._trim()
            try:
                return self._request(chat)
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

    def _request(self, chat: ChatEndpoint) -> ModelReply:
        model, messages = self._options.model, self._conversation.messages
        body = {"model": model, "messages": messages, "tools": self._tools}
        reply = chat.ask(body | self._parameters, self._deadline_s)
        if reply.tokens_in:
            lowest, highest = _DENSITY
            sent = size(messages) + size(self._tools)
            self._density = min(highest, max(lowest, sent / reply.tokens_in))
        return reply


class _LoopGuard:
    """Detects a model that repeats itself, from every turn of an episode."""

    def __init__(self) -> None:
        self._turns: list[tuple[str, str]] = []
        self._malformed = 0

    def add(self, action: str, text: str, *, malformed: bool) -> None:
        """Add the next turn; AgentRaised if it closes the last round of a loop.

        Args:
            action: What the model does.
            text: What it was shown before: one call for page after page is no loop.
            malformed: Whether its reply held no call.
        """
        self._turns.append((action, text))
        self._malformed = self._malformed + 1 if malformed else 0
        if self._malformed >= MOST_MALFORMED:
            raise AgentRaised(
                f"an endless loop: {MOST_MALFORMED} replies in a row held no tool call "
                "that can be run; does the model (and its server) support tool calls?"
            )
        for length in range(1, LONGEST_CYCLE + 1):
            if self._repeats(length):
                raise AgentRaised(
                    f"an endless loop: the same {length} call(s) {ROUNDS} times over, "
                    f"last {action[:120]}; a higher temperature or another model may "
                    "not get stuck"
                )

    def _repeats(self, length: int) -> bool:
        last = self._turns[-length * ROUNDS :]
        return last == self._turns[-length:] * ROUNDS


def _parameters(given: ModelOptions, brief: Brief) -> dict[str, Any]:
    """Return the parameters of a request beside model, messages and tools."""
    seed = given.seed
    if seed == -1:
        rng = stream(brief.seed, "language_model")
        seed = int(rng.integers(_SEEDS))
    return _request_parameters(given, seed)


def _request_parameters(given: ModelOptions, seed: int | None) -> dict[str, Any]:
    """Return the parameters that are sent, with a seed."""
    chosen = {
        "temperature": given.temperature,
        "seed": seed,
        "max_tokens": given.max_tokens,
    }
    return {name: value for name, value in chosen.items() if value is not None}


def preflight_request(options: Mapping[str, str]) -> dict[str, Any]:
    """Return a short request with the parameters and the form of the agent's own."""
    given = parse_options(options)
    seed = 0 if given.seed == -1 else given.seed
    nothing = {"type": "object", "properties": {}}
    tool = ToolSpec(name="finish", about="End.", parameters=nothing)
    message = {"role": "user", "content": "Call the tool finish."}
    body = {"model": given.model, "messages": [message]}
    return body | {"tools": [tool.function]} | _request_parameters(given, seed)


AGENT = AgentCard(
    name="language-model",
    about="Asks an OpenAI-compatible chat model for tool calls.",
    make=LanguageModelAgent,
    options=KNOWN,
    required=REQUIRED,
    preflight=preflight_request,
)


# --- notes that outlast its process: one text, rewritten by a tool --------------------


TOOL = "remember"
_FILE = "notes.txt"
_NO_LIMIT = 256 << 20
_ABOUT = """\
Replace your notes by this text. It costs no step. Only the notes are left to you when \
the task goes on after a break, in which everything else is forgotten."""


class Notes:
    """The notes in a memory folder, within its quota.

    Args:
        folder: The folder.
        brief: Its budget `memory_bytes` is the quota, names of files included.
    """

    def __init__(self, folder: Path, brief: Brief) -> None:
        self._path = folder / _FILE
        quota = int(brief.budgets.get("memory_bytes", _NO_LIMIT))
        self._most = max(0, quota - len(_FILE))

    @property
    def tool(self) -> ToolSpec:
        """The tool that rewrites them."""
        text = {"type": "string", "description": f"At most {self._most} bytes."}
        return tool_spec(TOOL, _ABOUT, "text", text=text)

    @property
    def prompt(self) -> str:
        """What stands below the brief."""
        text = self._path.read_text("utf-8") if self._path.exists() else ""
        return f"Your notes from before the break:\n{text}" if text else ""

    def take(self, action: str) -> str:
        """Keep what a call gives, and return the answer to it; `action` is its JSON."""
        text = json.loads(action)["arguments"].get("text")
        if not isinstance(text, str):
            return "error: `text` must be a string; the notes stay as they were."
        size = len(text.encode())
        if size > self._most:
            return (
                f"error: the notes may have {self._most} bytes, got {size}; they stay "
                "as they were."
            )
        self._path.write_text(text, "utf-8")
        return f"kept, {size} of {self._most} bytes"

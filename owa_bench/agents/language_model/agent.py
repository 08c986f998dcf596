"""Language-model agent: one conversation per episode, one tool call per act."""

import re
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from owa_bench.agents.language_model.conversation import (
    SYSTEM,
    Conversation,
    correction,
    size,
    task_prompt,
)
from owa_bench.agents.language_model.dialects import Dialect
from owa_bench.agents.language_model.endpoint import (
    KNOWN,
    REQUIRED,
    ChatEndpoint,
    ContextOverflow,
    ModelMistake,
    ModelOptions,
    RequestRefused,
    parse_options,
    server_of,
)
from owa_bench.agents.language_model.notes import TOOL, Notes
from owa_bench.agents.language_model.replies import (
    MOST_CALLS,
    ModelReply,
    actions,
    is_cut_off,
    malformed_action,
)
from owa_bench.errors import AgentFailure, AgentRaised
from owa_bench.interfaces import AgentCard, AgentConfig, Brief, Move, Task, ToolSpec
from owa_bench.records.calls_as_text import PARSER, is_call_as_text
from owa_bench.seeding import stream
from owa_bench.shells.seating import first_text

_SEEDS = 2**31  # servers read a seed as a 32-bit number
_CHARACTERS_PER_TOKEN = 3.0  # before a server has counted; careful
_DENSITY = (1.5, 6.0)  # what a server's count may make of it
_REPLY_ROOM = 2048  # tokens kept free for a reply where max_tokens says nothing
MOST_TOKENS = 4096  # of one reply, where the user says nothing [D]
_MOST_RAISED = 4 * MOST_TOKENS  # to which a cap is raised that nobody chose
_CHOICES = frozenset({"auto", "required", "none"})
_CAP, _OTHER_CAP = "max_tokens", "max_completion_tokens"
_DEFAULTED = ("temperature", "seed", _CAP)
_DEADLINE_SHARE = 0.9  # of the harness' deadline, so that the failure is ours to name
_CAP_NAMED = re.compile(r"max_(new_|completion_)?tokens|completion\b")
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

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an episode with an empty conversation.

        Args:
            brief: the task.
            tools: of the episode.
            memory_dir: holds the notes of a model with memory.
        """
        self._options = given = parse_options(self._config.options)
        self._chat = self._connect(given, *server_of(self._config.environment))
        self._schemas = {tool.name: tool.parameters for tool in tools}
        self._tools = [tool.function for tool in tools]
        prompts = [task_prompt(brief)]
        self._notes = Notes(Path(memory_dir), brief) if given.memory else None
        if self._notes is not None:
            self._schemas[TOOL] = self._notes.tool.parameters
            self._tools.append(self._notes.tool.function)
            prompts.append(self._notes.prompt)
        self._conversation = Conversation(SYSTEM, "\n\n".join(filter(None, prompts)))
        self._known = first_text(Task(brief.text, brief.goal, brief.propositions))
        self._parameters = _parameters(given, brief)
        named = {*self._config.options, *given.body}
        self._defaults = frozenset(_DEFAULTED) - named
        self._dialect = Dialect()
        self._accepted_turns = 0  # of the longest request that the server took
        act_s = brief.budgets.get("act_s", given.timeout)
        self._deadline_s = min(given.timeout, _DEADLINE_SHARE * act_s)
        self._pending: deque[_PendingAction] = deque()
        self._played: _PendingAction | None = None
        self._guard = _LoopGuard(self._schemas, forced=given.tool_choice is not None)
        self._cut = ""  # a word on calls of the last reply that were not run
        self._room = float(given.context - (given.max_tokens or _REPLY_ROOM))
        self._density = _CHARACTERS_PER_TOKEN

    def act(self, observation: Any, info: Mapping[str, Any]) -> Move:
        """Return the model's next tool call.

        Args:
            observation: its "text" is shown to the model.
            info: its "picture" too, a data address, where there is one.
        Raises: AgentRaised: it names what went wrong and the way out.
        """
        if self._chat is None:
            raise AgentRaised("act before reset")
        try:
            return self._next_move(self._chat, observation, info)
        except AgentFailure:  # it ends the episode, and in process nobody closes us
            self._chat.close()
            raise

    def _next_move(self, chat: ChatEndpoint, observation: Any, info: Mapping[str, Any]) -> Move:
        text = str(observation["text"])
        if self._played is not None:
            cut, self._cut = ("", self._cut) if self._pending else (self._cut, "")
            self._conversation.add_result(text + cut, self._played.call_id)
        elif seen := text.removeprefix(self._known).strip():  # it has the brief
            self._conversation.add_to_brief(seen)
        if not self._pending:
            picture = info.get("picture", "")
            if picture and self._options.screenshots:
                self._conversation.add_picture(picture)
            self._pending.extend(self._actions(chat))
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
        reply = self._reply_at_length(chat)
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
        texts = actions(reply, self._schemas)
        ids = self._conversation.add_reply(reply)
        pending = []
        for action, call, name in zip(texts, reply.calls, ids, strict=True):
            if self._notes is not None and call.name == TOOL:
                self._conversation.add_result(self._notes.take(action), name)
            else:
                pending.append(_PendingAction(action, name))
        if reply.more_calls:
            self._cut = (
                f"\n[{reply.more_calls} more calls of this reply were not run: one "
                f"reply may hold {MOST_CALLS}]"
            )
        return pending

    def _reply_at_length(self, chat: ChatEndpoint) -> ModelReply:
        """Return the next reply, not cut off by a cap that nobody chose."""
        reply = self._ask(chat)
        while is_cut_off(reply) and _CAP in self._defaults:
            name = _OTHER_CAP if _OTHER_CAP in self._parameters else _CAP
            most = 2 * self._parameters.get(name, _MOST_RAISED)
            if most > _MOST_RAISED:
                break
            self._parameters[name] = most
            reply = self._ask(chat)
        return reply

    def _ask(self, chat: ChatEndpoint) -> ModelReply:
        """Return the model's reply, in a form and length that the server takes."""
        squeezes, tried, first = 0, {self._dialect}, None
        self._trim()
        while True:
            try:
                reply = self._request(chat)
            except ModelMistake as mistake:
                return ModelReply(mistake.words, (), 0, cut=False)
            except ContextOverflow as refusal:
                squeezes += 1
                self._shorten(refusal, last=squeezes >= _SQUEEZES)
            except RequestRefused as refusal:
                first = first or refusal
                if self._renames_cap(refusal.words):
                    continue
                # It took this form when the conversation was shorter.
                taken = self._accepted_turns > 1
                if taken and self._conversation.shorten():
                    continue
                others = self._dialect.others(refusal.words, self._defaults)
                other = next((each for each in others if each not in tried), None)
                if other is None:
                    raise first from None
                tried.add(other)
                self._dialect = other
            else:
                turns = self._conversation.turns
                self._accepted_turns = max(self._accepted_turns, turns)
                return reply

    def _renames_cap(self, words: str) -> bool:
        """Send the cap that nobody chose by its other name, where a server asks so."""
        asked = _OTHER_CAP in words and _OTHER_CAP not in self._parameters
        if not asked or _CAP not in self._defaults & self._parameters.keys():
            return False
        self._parameters[_OTHER_CAP] = self._parameters.pop(_CAP)
        return True

    def _shorten(self, refusal: ContextOverflow, *, last: bool) -> None:
        """Make the next request shorter than one that was too long.

        Args:
            refusal: The server's.
            last: Whether only the last turn is left at once.
        Raises: AgentRaised: It cannot be made shorter.
        """
        if _CAP_NAMED.search(str(refusal)) and self._drops_cap():
            return
        if not (self._squeeze(last=last) or self._drops_cap()):
            raise AgentRaised(
                f"{refusal}, however short it is made: brief, tools and the last turn "
                "alone overflow it. Give the model a longer context, and say so with "
                f"context= (now {self._options.context})"
            ) from refusal

    def _drops_cap(self) -> bool:
        """Send no cap, where nobody chose it: servers count it as part of the context.

        Returns: Whether one was sent.
        """
        names = {_CAP, _OTHER_CAP} if _CAP in self._defaults else set()
        sent = names & self._parameters.keys()
        for name in sent:
            del self._parameters[name]
        return bool(sent)

    def _squeeze(self, *, last: bool) -> bool:
        """Shorten the conversation; return whether it could be.

        Args:
            last: Whether only the last turn is left at once.
        """
        sent = size(self._conversation.messages)
        whole = sent + size(self._tools)
        self._room = min(self._room, whole / self._density) * _SQUEEZE
        if last:
            return self._conversation.shorten()
        self._trim()
        return size(self._conversation.messages) < sent

    def _trim(self) -> None:
        """Shorten to the room that there is; the last turn stays, whatever it needs.

        The server says whether that is too long: the room is estimated.
        """
        self._conversation.trim(self._room * self._density - size(self._tools))

    def _request(self, chat: ChatEndpoint) -> ModelReply:
        conversation, dialect = self._conversation.messages, self._dialect
        body = {
            "model": self._options.model,
            "messages": dialect.messages(conversation),
            "tools": dialect.tools(self._tools),
        }
        body |= dialect.parameters(self._parameters)
        reply = chat.ask(body, self._deadline_s)
        if reply.tokens_in:
            lowest, highest = _DENSITY
            sent = size(conversation) + size(self._tools)
            self._density = min(highest, max(lowest, sent / reply.tokens_in))
        return reply


class _LoopGuard:
    """Detects a model that repeats itself, from every turn of an episode."""

    def __init__(self, tools: Mapping[str, Any], *, forced: bool) -> None:
        self._tools = tools
        self._forced = forced
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
            why = "does the model (and its server) support tool calls? "
            if self._forced:
                why += "A larger max_tokens= may leave room for the call"
            else:
                why += "tool_choice=required makes a model call one"
            if is_call_as_text(action, self._tools):
                why = f"they hold calls written as text, and {PARSER}"
            raise AgentRaised(
                f"an endless loop: {MOST_MALFORMED} replies in a row held no tool call "
                f"that can be run; {why}"
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
    most = given.max_tokens
    if given.max_completion_tokens is not None and not most:
        most = None
    elif most == 0:
        most = MOST_TOKENS
    chosen = {
        "temperature": given.temperature,
        "seed": seed,
        "max_tokens": most,
        "max_completion_tokens": given.max_completion_tokens,
        "reasoning_effort": given.reasoning_effort,
        "tool_choice": _tool_choice(given.tool_choice),
    }
    return {n: value for n, value in chosen.items() if value is not None} | given.body


def _tool_choice(given: str | None) -> Any:
    """Return the parameter that makes a model call a tool, or a named one."""
    if given is None or given in _CHOICES:
        return given
    return {"type": "function", "function": {"name": given}}


AGENT = AgentCard(
    name="language-model",
    about="Asks an OpenAI-compatible chat model for tool calls.",
    make=LanguageModelAgent,
    options=KNOWN,
    required=REQUIRED,
    asks_model=True,
)

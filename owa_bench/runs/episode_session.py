"""Sessions for trainers of language models: an episode as a chat, text in and text out.

    open_episode    one episode of a suite's instance
    open_group      several of one instance, for group rollouts

A session is the suite's own env (`runs.assembly`) with the prompts and the reading of calls that
the agent `language-model` has. An episode's rewards sum to its Q, so an episode that is ended at
once is paid for its forecast; with reward="q_state" they sum to the state's part of Q, and giving
up pays nothing: docs/train-a-language-model.md#what-giving-up-pays.
"""

import contextlib
import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, Self, get_args

import gymnasium
import msgspec

from owa_bench import bounded_json, discovery
from owa_bench.agents.language_model.conversation import SYSTEM, Conversation, task_prompt
from owa_bench.agents.language_model.replies import (
    MOST_CALLS,
    ModelReply,
    ModelToolCall,
    actions,
    malformed_action,
)
from owa_bench.canonical import sha256
from owa_bench.errors import FieldError, UsageError
from owa_bench.interfaces import Brief
from owa_bench.records.events import ENCODER, Event
from owa_bench.records.instance import SEED_LIMIT, Instance
from owa_bench.runs import assembly
from owa_bench.shells.calls import call_text
from owa_bench.shells.instances import Instances
from owa_bench.shells.seating import first_text
from owa_bench.shells.tool_env import ToolEnv

MOST_COPIES = 4096  # sessions of one group
RewardSum = Literal["quality", "q_state"]
_SET_HERE = frozenset({"view", "sink", "instances", "laboratories", "one_reader", "render_mode"})
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_MARKED = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)
_FENCE = re.compile(r"\A```(?:json)?\s*(.*?)\s*```\Z", re.DOTALL)
_TOOLS = """\
The tools, a JSON object each:
<tools>
{}
</tools>

Call one with <tool_call>{{"name": "NAME", "arguments": {{}}}}</tool_call>. Its answer is the next \
message.
"""
_FORM = (
    "no tool call was read; answer with one as "
    '<tool_call>{"name": "NAME", "arguments": {}}</tool_call> or '
    '{"tool": "NAME", "arguments": {}}'
)


class Reply(NamedTuple):
    """What came of a call or of a text.

    `reward` is that of its steps alone, `done` ends the episode. `info` is the env's: "error" of a
    malformed or refused call, "sitting" and "seat" where there are several, at the end "outcome",
    "q_state", "quality" and "success".
    """

    text: str
    reward: float
    done: bool
    info: dict[str, Any]


class SessionTurn(NamedTuple):
    """What a model said, the call if it came as one, and the answer."""

    said: str
    call: tuple[str, str] | None
    answer: str


class EpisodeSession:
    """One running episode; made by `open_episode`, closed by `close` or a with statement.

    Several may run at once, each in a thread; one session is used by one thread at a time.

    Attributes:
        instance: The instance that is played.
        step_limit: The most steps of the episode.
        steps: Steps so far.
        reward: Sum of the rewards so far; of a whole episode it is Q, or q_state.
        done: Whether the episode has ended.
        success: Whether it has ended with its task done.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        instances: Instances,
        record: str | Path | None = None,
        reward: RewardSum = "quality",
    ) -> None:
        shell = env.unwrapped
        if not isinstance(shell, ToolEnv):
            raise UsageError(f"A session plays tool suites alone, got {type(shell).__name__}.")
        self._env = env
        self._shell = shell
        self._instances = instances
        self._record = None if record is None else Path(record)
        self._file: EpisodeFile | None = None
        self._sum_to: RewardSum = reward

    def reset(self, seed: int, *, instance: Instance | None = None) -> None:
        """Begin another episode, with the same options.

        Args:
            seed: Of the instance; the same one begins the same episode again.
            instance: That of the seed, where it is known.
        """
        _check_seed(seed)
        self._close_file()
        instance = instance or self._instances(seed)
        if self._record is not None:
            self._file = EpisodeFile(self._record, instance)
            self._shell.attach(self._file)
        observation, info = self._env.reset(seed=seed, options={"instance": instance})
        self.instance = instance
        self._opened = self._opening(str(observation["text"]), info)
        self._turns: list[SessionTurn] = []
        self._sitting = int(info.get("sitting", 0))
        self.step_limit = self._shell.step_limit
        self.steps = 0
        self.reward = 0.0
        self.done = self.success = False

    def _opening(self, text: str, info: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the messages that a model reads first, as `language-model` asks them."""
        shell, seat = self._shell, str(info.get("seat", ""))
        task = shell.task_of(seat)
        budgets = {"steps": float(shell.step_limit)}
        if shell.memory_bytes:
            budgets["memory_bytes"] = float(shell.memory_bytes)
        brief = Brief(
            text=task.text,
            goal=task.goal,
            propositions=task.propositions,
            budgets=budgets,
            interventions_left=info.get("interventions_left"),
            role=seat or "agent",
        )
        conversation = Conversation(SYSTEM, task_prompt(brief))
        if seen := text.removeprefix(first_text(task)).strip():
            conversation.add_to_brief(seen)
        return [dict(message) for message in conversation.messages]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation so far, as a chat model with tools reads it next.

        A system message and a user message, then for each call what was called and its answer. In a
        later sitting it begins anew, as in a run.
        """
        found = [dict(message) for message in self._opened]
        for number, turn in enumerate(self._turns):
            if turn.call is None:
                found.append({"role": "assistant", "content": turn.said})
                found.append({"role": "user", "content": turn.answer})
                continue
            name, arguments = turn.call
            made = {"name": name, "arguments": arguments}
            call = {"id": f"call{number:08d}", "type": "function", "function": made}
            found.append({"role": "assistant", "content": None, "tool_calls": [call]})
            found.append({"role": "tool", "tool_call_id": call["id"], "content": turn.answer})
        return found

    @property
    def prompt(self) -> str:
        """The first two messages as one text."""
        return "\n\n".join(message["content"] for message in self._opened)

    @property
    def text_messages(self) -> list[dict[str, Any]]:
        """The same conversation for a model of text alone: the first message holds the tools."""
        system, task = self._opened
        tools = "\n".join(msgspec.json.encode(tool).decode() for tool in self.tools)
        text = f"{system['content']}\n{_TOOLS.format(tools)}"
        found = [{**system, "content": text}, dict(task)]
        for turn in self._turns:
            found.append({"role": "assistant", "content": turn.said})
            found.append({"role": "user", "content": turn.answer})
        return found

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools that may be called now, in the form of OpenAI's function calls."""
        return [msgspec.to_builtins(tool.function) for tool in self._shell.offered]

    def call(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> Reply:
        """Call a tool: one step, also where the call is malformed.

        Args:
            name: Of the tool.
            arguments: By name, or the JSON text that a chat model wrote.
        Returns: What came of it.
        """
        if arguments is None or isinstance(arguments, Mapping):
            reply = self._play((call_text(name, arguments or {}),))
            written = _json_text(arguments or {})
        else:
            written = arguments
            reply = self._play(self._actions((ModelToolCall("", name, arguments),), arguments))
        said = f'<tool_call>{{"name": {_json_text(name)}, "arguments": {written}}}</tool_call>'
        self._keep(SessionTurn(said, (name, written), reply.text), reply)
        return reply

    def say(self, text: str) -> Reply:
        """Play what a model said: every call in it is a step, in order, until the end.

        A call is `<tool_call>{"name": .., "arguments": ..}</tool_call>`, or the whole text is JSON,
        with "tool" in place of "name" too; thoughts in <think> are left out. A text without a call
        costs a step.

        Args: text: The model's whole reply.
        Returns: The replies as one: texts joined, rewards added.
        """
        calls = calls_of_text(text)
        reply = self._play(self._actions(calls, text))
        reply = reply if calls else reply._replace(text=f"{reply.text}\n{_FORM}")
        self._keep(SessionTurn(text, None, reply.text), reply)
        return reply

    def solution(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the oracle's calls from the start of this episode: name and arguments of each.

        They are for imitation. A model that is judged must never see those of its own episode.
        """
        made = assembly.solution(self.instance.suite, self._shell.timeline)
        calls = [bounded_json.decode(action) for action in made.actions]
        return [(call["tool"], call["arguments"]) for call in calls]

    def close(self) -> None:
        """End the session; what was recorded is whole."""
        self._close_file()
        self._env.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _keep(self, turn: "SessionTurn", reply: Reply) -> None:
        """Add a turn to the conversation; a new sitting begins it anew with what was shown."""
        sitting = int(reply.info.get("sitting", self._sitting))
        if sitting == self._sitting:
            self._turns.append(turn)
            return
        self._sitting, self._turns = sitting, []
        self._opened = [self._opened[0], {"role": "user", "content": reply.text}]

    def _actions(self, calls: tuple[ModelToolCall, ...], said: str) -> tuple[str, ...]:
        """Return the actions of calls; where one cannot be read, a malformed one."""
        reply = ModelReply(said, calls, 0, cut=False)
        try:
            found = actions(reply, {tool.name: tool.parameters for tool in self._shell.offered})
        except ValueError:
            return (malformed_action(reply),)
        decoded = (bounded_json.decode(action) for action in found)
        return tuple(call_text(each["tool"], each["arguments"]) for each in decoded)

    def _play(self, texts: tuple[str, ...]) -> Reply:
        """Play actions until the episode ends."""
        if self.done:
            raise UsageError(
                "The episode has ended and takes no more calls: `reset` it with a seed, or open "
                "another."
            )
        answers: list[str] = []
        total, info = 0.0, dict[str, Any]()
        for text in texts:
            observation, reward, terminated, truncated, info = self._env.step(text)
            answers.append(str(observation["text"]))
            self.steps += 1
            self.done = bool(terminated or truncated)
            total += self._reward_of(float(reward), self.reward + total, info)
            if self.done:
                break
        self.success = bool(info.get("success", False))
        self.reward += total
        if self.done:
            self._close_file()
        return Reply("\n\n".join(answers), total, self.done, info)

    def _reward_of(self, reward: float, before: float, info: Mapping[str, Any]) -> float:
        """Return what a step earns after `before`; the last one brings the sum to what is asked."""
        if self._sum_to == "q_state" and self.done:
            return float(info["q_state"]) - before
        return reward

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class SessionGroup(tuple[EpisodeSession, ...]):
    """Sessions of one instance, closed together; a tuple of them."""

    __slots__ = ()

    def reset(self, seed: int) -> None:
        """Begin another episode in every session, the same one in all.

        Args:
            seed: Of the instance.
        """
        for session in self:
            session.reset(seed)

    def close(self) -> None:
        """Close every session."""
        for session in self:
            session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_episode(
    suite: str,
    seed: int,
    *,
    record: str | Path | None = None,
    reward: RewardSum = "quality",
    **options: Any,
) -> EpisodeSession:
    """Open an episode for a trainer of language models.

    Args:
        suite: Name of a suite with tools, such as "toolquest".
        seed: Of the instance, as for `reset` of the suite's Gymnasium env.
        record: Folder for a file of the episode's events and texts; None: nothing is kept.
        reward: What an episode's rewards sum to: "quality", Q, as in the suite's env; "q_state",
            the state's part of it alone, so that a forecast of failure earns nothing.
        options: As for `owa_bench.make`: tier, family, delta, shaping, .. The supervisor may not be
            asked unless `interventions` says how often: its hints are the oracle's steps, for
            nothing.
    Returns: The session, begun.
    Raises: UsageError: A name, the seed or an option is wrong; the message says what is right.
    """
    return open_group(suite, seed, 1, record=record, reward=reward, **options)[0]


def open_group(
    suite: str,
    seed: int,
    copies: int,
    *,
    record: str | Path | None = None,
    reward: RewardSum = "quality",
    **options: Any,
) -> SessionGroup:
    """Open several sessions of one instance, whose world is made once.

    Args:
        suite: Name of a suite with tools.
        seed: Of the instance.
        copies: How many sessions.
        record: As for `open_episode`, a file a session.
        reward: As for `open_episode`.
        options: As for `open_episode`.
    Returns: The sessions; each has a state of its own.
    Raises: UsageError: As for `open_episode`.
    """
    _check_seed(seed)
    if type(copies) is not int or not 1 <= copies <= MOST_COPIES:
        raise FieldError("copies", copies, f"must be a whole number from 1 to {MOST_COPIES}")
    if reward not in get_args(RewardSum):
        raise FieldError("reward", reward, 'must be "quality" or "q_state"')
    factory = _session_factory(suite, options)
    instance = factory.instances(seed)
    make = factory.of(instance)
    sessions: list[EpisodeSession] = []
    try:
        for _ in range(copies):
            sessions.append(EpisodeSession(make(), factory.instances, record, reward))
            sessions[-1].reset(seed, instance=instance)
    except BaseException:
        SessionGroup(sessions).close()
        raise
    return SessionGroup(sessions)


def calls_of_text(text: str) -> tuple[ModelToolCall, ...]:
    """Return the tool calls that a model wrote into a text, () for none.

    >>> calls_of_text('<tool_call>{"name": "finish", "arguments": {"p": 1}}</tool_call>')[0][1:3]
    ('finish', '{"p":1}')
    """
    said = _THOUGHT.sub("", text).strip()
    fenced = _FENCE.match(said)
    written = _MARKED.findall(said) or [fenced[1] if fenced else said]
    calls = []
    for each in written[:MOST_CALLS]:
        try:
            value = bounded_json.decode(each)
        except ValueError:
            value = None
        name = value.get("name", value.get("tool")) if isinstance(value, dict) else None
        if not isinstance(name, str):
            return ()
        arguments = value.get("arguments", value.get("parameters", {}))
        if not isinstance(arguments, str):
            arguments = msgspec.json.encode(arguments).decode()
        calls.append(ModelToolCall("", name, arguments))
    return tuple(calls)


def _json_text(value: object) -> str:
    """Return a value as JSON text; what JSON has no form for is shown as text."""
    return msgspec.json.encode(value, enc_hook=str).decode()


def _check_seed(seed: object) -> None:
    if type(seed) is not int or not 0 <= seed < SEED_LIMIT:
        raise FieldError("seed", seed, f"must be a whole number from 0 to {SEED_LIMIT - 1}")


def _session_factory(suite: str, options: Mapping[str, Any]) -> assembly.EnvFactory:
    """Return what makes envs with a session's options."""
    if discovery.get("suites", suite).card.native:
        tools = [name for name, it in discovery.find("suites").items() if not it.plugin.card.native]
        raise FieldError("suite", suite, f"must be one with tools: {', '.join(tools)}")
    most = options.get("interventions", 0)
    if most is not None and (type(most) is not int or most < 0):
        rule = "must be a whole number, at least 0, or None for no limit"
        raise FieldError("interventions", most, rule)
    for name in _SET_HERE & options.keys():
        raise FieldError(name, options[name], "is set by the session: leave it out")
    return assembly.env_factory(suite, **{"interventions": 0, **options})


# --- records --------------------------------------------------------------------------


class EpisodeFile:
    """Sink that keeps one episode as JSON lines: its instance, then texts and events as they came.

    An event's line has the bytes that it has in a run's shard before secrets are taken out. Nobody
    signed a plan and the seed was chosen, so it is no evidence.

    Args:
        folder: Gets a file for each episode, numbered.
        instance: That is played.
    """

    active = True

    def __init__(self, folder: Path, instance: Instance) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = _next_file(folder)
        except OSError as error:
            rule = f"must be a folder that can be written ({error.strerror})"
            raise FieldError("record", str(folder), rule) from error
        self._texts: set[str] = set()
        self._write({"instance": instance})

    def emit(self, event: Event) -> None:
        """Keep an event."""
        self._write(event)

    def blob(self, data: bytes) -> str:
        """Keep a text, and return the SHA-256 by which events name it."""
        digest = sha256(data)
        if digest not in self._texts:
            self._texts.add(digest)
            self._write({"blob": digest, "text": data.decode("utf-8", "replace")})
        return digest

    def secret(self, name: str, value: str) -> None:
        """Do nothing: the secrets of a world are part of what a model reads and writes.

        Args:
            name: As `Sink`.
            value: As `Sink`.
        """

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, line: Any) -> None:
        self._file.write(ENCODER.encode(line) + b"\n")


def _next_file(folder: Path) -> BinaryIO:
    """Return a new file of a folder, which other threads and processes write too."""
    for number in itertools.count(sum(1 for _ in folder.glob("*.jsonl"))):
        with contextlib.suppress(FileExistsError):
            return (folder / f"{number:06d}.jsonl").open("xb")
    raise AssertionError  # a count has no end

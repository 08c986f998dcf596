"""Chat endpoint of a language model: options, address, requests, retries."""

import json
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, NoReturn

import httpx
import msgspec

from owa_bench.agents.language_model.replies import ModelReply, parse_reply
from owa_bench.errors import AgentRaised
from owa_bench.records.model_replies import PASSING, ReplyJudgement, judge, no_reply
from owa_bench.shells import addresses

KNOWN: Mapping[str, str] = {
    "model": "name of the model, as the server knows it",
    "temperature": "0 if left out; none sends no temperature",
    "seed": "drawn from the instance and its repeat if left out; none sends no seed",
    "max_tokens": "most tokens of one reply, 4096 if left out; none sends no limit",
    "max_completion_tokens": "the same, for servers that refuse max_tokens",
    "reasoning_effort": "such as low, for models that reason; not sent if left out",
    "tool_choice": "auto, required, or the NAME of a tool; not sent if left out",
    "body": 'a JSON object of more fields for each request, such as {"top_p": 0.9}',
    "context": "tokens that a request may hold, 32768 if left out",
    "timeout": "seconds for one act with all its retries, 50 if left out",
    "retries": "times a failed request is sent again, 4 if left out",
    "memory": "true: notes that outlast a restart, written with a tool of its own",
    "screenshots": "true: a picture of the window with each turn, where there is one",
}
REQUIRED = ("model",)
_NONE = "none"
_Body = Mapping[str, Any]
_PATH = "/chat/completions"
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 8.0
_URL, _KEY = "OPENAI_BASE_URL", "OPENAI_API_KEY"
# Fields that the agent writes itself, each with an option or a flag of its own.
_OWN_FIELDS = frozenset({"model", "messages", "tools", "stream", "n"})

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Positive = Annotated[int, msgspec.Meta(gt=0)]


class ModelOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the agent. `seed` -1: drawn from the instance; None: not sent.

    `max_tokens` 0: the default, which is taken back where a server refuses it; None: not sent.
    """

    model: str
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = 0.0
    seed: Annotated[int, msgspec.Meta(ge=-1)] | None = -1
    max_tokens: _Count | None = 0
    max_completion_tokens: _Positive | None = None
    reasoning_effort: str | None = None
    tool_choice: str | None = None
    body: dict[str, Any] = {}
    context: Annotated[int, msgspec.Meta(ge=1024)] = 32_768
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 50.0
    retries: _Count = 4
    memory: bool = False
    screenshots: bool = False


def parse_options(given: Mapping[str, str]) -> ModelOptions:
    """Return the options from their texts.

    Raises: AgentRaised: it names the option, its rule and what the options are.
    """
    plain: dict[str, Any] = {
        name: None if value == _NONE else value for name, value in given.items()
    }
    try:
        plain["body"] = _body_of(given.get("body", "{}"))
        return msgspec.convert(plain, ModelOptions, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        known = "; ".join(f"{name}: {about}" for name, about in KNOWN.items())
        raise AgentRaised(f"option of the language model: {error}. Options: {known}") from error


def _body_of(text: str) -> dict[str, Any]:
    """Return more fields of the request's body from their JSON text."""
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise ValueError(f"`body` must be a JSON object, got {text!r}: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError(f"`body` must be a JSON object, got {text!r}")  # noqa: TRY004  an option, told to its user
    if own := sorted(_OWN_FIELDS & fields.keys()):
        raise ValueError(f"`body` must not hold `{own[0]}`, which the agent writes")
    return fields


def server_of(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return address and key of the server from an agent's environment.

    In a run they lead to the model gateway.

    Raises: AgentRaised: There is no address.
    """
    if not environment.get(_URL):
        raise AgentRaised(
            f"no model's server: {_URL} is not set; `owa-bench run --model-url ADDRESS` names one"
        )
    return environment[_URL], environment.get(_KEY, "")


class ContextOverflow(AgentRaised):
    """The server refused a request because it is too long."""


class ModelMistake(AgentRaised):
    """The server could not read what the model wrote; `words` are its own."""

    def __init__(self, words: str) -> None:
        super().__init__(f"the model wrote what its server could not read: {words}")
        self.words = words


class RequestRefused(AgentRaised):
    """The server refused a request that may be taken in another form.

    `words` are the server's, the name of a parameter among them.
    """

    def __init__(self, words: str) -> None:
        super().__init__(f"the model's server refused: {words}; {fix_of(words)}")
        self.words = words


class ChatEndpoint:
    """A chat endpoint at an address that ends in /v1.

    `transport`, `sleep` and `clock` are for tests.
    """

    def __init__(
        self,
        options: ModelOptions,
        url: str,
        key: str,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._sleep = sleep
        self._clock = clock
        self._url = addresses.endpoint_of(url, _PATH)
        headers = {"content-type": "application/json"}
        if key.strip():
            headers["authorization"] = f"Bearer {key.strip()}"
        self._client = httpx.Client(
            transport=transport, headers=headers, trust_env=addresses.uses_proxy(url)
        )

    def ask(self, body: _Body, deadline_s: float) -> ModelReply:
        """Return the reply to a request.

        Args:
            body: of the request.
            deadline_s: for all attempts together, s.
        Raises:
            ContextOverflow: the server finds the request too long.
            ModelMistake: the server could not read the model's call.
            RequestRefused: the server takes no request of this form.
            AgentRaised: it names cause and way out.
        """
        return parse_reply(self._completion(body, deadline_s))

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _completion(self, body: _Body, deadline_s: float) -> bytes:
        """Return the body of a completion, however often it takes."""
        until = self._clock() + deadline_s
        pause, sent = _FIRST_PAUSE_S, _encoded(body)
        for left in range(self._options.retries, -1, -1):
            asked_s = 0.0
            try:
                response = self._client.post(
                    self._url, content=sent, timeout=max(until - self._clock(), 0.001)
                )
            except httpx.TransportError as error:
                late = isinstance(error, httpx.TimeoutException)
                judgement = no_reply(type(error).__name__, late=late, seconds=deadline_s)
            else:
                judgement = judge(response.status_code, response.content)
                asked_s = _retry_after(response)
            if judgement.verdict == "completion":
                return response.content
            if judgement.cause not in PASSING or judgement.cause == "slow":
                self._raise(judgement)
            rest = max(pause, asked_s)
            if not left or self._clock() + rest >= until:
                self._give_up(judgement, asked_s)
            self._sleep(rest)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        return self._give_up(judgement, asked_s)

    def _give_up(self, judgement: ReplyJudgement, wanted: float) -> NoReturn:
        cause = judgement.text
        if wanted:
            cause += f" (it asks to wait {wanted:g} s)"
        fix = "Is it running, is --model-url right? "
        if judgement.cause == "no completion":
            fix = "--model-url must lead to an OpenAI-compatible API, often ending in /v1. "
        where = addresses.host_and_port(self._url)
        raise AgentRaised(
            f"the model's server at {where} failed: {cause}. {fix}"
            f"Longer patience: timeout= (now {self._options.timeout:g} s an act), "
            f"retries= (now {self._options.retries}), and --act-seconds"
        )

    def _raise(self, judgement: ReplyJudgement) -> NoReturn:
        """Raise the error of a response that a retry would not change."""
        words, cause = judgement.words, judgement.cause
        if cause == "too long":
            raise ContextOverflow(f"the request is too long for the model: {words}")
        if cause in ("tool call", "filtered"):
            raise ModelMistake(words)
        if cause == "request":
            raise RequestRefused(words)
        if cause == "slow":
            raise AgentRaised(
                f"the model's server was too slow: {words}. --act-seconds and timeout= "
                f"(now {self._options.timeout:g} s an act) give it more time, "
                "max_tokens= makes its replies shorter, reasoning_effort=low too where "
                "the model reasons"
            )
        if cause == "key":
            fix = "check the key: --model-key-env names its variable"
        elif cause == "model":
            fix = f"check model= ({self._options.model}) and --model-url"
        else:
            fix = "the account's quota is used up"
        raise AgentRaised(f"the model's server refused: {words}; {fix}")


def _encoded(body: _Body) -> bytes:
    """Return a body as JSON; half a pair of UTF-16, which no server reads, as "?"."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


# --- words that name an option --------------------------------------------------------


_FIXES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"max_completion_tokens", re.I),
        "say max_completion_tokens=N in place of max_tokens=N",
    ),
    (re.compile(r"max_tokens|max_output_tokens", re.I), "leave it out: max_tokens=none"),
    (re.compile(r"temperature", re.I), "leave it out: temperature=none"),
    (re.compile(r"\bseed\b", re.I), "leave it out: seed=none"),
    (re.compile(r"reasoning_effort", re.I), "leave out reasoning_effort="),
    (
        re.compile(r"tool.?choice", re.I),
        "leave tool_choice= out or say tool_choice=auto; vLLM needs "
        "--enable-auto-tool-choice --tool-call-parser NAME",
    ),
    (
        re.compile(r"\btools?\b|function call", re.I),
        "the model, or its server, takes no tools of this form: name a model that "
        "calls tools, or start the server with its tool parser",
    ),
    (re.compile(r"image|vision|multimodal", re.I), "leave out screenshots=true"),
)
_ANY_OPTION = (
    "options it may refuse are left out with temperature=none, seed=none, "
    "max_tokens=none; body={..} adds fields that it asks for"
)


def fix_of(words: str) -> str:
    """Return the option that cures a refused request, by the server's words."""
    return next((fix for phrase, fix in _FIXES if phrase.search(words)), _ANY_OPTION)


def _retry_after(response: httpx.Response) -> float:
    """Return the seconds a server asks to wait, 0 if it says nothing readable."""
    value = response.headers.get("retry-after", "")
    try:
        seconds = float(value)
        return seconds if 0.0 < seconds < float("inf") else 0.0
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
    except ValueError:
        return 0.0
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())

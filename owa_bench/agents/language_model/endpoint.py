"""Chat endpoint of a language model: options, address, requests, retries."""

import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, NoReturn

import httpx
import msgspec

from owa_bench.agents.language_model.conversation import ModelReply, parse_reply
from owa_bench.errors import AgentRaised

KNOWN: Mapping[str, str] = {
    "model": "name of the model, as the server knows it",
    "temperature": "0 if left out; none sends no temperature",
    "seed": "drawn from the instance and its repeat if left out; none sends no seed",
    "max_tokens": "most tokens of one reply; not sent if left out",
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
_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 8.0
_URL, _KEY = "OPENAI_BASE_URL", "OPENAI_API_KEY"
_SHOWN = 200
_TOO_LONG = (
    "context_length",
    "context length",
    "context window",
    "context size",
    "maximum context",
    "too many tokens",
    "prompt is too long",
)

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Positive = Annotated[int, msgspec.Meta(gt=0)]


class ModelOptions(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Options of the agent. `seed` -1: drawn from the instance; None: not sent."""

    model: str
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = 0.0
    seed: Annotated[int, msgspec.Meta(ge=-1)] | None = -1
    max_tokens: _Positive | None = None
    context: Annotated[int, msgspec.Meta(ge=1024)] = 32_768
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 50.0
    retries: _Count = 4
    memory: bool = False
    screenshots: bool = False


def parse_options(given: Mapping[str, str]) -> ModelOptions:
    """Return the options from their texts.

    Raises:
        AgentRaised: it names the option, its rule and what the options are.
    """
    plain: dict[str, Any] = {
        name: None if value == _NONE else value for name, value in given.items()
    }
    try:
        return msgspec.convert(plain, ModelOptions, strict=False)
    except msgspec.ValidationError as error:
        known = "; ".join(f"{name}: {about}" for name, about in KNOWN.items())
        raise AgentRaised(
            f"option of the language model: {error}. Options: {known}"
        ) from error


def server_of(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return address and key of the server from an agent's environment.

    In a run they lead to the model gateway.

    Raises:
        AgentRaised: There is no address.
    """
    if not environment.get(_URL):
        raise AgentRaised(
            f"no model's server: {_URL} is not set; `owa-bench run --model-url ADDRESS`"
            " names one"
        )
    return environment[_URL], environment.get(_KEY, "")


class ContextOverflow(AgentRaised):
    """The server refused a request because it is too long."""


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
        self._url = url.rstrip("/") + _PATH
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(transport=transport, headers=headers)

    def ask(self, body: _Body, deadline_s: float) -> ModelReply:
        """Return the reply to a request.

        Args:
            body: of the request.
            deadline_s: for all attempts together, s.

        Returns:
            The reply.

        Raises:
            ContextOverflow: the server finds the request too long.
            AgentRaised: it names cause and way out.
        """
        return parse_reply(self._text(body, deadline_s))

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _text(self, body: _Body, deadline_s: float) -> str:
        """Return the body of a good response, however often it takes."""
        until = self._clock() + deadline_s
        pause = _FIRST_PAUSE_S
        for left in range(self._options.retries, -1, -1):
            cause, asked_s = "", 0.0
            try:
                response = self._client.post(
                    self._url, json=body, timeout=max(until - self._clock(), 0.001)
                )
            except httpx.TransportError as error:
                cause = self._no_answer(error)
            else:
                text = response.text
                if response.is_success:
                    return text
                cause = f"HTTP {response.status_code}: {_words(text)}"
                if not _is_transient(response.status_code, text):
                    self._raise_refusal(response.status_code, text)
                asked_s = _retry_after(response)
            rest = max(pause, asked_s)
            if not left or self._clock() + rest >= until:
                self._give_up(cause, asked_s)
            self._sleep(rest)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        return self._give_up(cause, asked_s)

    def _no_answer(self, error: httpx.TransportError) -> str:
        kind = type(error).__name__
        return f"no answer from {self._url} ({kind}: {error})"

    def _give_up(self, cause: str, wanted: float) -> NoReturn:
        if wanted:
            cause += f" (it asks to wait {wanted:g} s)"
        raise AgentRaised(
            f"the model's server failed: {cause}. Is it running, is --model-url right? "
            f"Longer patience: timeout= (now {self._options.timeout:g} s an act), "
            f"retries= (now {self._options.retries}), and --act-seconds"
        )

    def _raise_refusal(self, status: int, text: str) -> NoReturn:
        """Raise the error of a response that a retry would not change."""
        words = _words(text)
        if status == httpx.codes.REQUEST_ENTITY_TOO_LARGE or _is_too_long(text):
            raise ContextOverflow(f"the request is too long for the model: {words}")
        if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            fix = "check the key: --model-key-env names its variable"
        elif status == httpx.codes.NOT_FOUND:
            fix = f"check model= ({self._options.model}) and --model-url"
        elif status == httpx.codes.TOO_MANY_REQUESTS:
            fix = "the account's quota is used up"
        else:
            fix = "options it may refuse are left out with temperature=none, seed=none"
        raise AgentRaised(f"the model's server refused: HTTP {status}: {words}; {fix}")


def _is_transient(status: int, text: str) -> bool:
    """Return whether a failed request may succeed if it is sent again."""
    return status in _AGAIN and "insufficient_quota" not in text


def _is_too_long(text: str) -> bool:
    lower = text.lower()
    return any(phrase in lower for phrase in _TOO_LONG)


def _retry_after(response: httpx.Response) -> float:
    """Return the seconds a server asks to wait, 0 if it says nothing readable."""
    value = response.headers.get("retry-after", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _words(text: str) -> str:
    """Return what an error response says, in one short line."""
    try:
        error = json.loads(text)["error"]
        text = str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError):
        pass
    return " ".join(text.split())[:_SHOWN]

"""Chat endpoint of a language model: options, API key, requests, retries, reply cache.

The key stands in one header and nowhere else: it is removed from whatever a server
sends back before that is read.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import httpx
import msgspec

from owa_bench.agents.language_model.conversation import ModelReply, parse_reply
from owa_bench.canonical import document_digest
from owa_bench.errors import AgentRaised

KNOWN: Mapping[str, str] = {
    "model": "name of the model, as the server knows it",
    "base_url": "address of the server, such as http://127.0.0.1:8000/v1",
    "key_env": "name of the environment variable that holds the API key",
    "temperature": "0 if left out; none sends no temperature",
    "seed": "drawn from the instance and its repeat if left out; none sends no seed",
    "max_tokens": "most tokens of one reply; not sent if left out",
    "context": "tokens that a request may hold, 32768 if left out",
    "timeout": "seconds for one act with all its retries, 50 if left out",
    "retries": "times a failed request is sent again, 4 if left out",
    "cache": "folder of replies by request, for playing again offline",
    "offline": "true: only the cache answers",
    "screenshots": "true: a picture of the window with each turn, where there is one",
}
REQUIRED = ("model", "base_url")
_NONE = "none"
_Body = Mapping[str, Any]
_PATH = "/chat/completions"
_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 8.0
_SHORTEST_SECRET = 8  # a shorter "key" is a placeholder, and scrubbing it would maim
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
    base_url: str
    key_env: str = ""
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = 0.0
    seed: Annotated[int, msgspec.Meta(ge=-1)] | None = -1
    max_tokens: _Positive | None = None
    context: Annotated[int, msgspec.Meta(ge=1024)] = 32_768
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 50.0
    retries: _Count = 4
    cache: str = ""
    offline: bool = False
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


def api_key(options: ModelOptions) -> str:
    """Return the API key from the environment, "" where none is named.

    Raises:
        AgentRaised: the variable is not set.
    """
    if not options.key_env:
        return ""
    key = os.environ.get(options.key_env, "")
    if not key:
        raise AgentRaised(
            f"no API key: the environment variable {options.key_env}, which key_env "
            "names, is not set; export it before `owa-bench run`"
        )
    return key


class ReplyCache:
    """Response bodies by the digest of their request, for playing without a server.

    A folder with one file per request; several processes may write at once.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def read(self, digest: str) -> str | None:
        """Return the response body under a digest, None if there is none."""
        try:
            return self._path(digest).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write(self, digest: str, text: str) -> None:
        """Keep a response body; the file appears complete or not at all.

        Args:
            digest: of the request.
            text: the response body.
        """
        path = self._path(digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}.tmp")
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / f"{digest}.json"


class ContextOverflow(AgentRaised):
    """The server refused a request because it is too long."""


class ChatEndpoint:
    """A chat endpoint. `transport`, `sleep` and `clock` are for tests."""

    def __init__(
        self,
        options: ModelOptions,
        key: str,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._key = key
        self._sleep = sleep
        self._clock = clock
        self._cache = ReplyCache(options.cache) if options.cache else None
        self._url = options.base_url.rstrip("/") + _PATH
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(transport=transport, headers=headers)

    def ask(self, body: _Body, deadline_s: float) -> ModelReply:
        """Return the reply to a request, from the cache where that holds one.

        Args:
            body: of the request.
            deadline_s: for all attempts together, s.

        Returns:
            The reply.

        Raises:
            ContextOverflow: the server finds the request too long.
            AgentRaised: it names cause and way out.
        """
        digest = document_digest(body)
        cached = self._cache.read(digest) if self._cache else None
        if cached is not None:
            return parse_reply(cached)._replace(cached=True)
        if self._options.offline:
            place = self._options.cache or "none: name one with cache=FOLDER"
            raise AgentRaised(
                f"offline, and the cache ({place}) holds no reply to request "
                f"{digest[:12]}; play it once without offline=true"
            )
        text = self._text(body, deadline_s)
        reply = parse_reply(text)
        if self._cache:
            self._cache.write(digest, text)
        return reply

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _text(self, body: _Body, deadline_s: float) -> str:
        """Return the scrubbed body of a good response, however often it takes."""
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
                text = self._scrubbed(response.text)
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
        return f"no answer from {self._url} ({kind}: {self._scrubbed(str(error))})"

    def _give_up(self, cause: str, wanted: float) -> NoReturn:
        if wanted:
            cause += f" (it asks to wait {wanted:g} s)"
        raise AgentRaised(
            f"the model's server failed: {cause}. Is it running, is base_url right? "
            f"Longer patience: timeout= (now {self._options.timeout:g} s an act), "
            f"retries= (now {self._options.retries}), and --act-seconds"
        )

    def _raise_refusal(self, status: int, text: str) -> NoReturn:
        """Raise the error of a response that a retry would not change."""
        words = _words(text)
        if status == httpx.codes.REQUEST_ENTITY_TOO_LARGE or _is_too_long(text):
            raise ContextOverflow(f"the request is too long for the model: {words}")
        if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            named = self._options.key_env or "none is named: key_env=VARIABLE"
            fix = f"check the key in the environment variable ({named})"
        elif status == httpx.codes.NOT_FOUND:
            fix = f"check model= ({self._options.model}) and base_url= ({self._url})"
        elif status == httpx.codes.TOO_MANY_REQUESTS:
            fix = "the account's quota is used up"
        else:
            fix = "options it may refuse are left out with temperature=none, seed=none"
        raise AgentRaised(f"the model's server refused: HTTP {status}: {words}; {fix}")

    def _scrubbed(self, text: str) -> str:
        if len(self._key) < _SHORTEST_SECRET:
            return text
        return text.replace(self._key, "{secret:api_key}")


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

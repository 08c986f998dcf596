"""The chat endpoint: one request, its retries, its failures and the reply cache.

The key stands in one header and nowhere else: whatever a server sends back is scrubbed
of it before it is read.
"""

import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn

import httpx

from owa_bench.agents.language_model import replies
from owa_bench.agents.language_model.cache import Cache
from owa_bench.agents.language_model.options import Options
from owa_bench.agents.language_model.replies import Reply
from owa_bench.canonical import document_digest
from owa_bench.errors import AgentRaised

Body = Mapping[str, Any]
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


class ContextOverflow(AgentRaised):
    """The server refused a request because it is too long."""


class Chat:
    """A chat endpoint. `transport`, `sleep` and `clock` are for tests."""

    def __init__(
        self,
        options: Options,
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
        self._cache = Cache(options.cache) if options.cache else None
        self._url = options.base_url.rstrip("/") + _PATH
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(transport=transport, headers=headers)

    def ask(self, body: Body, deadline_s: float) -> Reply:
        """Return the reply to a request, from the cache where that holds one.

        Errors: ContextOverflow; AgentRaised naming cause and way out.
        """
        digest = document_digest(body)
        kept = self._cache.read(digest) if self._cache else None
        if kept is not None:
            return replies.read(kept)._replace(cached=True)
        if self._options.offline:
            place = self._options.cache or "none: name one with cache=FOLDER"
            raise AgentRaised(
                f"offline, and the cache ({place}) holds no reply to request "
                f"{digest[:12]}; play it once without offline=true"
            )
        text = self._text(body, deadline_s)
        reply = replies.read(text)
        if self._cache:
            self._cache.write(digest, text)
        return reply

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _text(self, body: Body, deadline_s: float) -> str:
        """Return the scrubbed body of a good response, however often it takes."""
        until = self._clock() + deadline_s
        pause = _FIRST_PAUSE_S
        for left in range(self._options.retries, -1, -1):
            cause, wanted = "", 0.0
            try:
                response = self._client.post(
                    self._url, json=body, timeout=max(until - self._clock(), 0.001)
                )
            except httpx.TransportError as error:
                cause = self._unreachable(error)
            else:
                text = self._scrubbed(response.text)
                if response.is_success:
                    return text
                cause = f"HTTP {response.status_code}: {_words(text)}"
                if not _worth_another(response.status_code, text):
                    self._refused(response.status_code, text)
                wanted = _retry_after(response)
            rest = max(pause, wanted)
            if not left or self._clock() + rest >= until:
                self._give_up(cause, wanted)
            self._sleep(rest)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        return self._give_up(cause, wanted)

    def _unreachable(self, error: httpx.TransportError) -> str:
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

    def _refused(self, status: int, text: str) -> NoReturn:
        """Raise what a response that no repetition will better says."""
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


def _worth_another(status: int, text: str) -> bool:
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

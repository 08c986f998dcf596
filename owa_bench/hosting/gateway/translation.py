"""Interfaces of providers, and chat requests in their forms by litellm.

litellm writes the provider's request and reads its reply; both pass through the gateway, which
holds the key and sees status and bytes itself. Of a chat request only what follows is translated,
since the rest of litellm's parameters could lead elsewhere: to another address, to a reply without
a request, to a picture fetched by the harness.
"""

import importlib.util
import logging
import os
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from owa_bench.errors import MissingPartError, extra

ModelApi = Literal["chat", "responses", "anthropic", "gemini"]
_PARAMETERS = frozenset(
    {"messages", "tools", "tool_choice", "parallel_tool_calls", "response_format"}
    | {"temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "seed"}
    | {"presence_penalty", "frequency_penalty", "reasoning_effort"}
)
_IGNORED = frozenset({"model", "stream", "stream_options", "user"})
_LIBRARY = "litellm"
_ANTHROPIC_VERSION = "2023-06-01"


class ProviderApi(NamedTuple):
    """A provider's interface: litellm's name for it, its address, its key's variable.

    `prefix` "" is the chat interface, which is not translated.
    """

    prefix: str
    url: str
    key_env: str


_OPENAI = "https://api.openai.com/v1"
APIS: Mapping[ModelApi, ProviderApi] = {
    "chat": ProviderApi("", _OPENAI, "OPENAI_API_KEY"),
    "responses": ProviderApi("openai/responses", _OPENAI, "OPENAI_API_KEY"),
    "anthropic": ProviderApi("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    "gemini": ProviderApi(
        "gemini", "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY"
    ),
}


class ModelProvider(msgspec.Struct, frozen=True, kw_only=True):
    """The provider behind the gateway; "" is no address, or no key.

    Chat requests are translated where `api` is another interface. `timeout_s` is for one request.
    `cache` is a folder of replies by request. `headers` are sent with each request, and are
    secrets.
    """

    url: str = ""
    api: ModelApi = "chat"
    key: str = ""
    timeout_s: float = 48.0
    cache: str = ""
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no reply and no record may hold."""
        return (self.key, *(value for _, value in self.headers))

    def sign(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a request with the provider's own and its key.

        Args:
            headers: Of the request; a header with a key stands in place of the key.
        """
        signed = {**headers, **dict(self.headers)}
        own = {name.lower() for name in signed}
        if self.api == "anthropic":
            signed.setdefault("anthropic-version", _ANTHROPIC_VERSION)
            if self.key:
                signed.setdefault("x-api-key", self.key)
        elif self.key and not own & {"authorization", "api-key", "x-api-key"}:
            signed["authorization"] = f"Bearer {self.key}"
        return signed


def require_library() -> None:
    """Refuse a machine without the library; nothing is imported.

    Raises: MissingPartError: With the line that installs it.
    """
    if importlib.util.find_spec(_LIBRARY) is None:
        raise MissingPartError(_LIBRARY, extra("providers"))


class Translator:
    """Turns chat requests into those of one provider. Its import takes seconds.

    Args:
        api: The provider's interface.
    """

    def __init__(self, api: ProviderApi) -> None:
        require_library()
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # fetches nothing
        import litellm

        logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
        litellm.suppress_debug_info = True
        litellm.telemetry = False
        self._complete = litellm.acompletion
        self._prefix = api.prefix

    async def reply(
        self, terms: Mapping[str, Any], address: str, key: str, timeout_s: float
    ) -> bytes:
        """Return the provider's reply to a chat request, as a chat completion.

        Args:
            terms: The request, with no fault.
            address: Where the provider's request goes.
            key: Stands for the API key in it.
            timeout_s: Seconds it has.
        Returns: JSON. Parameters that the provider does not know are left out; what the library
            raises passes on.
        """
        given = {name: terms[name] for name in _PARAMETERS & terms.keys()}
        completion = await self._complete(
            **given,
            model=f"{self._prefix}/{terms['model']}",
            api_base=address,
            api_key=key,
            timeout=timeout_s,
            max_retries=0,
            num_retries=0,
            drop_params=True,
        )
        text: str = completion.model_dump_json(exclude_none=True)
        return text.encode()


def translation_fault(terms: Mapping[str, Any]) -> str:
    """Return why a chat request is not translated, "" if it is."""
    if not isinstance(terms.get("model"), str) or not terms["model"]:
        return "`model` must be a name"
    if terms.get("stream"):
        return "`stream` must be left out: a translated reply comes whole"
    if unknown := sorted(terms.keys() - _PARAMETERS - _IGNORED):
        return f"`{unknown[0]}` is not translated; known: {sorted(_PARAMETERS)}"
    if not _are_objects(terms.get("messages")):
        return "`messages` must be a list of objects"
    for message in terms["messages"]:
        content = message.get("content")
        if not isinstance(content, list):
            continue
        if not all(_is_plain(part) for part in content):
            return "a message's parts must be text, or image_url with a data address"
    tools = terms.get("tools") or []
    if not _are_objects(tools) or any(t.get("type") != "function" for t in tools):
        return "`tools` must be functions"
    return ""


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _is_plain(part: Any) -> bool:
    """Return whether a part of a message holds all it says, and nothing to fetch."""
    if not isinstance(part, dict):
        return False
    if part.get("type") == "text":
        return True
    picture = part.get("image_url") if part.get("type") == "image_url" else None
    url = picture.get("url") if isinstance(picture, dict) else None
    return isinstance(url, str) and url.startswith("data:")

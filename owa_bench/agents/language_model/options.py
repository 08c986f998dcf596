"""What the agent is told on the command line, and the key, which is not."""

import os
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

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

Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(gt=0)]


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options, read. `seed` -1: drawn from the instance; None: not sent."""

    model: str
    base_url: str
    key_env: str = ""
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = 0.0
    seed: Annotated[int, msgspec.Meta(ge=-1)] | None = -1
    max_tokens: Positive | None = None
    context: Annotated[int, msgspec.Meta(ge=1024)] = 32_768
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 50.0
    retries: Count = 4
    cache: str = ""
    offline: bool = False
    screenshots: bool = False


def read(given: Mapping[str, str]) -> Options:
    """Return the options of `given`.

    Errors: AgentRaised naming the option, its rule and what the options are.
    """
    plain: dict[str, Any] = {
        name: None if value == _NONE else value for name, value in given.items()
    }
    try:
        return msgspec.convert(plain, Options, strict=False)
    except msgspec.ValidationError as error:
        known = "; ".join(f"{name}: {about}" for name, about in KNOWN.items())
        raise AgentRaised(
            f"option of the language model: {error}. Options: {known}"
        ) from error


def key_of(options: Options) -> str:
    """Return the API key from the environment, "" where none is named.

    Errors: AgentRaised if the variable is not set.
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

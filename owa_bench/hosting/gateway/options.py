"""Options of the model gateway: provider, key, cache, hosts and variables of agents."""

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from owa_bench.errors import FieldError, UsageError, one_of
from owa_bench.hosting.gateway.reply_cache import folder_fault
from owa_bench.hosting.gateway.scrubbing import SHORTEST_SECRET
from owa_bench.hosting.gateway.translation import APIS, ModelApi, ModelProvider, require_library

if TYPE_CHECKING:
    from owa_bench.hosting.gateway.server import ModelGateway

_URL = "OPENAI_BASE_URL"
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_VARIABLE = re.compile(r"\w+", re.ASCII)
_USUAL_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,60}")
_LOOPBACK = "127.0.0.1,localhost,::1"
_HEADER = re.compile(r"([A-Za-z0-9-]{1,80})=(\w{1,200})", re.ASCII)
_KEY = re.compile(r"[!-~]+( [!-~]+)*")  # what a header may hold; "Bearer .." too
_QUOTES = "\"'`"  # which files of variables keep
_HOST = re.compile(r"[a-z0-9.-]{1,200}:[1-9][0-9]{0,4}")
# Of the time for one act, so that a provider's silence is the gateway's to name.
_ACT_SHARE = 0.8


class GatewayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What agents may reach, by run options; the key itself stays in the environment.

    `model_api` is what the provider speaks. `model_url` "": OPENAI_BASE_URL for chat, or the public
    one where there is a key. `model_key_env` names the variable of the key, "": the usual one of
    the interface. `model_header` are headers as "NAME=VARIABLE", with the value of that variable.
    `pass_env` are variables that agents get, `allow_host` hosts as "HOST:PORT".
    """

    model_url: str = ""
    model_api: ModelApi = "chat"
    model_key_env: str = ""
    model_header: tuple[str, ...] = ()
    model_cache: str = ""
    allow_host: tuple[str, ...] = ()
    pass_env: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse what cannot be used.

        Raises:
            FieldError: Naming option, value and rule.
            MissingPartError: What translates requests is not installed.
        """
        if self.model_api not in APIS:
            rule = one_of(self.model_api, APIS)
            raise FieldError("--model-api", self.model_api, rule)
        if APIS[self.model_api].prefix:
            require_library()
        self._check_address()
        self._check_secrets()
        if self.model_cache and (fault := folder_fault(Path(self.model_cache))):
            raise FieldError("--model-cache", self.model_cache, fault)
        for host in self.allow_host:
            if not _HOST.fullmatch(host):
                rule = "must read HOST:PORT, such as api.example:443"
                raise FieldError("--allow-host", host, rule)
        for name in self.pass_env:
            if name not in os.environ:
                rule = "must name a variable that is set"
                raise FieldError("--pass-env", name, rule)

    def _check_address(self) -> None:
        """Refuse an address that cannot be asked, or that holds a password."""
        url, option = self.address, "--model-url" if self.model_url else f"${_URL}"
        if not url:
            return
        import httpx

        from owa_bench.shells import addresses

        try:
            parts = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise FieldError(option, "..", f"must be an address: {error}") from None
        if parts.scheme not in ("http", "https") or not parts.host:
            rule = "must begin with http:// or https:// and name a host"
            shown = ".." if "@" in url else url.partition("?")[0]
            raise FieldError(option, shown, rule)
        if addresses.holds_secret(url):
            rule = (
                "must hold no user, password or key: put it into a variable, which "
                "--model-key-env or --model-header names"
            )
            where = f"{parts.scheme}://..@{addresses.host_and_port(url)}"
            raise FieldError(option, where, rule)
        if fault := addresses.proxy_fault(url, os.environ):
            raise UsageError(f"The models' provider cannot be reached: {fault}.")

    def _check_secrets(self) -> None:
        """Refuse keys and headers that no request can carry; values are not shown."""
        for header in self.model_header:
            match = _HEADER.fullmatch(header)
            if match is None:
                name = header.partition("=")[0]
                rule = (
                    "must read HEADER=VARIABLE, where the environment variable holds "
                    "the value, such as api-key=AZURE_KEY"
                )
                raise FieldError("--model-header", f"{name}=..", rule)
            if match[2] not in os.environ:
                rule = "must name a variable that is set"
                raise FieldError("--model-header", _name_text(match[2]), rule)
        key = os.environ.get(self.model_key_env, "").strip()
        if self.model_key_env and self.address and not key:
            rule = "must name a variable that is set and not empty"
            raise FieldError("--model-key-env", _name_text(self.model_key_env), rule)
        named = [self.key_env, *(h.partition("=")[2] for h in self.model_header)]
        for name in named:
            value = os.environ.get(name, "").strip()
            if value and value[0] == value[-1] and value[0] in _QUOTES:
                raise UsageError(
                    f"${name} holds quote marks around its key, which are sent too: "
                    "set it without them."
                )
            if value and not _KEY.fullmatch(value):
                raise UsageError(
                    f"${name} must hold a key of printable ASCII characters in one "
                    "line; it holds others inside. Set it again from its source."
                )

    @property
    def address(self) -> str:
        """The provider's address, "" where there is none."""
        api = APIS[self.model_api]
        usual = "" if api.prefix else os.environ.get(_URL, "").strip()
        return self.model_url.strip() or usual or (self._key() and api.url)

    def _key(self) -> str:
        """Return the API key, without the line end that files and shells add."""
        return os.environ.get(self.key_env, "").strip()

    @property
    def key_env(self) -> str:
        """Name of the variable that holds the API key."""
        return self.model_key_env or APIS[self.model_api].key_env

    def _headers(self) -> tuple[tuple[str, str], ...]:
        """Return the headers of each request, with the values of their variables."""
        pairs = (header.partition("=") for header in self.model_header)
        return tuple((name, os.environ[env].strip()) for name, _, env in pairs)

    @property
    def secret_variables(self) -> tuple[str, ...]:
        """The variables that hold secrets, whatever they are called."""
        return (self.key_env, *(h.partition("=")[2] for h in self.model_header))

    def agent_variables(self) -> dict[str, str]:
        """Return the variables that agents get of the harness' environment.

        An agent that gets a proxy reaches the gateway without it.
        """
        passed = {n: os.environ[n] for n in self.pass_env if n in os.environ}
        if any(name.lower().endswith("_proxy") for name in passed):
            for name in ("NO_PROXY", "no_proxy"):
                given = passed.get(name, "")
                passed[name] = ",".join(filter(None, (given, _LOOPBACK)))
        return passed

    def gateway(self, act_s: float, fields: Collection[str] = ()) -> "ModelGateway | None":
        """Return a gateway, None where there is nothing to reach.

        Args:
            act_s: Seconds that an agent has for one act.
            fields: Names of fields of requests that the plan lets pass.
        Returns: The gateway, running.
        """
        if not (self.address or self.model_cache or self.allow_host):
            return None
        from owa_bench.hosting.gateway.server import ModelGateway

        provider = self.provider(_ACT_SHARE * act_s)
        return ModelGateway(provider, frozenset(self.allow_host), fields)

    def provider(self, timeout_s: float) -> ModelProvider:
        """Return the provider behind the gateway, with the keys of the environment.

        Args:
            timeout_s: Seconds that it has for one request.
        """
        return ModelProvider(
            url=self.address,
            api=self.model_api,
            key=self._key(),
            timeout_s=timeout_s,
            cache=self.model_cache,
            headers=self._headers(),
        )


def _name_text(variable: str) -> str:
    """Return what an error shows of a variable's name, which may be the key itself."""
    return variable if _USUAL_NAME.fullmatch(variable) else "..(not shown)"


def environment_secrets(
    environment: Mapping[str, str], also: Collection[str] = ()
) -> dict[str, str]:
    """Return the variables that hold secrets, by the name that stands for each.

    Args:
        environment: Variables.
        also: Names of those that hold a secret whatever they are called.
    Returns: Values by name, without the blanks around them, in which a record could hold them;
        those too short to be told from other text are left out.
    """
    return {
        f"env:{name}": value
        for name, value in ((n, v.strip()) for n, v in environment.items())
        if (name in also or _SECRET.search(name))
        and len(value) >= SHORTEST_SECRET
        and _VARIABLE.fullmatch(name)
    }

"""Options of the model gateway: provider, key, cache, hosts and variables of agents."""

import os
import re
from collections.abc import Mapping

import msgspec

from owa_bench.errors import FieldError, one_of
from owa_bench.run.gateway.server import (
    SHORTEST_SECRET,
    ModelGateway,
)
from owa_bench.run.gateway.translation import (
    APIS,
    ModelApi,
    ModelProvider,
    require_library,
)

_URL = "OPENAI_BASE_URL"
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_VARIABLE = re.compile(r"\w+", re.ASCII)
_HOST = re.compile(r"[a-z0-9.-]{1,200}:[1-9][0-9]{0,4}")
# Of the time for one act, so that a provider's silence is the gateway's to name.
_ACT_SHARE = 0.8


class GatewayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What agents may reach, by run options; the key itself stays in the environment.

    `model_api` is what the provider speaks. `model_url` "": OPENAI_BASE_URL for chat,
    or the public one where there is a key. `model_key_env` names the variable of the
    key, "": the usual one of the interface. `pass_env` are variables that agents
    get, `allow_host` hosts as "HOST:PORT".
    """

    model_url: str = ""
    model_api: ModelApi = "chat"
    model_key_env: str = ""
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
        if self.model_url and not self.model_url.startswith(("http://", "https://")):
            rule = "must begin with http:// or https://"
            raise FieldError("--model-url", self.model_url, rule)
        for host in self.allow_host:
            if not _HOST.fullmatch(host):
                rule = "must read HOST:PORT, such as api.example:443"
                raise FieldError("--allow-host", host, rule)
        for name in self.pass_env:
            if name not in os.environ:
                rule = "must name a variable that is set"
                raise FieldError("--pass-env", name, rule)

    @property
    def key_env(self) -> str:
        """Name of the variable that holds the API key."""
        return self.model_key_env or APIS[self.model_api].key_env

    def agent_variables(self) -> dict[str, str]:
        """Return the variables that agents get of the harness' environment."""
        return {n: os.environ[n] for n in self.pass_env if n in os.environ}

    def gateway(self, act_s: float) -> ModelGateway | None:
        """Return a gateway, None where there is nothing to reach.

        Args:
            act_s: Seconds that an agent has for one act.

        Returns:
            The gateway, running.
        """
        key, api = os.environ.get(self.key_env, ""), APIS[self.model_api]
        usual = "" if api.prefix else os.environ.get(_URL, "")
        url = self.model_url or usual or (key and api.url)
        if not (url or self.model_cache or self.allow_host):
            return None
        provider = ModelProvider(
            url=url,
            api=self.model_api,
            key=key,
            timeout_s=_ACT_SHARE * act_s,
            cache=self.model_cache,
        )
        return ModelGateway(provider, frozenset(self.allow_host))


def environment_secrets(
    environment: Mapping[str, str], also: str = ""
) -> dict[str, str]:
    """Return the variables that hold secrets, by the name that stands for each.

    Args:
        environment: Variables.
        also: Name of one that holds a secret whatever it is called.

    Returns:
        Values by name; those too short to be told from other text are left out.
    """
    return {
        f"env:{name}": value
        for name, value in environment.items()
        if (name == also or _SECRET.search(name))
        and len(value) >= SHORTEST_SECRET
        and _VARIABLE.fullmatch(name)
    }

"""Failures of harness and providers: a call before a run, a limit within it."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec

from owa_bench import bounded_json, discovery
from owa_bench.errors import (
    AgentFailure,
    AgentSpecError,
    FailureLimitError,
    PreflightError,
)
from owa_bench.interfaces import AgentCard, Brief
from owa_bench.records.protocol import Stopping
from owa_bench.run.agents.protocol import AgentRequest, ResetRequest
from owa_bench.run.agents.spec import AgentHandle
from owa_bench.run.agents.transports import HttpTransport
from owa_bench.run.gateway.options import GatewayOptions
from owa_bench.run.gateway.server import ModelGateway
from owa_bench.run.play.loop import AttemptResult

# --- preflight ------------------------------------------------------------------------
# An agent that names a model has its provider asked once, through the model gateway and
# with the parameters of its own requests; an agent's own address is told of an episode
# that begins and ends. Nothing of it is recorded or counted.


_SKIP = "`--no-preflight` plays without this call"
_BRIEF = Brief(text="Preflight: this episode begins and ends, nothing else.", goal={})
_MS = 1000.0
_FIXES = {
    400: "options it may refuse are left out, as temperature=none, seed=none",
    404: "check the model's name and --model-url",
    429: "wait, or raise the account's quota",
    502: "is it running, is --model-url right?",
    504: "is it overloaded? --act-seconds gives it more time",
}


def preflight(
    agents: Iterable[AgentHandle], options: GatewayOptions, act_s: float
) -> Iterator[str]:
    """Ask what the agents need, and say what answered.

    Args:
        agents: Those of the run.
        options: What they may reach.
        act_s: Seconds that an agent has for one act.

    Yields:
        A line for each agent behind an address, and for each that names a model; for
        a provider that no agent names a model of, one line.

    Raises:
        PreflightError: Something does not answer as it must; with the whole error.
        AgentSpecError: An agent needs a model, and there is no provider.
    """
    bodies: list[tuple[str, dict[str, Any]]] = []
    for agent in agents:
        if agent.origin.kind == "http":
            yield _ask_address(agent, act_s)
        elif (body := _model_request(agent)) is not None:
            bodies.append((agent.name, body))
    fresh = msgspec.structs.replace(options, model_cache="", allow_host=())
    if not bodies and not options.model_url:
        return
    gateway = fresh.gateway(act_s)
    if gateway is None:
        if options.model_cache:  # it answers alone
            return
        raise AgentSpecError(
            f"The agent {bodies[0][0]!r} needs a model's provider: --model-url ADDRESS "
            f"names one, or set ${options.key_env}."
        )
    with gateway:
        for name, body in bodies:
            yield f"{name}: {_ask_model(gateway, options, body)}"
        if not bodies and options.model_api == "chat":
            yield _ask_provider(gateway, options)


def _model_request(agent: AgentHandle) -> dict[str, Any] | None:
    """Return the body of an agent's cheap request, None if it names no model."""
    if agent.origin.kind != "registry":
        return None
    card: AgentCard = discovery.find("agents")[agent.origin.target].plugin
    if card.preflight is None:
        return None
    try:
        return dict(card.preflight(agent.options))
    except AgentFailure as failure:
        raise AgentSpecError(f"Agent `{agent.name}`: {failure}") from failure


def _ask_address(agent: AgentHandle, act_s: float) -> str:
    """Return what an agent's address answered."""
    host = urlsplit(agent.origin.target).netloc
    transport = HttpTransport(agent.origin.target)
    begun = time.perf_counter()
    try:
        terms = ResetRequest(brief=_BRIEF, tools=(), memory_dir="")
        transport.ask(AgentRequest(reset=terms), act_s)
        waited_ms = (time.perf_counter() - begun) * _MS
        transport.ask(AgentRequest(close={}), act_s)
    except AgentFailure as failure:
        raise PreflightError(
            f"The agent at {host} does not answer as docs/wire-protocol.md asks: "
            f"{failure}. Is it running, is {agent.spec} right? {_SKIP}."
        ) from failure
    finally:
        transport.end()
    return f"{agent.name}: the agent at {host} answered in {waited_ms:.0f} ms"


def _ask_model(
    gateway: ModelGateway, options: GatewayOptions, body: dict[str, Any]
) -> str:
    """Return what the provider answered to a chat request."""
    host, model = _host(gateway), body.get("model", "")
    reply, waited_ms = _gateway_reply(gateway, "POST", "/chat/completions", body)
    what = f"The model {model!r} at {host}"
    if not reply.is_success:
        raise _refusal(what, reply, options)
    try:
        bounded_json.decode(reply.content)["choices"][0]["message"]
    except (ValueError, LookupError, TypeError) as error:
        shown = " ".join(reply.text.split())
        raise PreflightError(
            f"{what} answered with no chat completion: {shown!r}. --model-url must lead"
            f" to an API that speaks {options.model_api}, often ending in /v1. {_SKIP}."
        ) from error
    return f"model {model} at {host} answered in {waited_ms:.0f} ms"


def _ask_provider(gateway: ModelGateway, options: GatewayOptions) -> str:
    """Return what a provider answered whose models no agent of the run names.

    Not every server lists its models: any answer but a refused key is good.
    """
    host = _host(gateway)
    reply, waited_ms = _gateway_reply(gateway, "GET", "/models")
    if reply.status_code in (401, 403, 502):
        raise _refusal(f"The models' provider at {host}", reply, options)
    return f"the models' provider at {host} answered in {waited_ms:.0f} ms"


def _gateway_reply(
    gateway: ModelGateway, method: str, path: str, body: dict[str, Any] | None = None
) -> tuple[httpx.Response, float]:
    """Return the reply to a request through the gateway, and its milliseconds."""
    session = gateway.open()
    with httpx.Client(
        base_url=f"http://127.0.0.1:{gateway.port}/v1",
        headers={"authorization": f"Bearer {session.token}"},
        timeout=gateway.provider.timeout_s + 1.0,
        trust_env=False,
    ) as client:
        begun = time.perf_counter()
        try:
            reply = client.request(method, path, json=body)
        finally:
            session.close()
        return reply, (time.perf_counter() - begun) * _MS


def _host(gateway: ModelGateway) -> str:
    return urlsplit(gateway.provider.url).netloc


def _refusal(
    what: str, reply: httpx.Response, options: GatewayOptions
) -> PreflightError:
    """Return the error of an answer that is no success, whole and with the fix."""
    status = reply.status_code
    name = options.key_env
    key = f"check the key in ${name}; --model-key-env names another variable"
    fix = key if status in (401, 403) else _FIXES.get(status, "see its own words")
    words = " ".join(reply.text.split())
    return PreflightError(f"{what} answered HTTP {status}: {words}: {fix}. {_SKIP}.")


# --- limit of failures ----------------------------------------------------------------
# An agent whose model is gone would have every episode scored as its own failure; the
# run stops instead, and what was not played is left to `--resume`. Attempts of earlier
# calls are not counted, so that a resumed run has its chance.


class FailureLimit:
    """Counts closed attempts by arm.

    Args:
        rule: The protocol's, None for one that has none.
        share: In place of the protocol's share; None: the protocol's.
    """

    def __init__(self, rule: Stopping | None, share: float | None) -> None:
        self._least = rule.failures_min if rule else 1
        self._share = rule.failure_share if rule and share is None else share
        self._attempts = Counter[str]()
        self._failures = Counter[str]()
        self._first: dict[str, str] = {}

    def add(self, arm: str, result: AttemptResult) -> None:
        """Count one closed attempt.

        Args:
            arm: The arm it was made for.
            result: The attempt.

        Raises:
            FailureLimitError: More than the share of the arm's attempts failed so.
        """
        self._attempts[arm] += 1
        cause = result.provider_failure
        if not cause and result.leaf.status != "infrastructure":
            return
        self._failures[arm] += 1
        self._first.setdefault(arm, cause or result.end.reason)
        failures, attempts = self._failures[arm], self._attempts[arm]
        if self._share is None or failures < self._least:
            return
        if failures > self._share * attempts:
            raise FailureLimitError(
                f"{failures} of {attempts} attempts of {arm} failed through the harness"
                f" or a model's provider, more than a share of {self._share:g} "
                f"(--failure-share). The first: {self._first[arm]}"
            )

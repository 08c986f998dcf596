"""Preflight: what the agents of a run need is asked before its plan is signed.

An agent that asks a model is played up to its first act in each of its suites, on an instance that
no plan draws, so that the provider gets the first request that the run will send: with the suite's
tools, the agent's system text and a picture where it wants one. A command and an address begin and
end one episode. Nothing is recorded or counted.
"""

import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from owa_bench.errors import AgentFailure, AgentSpecError, PreflightError
from owa_bench.hosting.agent_process import AgentConnection, AgentLauncher
from owa_bench.hosting.fork_server import ForkServer
from owa_bench.hosting.gateway.options import GatewayOptions
from owa_bench.hosting.gateway.session import ModelRequest
from owa_bench.hosting.gateway.translation import APIS
from owa_bench.hosting.protocol import AgentRequest, ResetRequest
from owa_bench.hosting.spec import AgentHandle
from owa_bench.interfaces import Brief
from owa_bench.records.calls_as_text import PARSER, is_call_as_text, said_in
from owa_bench.records.model_replies import Cause, ReplyJudgement, calls_in, decoded
from owa_bench.records.plan import Plan, PlanEntry, supervisor_budget
from owa_bench.runs.play import episode_setup
from owa_bench.runs.play.episode_setup import EnvPool, PlayedEnv
from owa_bench.runs.resolve import ResolvedEntry, Resolver
from owa_bench.shells import addresses
from owa_bench.shells.episode import EpisodeFacts

if TYPE_CHECKING:
    from owa_bench.hosting.gateway.server import ModelGateway

_SKIP = "`--no-preflight` plays without this call"
_SEED = 0  # of an instance that no plan draws
_MS = 1000.0
_SHOWN = 4_000  # characters of a provider's own words
_REDIRECTS = range(300, 400)
_BRIEF = Brief(text="Preflight: this episode begins and ends, nothing else.", goal={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenes:
    """The plan whose agents are asked, and the envs in which they begin."""

    plan: Plan
    envs: EnvPool
    resolver: Resolver

    def of(self, arm: str) -> Iterator[PlanEntry]:
        """Yield an entry of an arm for each of its suites."""
        seen: set[str] = set()
        for entry in self.plan.entries:
            if entry.arm == arm and entry.suite not in seen:
                seen.add(entry.suite)
                yield entry


class _Member(NamedTuple):
    """An agent that is started, its arm, how the plan holds its process, and what it is called.

    That is the arm's name, and of a seat of a mixed crew the agent's own.
    """

    agent: AgentHandle
    arm: str
    hosting: str
    label: str


def preflight(
    plan: Plan,
    agents: Iterable[tuple[str, AgentHandle]],
    options: GatewayOptions,
    folder: Path | None = None,
) -> Iterator[str]:
    """Ask what the agents need, and say what answered.

    Args:
        plan: What is to be played, drawn but perhaps not signed yet.
        agents: The agent of each arm, by the arm's name.
        options: What they may reach.
        folder: No agent's process sees it; None: there is none.
    Yields: A line for each agent behind an address, each command, and each agent and suite that
        asks a model; for a provider that no agent of ours asks, one line.
    Raises:
        PreflightError: Something does not answer as it must; with the whole error.
        AgentSpecError: An agent needs a model, and there is no provider.
    """
    hostings = {arm.name: arm.hosting for arm in plan.arms}
    members = [
        _Member(member, arm, hostings.get(arm, ""), member.name if agent.seats else arm)
        for arm, agent in agents
        for member in agent.members
    ]
    # A frozen twin or a control of a campaign begins as its agent does, which stands before it.
    members = [*{member.agent.spec: member for member in reversed(members)}.values()][::-1]
    asking = [member for member in members if member.agent.asks_model]
    fresh = msgspec.structs.replace(options, model_cache="", allow_host=())
    with ExitStack() as stack:
        gateway = None
        if options.address:
            gateway = fresh.gateway(plan.budget.act_s, plan.model_fields)
        if gateway is not None:
            stack.enter_context(gateway)
        if asking and gateway is None and not options.model_cache:
            raise AgentSpecError(
                f"The agent {asking[0].label!r} needs a model's provider: "
                f"--model-url ADDRESS names one, or set ${options.key_env}."
            )
        envs = EnvPool(plan)
        stack.callback(envs.close)
        scenes = Scenes(plan=plan, envs=envs, resolver=Resolver(plan))
        stage = None
        for member in members:
            kind = member.agent.origin.kind
            if kind == "http":
                yield _ask_address(member, plan.budget.act_s)
                continue
            begins = kind == "command"
            if not (begins or (member in asking and gateway is not None)):
                continue
            if stage is None:
                server = stack.enter_context(ForkServer())
                # What is not there yet can be hidden by no mount.
                hidden = (str(folder),) if folder and folder.exists() else ()
                launcher = AgentLauncher(
                    server, hidden=hidden, gateway=gateway, variables=options.agent_variables()
                )
                stage = _Stage(scenes, launcher, options, gateway)
            yield from stage.begin(member, acts=not begins)
        named = bool(options.model_url) and not APIS[options.model_api].prefix
        if gateway is not None and not asking and named:
            yield _ask_provider(gateway, options)


# --- agents that are started ----------------------------------------------------------


class _Stage:
    """Begins an episode with an agent, as a run would."""

    def __init__(
        self,
        scenes: Scenes,
        launcher: AgentLauncher,
        options: GatewayOptions,
        gateway: "ModelGateway | None",
    ) -> None:
        self._scenes = scenes
        self._launcher = launcher
        self._options = options
        self._gateway = gateway

    def begin(self, member: _Member, *, acts: bool) -> Iterator[str]:
        """Begin an episode in each suite; a command, which may be slow, in one.

        Args:
            member: The agent.
            acts: Whether it acts once.
        Yields: What answered.
        """
        for entry in self._scenes.of(member.arm):
            resolved = self._scenes.resolver(entry, _SEED)
            with self._scenes.envs.lend(resolved, member.agent.view) as env:
                begun = time.perf_counter()
                requests = self._play(member, resolved, env, acts=acts)
                waited_ms = (time.perf_counter() - begun) * _MS
                tools = [tool.name for tool in env.offered]
            if not acts:
                yield f"{member.label}: the command began in {waited_ms:.0f} ms"
                return
            self._refuse_calls_as_text(entry, requests, tools)
            yield self._line(member, entry, requests, waited_ms)

    def _play(
        self, member: _Member, resolved: ResolvedEntry, env: PlayedEnv, *, acts: bool
    ) -> list[ModelRequest]:
        """Return what the agent asked of its model until its first act."""
        entry = resolved.entry
        plan, agent = self._scenes.plan, member.agent
        budget: list[int | None] = [0]

        def allowed(horizon: int) -> int | None:
            budget[0] = supervisor_budget(plan, entry, horizon)
            return budget[0]

        def start(opening: EpisodeFacts) -> Any:
            return episode_setup.episode_start(plan, resolved, 0, opening)

        observation, info = env.reset(
            options={
                "instance": resolved.instance,
                "interventions": allowed,
                "setting": resolved.setting,
                "start": start,
            }
        )
        if agent.screenshots:
            info = episode_setup.with_picture(env, info)
        isolated = resolved.suite.card.isolated
        seat, act_s = str(info.get("seat", "")), plan.budget.act_s
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as memory:
            try:
                connection = self._launcher.connect(
                    agent.origin, Path(memory), member.hosting, hides=isolated
                )
            except AgentFailure as failure:
                raise self._refusal(member, entry, [], failure) from failure
            try:
                brief = episode_setup.brief_of(
                    plan, resolved, env, seat=seat, interventions_left=budget[0]
                )
                terms = ResetRequest(
                    brief=brief,
                    tools=env.offered,
                    memory_dir=connection.memory_dir,
                    options=agent.options,
                )
                connection.reset(terms, act_s)
                if acts:
                    connection.act(observation, info, act_s)
                else:
                    connection.close(act_s)
            except AgentFailure as failure:
                connection.end()
                asked = _models(connection)
                raise self._refusal(member, entry, asked, failure) from failure
            connection.end()
            return _models(connection)

    def _refusal(
        self, member: _Member, entry: PlanEntry, requests: list[ModelRequest], failure: AgentFailure
    ) -> PreflightError:
        """Return the error of an agent that cannot begin, with the way out."""
        agent = member.agent
        last = next((r for r in reversed(requests) if r.judgement is not None), None)
        if last is None or last.judgement is None or self._gateway is None:
            return PreflightError(
                f"The agent {agent.spec!r} cannot begin an episode of {entry.suite}: "
                f"{_of_agent(agent, str(failure))} {_SKIP}."
            )
        if last.judgement.verdict == "completion":
            return PreflightError(
                f"The agent {member.label!r} failed after its model's reply in "
                f"{entry.suite}: {failure}. {_SKIP}."
            )
        host = addresses.host_and_port(self._gateway.provider.url)
        words = " ".join(last.reply.decode(errors="replace").split())[:_SHOWN]
        is_told = words and last.status not in _REDIRECTS
        said = f"HTTP {last.status}: {words}" if is_told else last.judgement.text
        fix = _fix(last.judgement, self._options) or f"{failure}"
        return PreflightError(
            f"The model {last.model!r} at {host} refused the first request of "
            f"{member.label} in {entry.suite}: {said}: {fix}. {_SKIP}."
        )

    def _refuse_calls_as_text(
        self, entry: PlanEntry, requests: list[ModelRequest], tools: list[str]
    ) -> None:
        """Raise where a model made no call that the server read, but wrote one."""
        replies = [_message(request.reply) for request in requests]
        if any(map(calls_in, replies)) or self._gateway is None:
            return
        for request, reply in zip(requests, replies, strict=True):
            said = said_in(reply)
            if is_call_as_text(said, tools):
                host = addresses.host_and_port(self._gateway.provider.url)
                raise PreflightError(
                    f"The model {request.model!r} at {host} called no tool of "
                    f"{entry.suite}: it writes its calls into its text, and {PARSER}. "
                    f"Its reply: {said[:300]!r}. {_SKIP}."
                )

    def _line(
        self, member: _Member, entry: PlanEntry, requests: list[ModelRequest], waited_ms: float
    ) -> str:
        """Return what the model answered."""
        if not requests or self._gateway is None:
            return f"{member.label}: began {entry.suite} and asked no model"
        last, host = requests[-1], addresses.host_and_port(self._gateway.provider.url)
        notes = []
        if not any(calls_in(_message(request.reply)) for request in requests):
            notes.append("its reply held no tool call: tool_choice=required makes one")
        refused = [r for r in requests if r.judgement and r.judgement.cause == "request"]
        if refused and refused[0].judgement is not None:
            words = refused[0].judgement.words
            notes.append(f"it took the request in another form only: {words}")
        if last.usage is None:
            notes.append("it counts no tokens: cost will be unknown")
        if any(r.is_truncated() for r in requests):
            notes.append("it counts fewer tokens than it was sent: raise its context length")
        served = last.judgement.model if last.judgement else ""
        if served and served != last.model:
            notes.append(f"it says that {served} answered")
        more = "".join(f"; {note}" for note in notes)
        return (
            f"{member.label}: model {last.model} at {host} answered in "
            f"{waited_ms:.0f} ms ({entry.suite}){more}"
        )


def _models(connection: AgentConnection) -> list[ModelRequest]:
    """Return the requests to models that an ended agent made."""
    records = [*connection.take_requests(), *connection.end_requests()]
    return [r for r in records if isinstance(r, ModelRequest) and r.body]


def _of_agent(agent: AgentHandle, words: str) -> str:
    """Return an agent's failure with the way out."""
    if "nonsense" in words:
        return (
            f"{words}. Its standard output is the protocol, one JSON line for each "
            "request (docs/wire-protocol.md): print anything else to standard error."
        )
    if agent.origin.kind == "command":
        return f"{words}. Is the command right? It runs in a sandbox: docs/isolation.md."
    return f"{words}."


def _message(reply: bytes) -> dict[str, Any]:
    """Return the message of a reply, empty where there is none."""
    try:
        message = decoded(reply)["choices"][0]["message"]
    except (LookupError, TypeError):
        return {}
    return message if isinstance(message, dict) else {}


def _fix(judgement: ReplyJudgement, options: GatewayOptions) -> str:
    """Return the way out of a provider's failure, "" where the agent says it."""
    fixes: dict[Cause, str] = {
        "key": f"check the key in ${options.key_env}; --model-key-env names another "
        "variable, --model-header another header",
        "credit": "the account has no credit left: pay, or name another provider",
        "model": "check the model's name and --model-url",
        "quota": "wait, or raise the account's quota",
        "overload": "is it overloaded? Try again later",
        "no reply": "is it running, is --model-url right?",
        "no completion": f"this is no chat completion: --model-url must lead to an API "
        f"that speaks {options.model_api}, often ending in /v1",
    }
    return fixes.get(judgement.cause, "")


# --- agents and providers behind an address -------------------------------------------


def _ask_address(member: _Member, act_s: float) -> str:
    """Return what an agent's address answered to one begin and one end."""
    agent = member.agent
    host = urlsplit(agent.origin.target).netloc
    from owa_bench.hosting.http_transport import HttpTransport

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
    return f"{member.label}: the agent at {host} answered in {waited_ms:.0f} ms"


def _ask_provider(gateway: "ModelGateway", options: GatewayOptions) -> str:
    """Return what a provider answered whose models no agent of ours asks.

    Not every server lists its models: any answer but a refused key is good.
    """
    import httpx

    host = addresses.host_and_port(gateway.provider.url)
    session = gateway.open()
    begun = time.perf_counter()
    with httpx.Client(
        base_url=f"http://127.0.0.1:{gateway.port}/v1",
        headers={"authorization": f"Bearer {session.token}"},
        timeout=gateway.provider.timeout_s + 1.0,
        trust_env=False,
    ) as client:
        try:
            reply = client.get("/models")
        finally:
            session.close()
    waited_ms = (time.perf_counter() - begun) * _MS
    if reply.status_code in (401, 403, 502, 504):
        words = " ".join(reply.text.split())[:_SHOWN]
        cause: Cause = "key" if reply.status_code in (401, 403) else "no reply"
        fix = _fix(ReplyJudgement("failure", cause), options)
        raise PreflightError(
            f"The models' provider at {host} answered HTTP {reply.status_code}: "
            f"{words}: {fix}. {_SKIP}."
        )
    return f"the models' provider at {host} answered in {waited_ms:.0f} ms"

"""Requests: what is to be played and how, its plan, and an estimate of cost."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from owa_bench import discovery
from owa_bench.canonical import sha256
from owa_bench.errors import (
    AgentFailure,
    AgentSpecError,
    FieldError,
    PlanError,
    UnknownNameError,
    UsageError,
)
from owa_bench.hosting.agent_process import AgentLauncher
from owa_bench.hosting.fork_server import ForkServer
from owa_bench.hosting.gateway.options import GatewayOptions
from owa_bench.hosting.isolation import Isolation, hosting_of, require_hosting, root_of
from owa_bench.hosting.spec import AgentHandle, load_agent
from owa_bench.hosting.transports import AgentTransport
from owa_bench.interfaces import Suite
from owa_bench.records import price_card, protocol
from owa_bench.records.events import EpisodeEnd
from owa_bench.records.plan import Budget, Plan, PlanEntry
from owa_bench.records.price_card import INPUT, OUTPUT, PriceCard
from owa_bench.records.toml import in_file
from owa_bench.records.trace import Leaf
from owa_bench.records.validation import is_sign_file
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.budget import MICRO, SUPERVISOR, USD
from owa_bench.runs.plan.campaign import Campaign, plan_campaign
from owa_bench.runs.plan.draws import Draw, check_admissible, file_digest, load_battery
from owa_bench.runs.plan.plan import plan_draws
from owa_bench.runs.plan.pool import plan_pool
from owa_bench.runs.plan.tokens import TokenUse, token_use, total
from owa_bench.runs.plan.trials import Trials, plan_trials
from owa_bench.runs.store import keys

_PROTOCOLS = "owa_bench.protocols"
BASELINE = "fixed"  # the drift-blind agent beside the lanes of maintenance
# Seconds that a worker takes to start; measured on a 2-core machine.
WORKER_START_S = 1.0
ExecutorName = Literal["local", "ray"]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be played, by which agents: a battery, draws, a campaign or trials.

    `protocol` counts where no battery names one; it and `price_card` are names or paths. `sandbox`
    holds the agents' processes; "auto" is namespaces where the machine allows them, else none.
    `worlds_of` is another run of the same key folder, not revealed, whose master and so whose
    worlds are used: its commitment, too. `model_fields` are fields that the model gateway passes on
    though none of its list. `dated`: who is placed can be another tomorrow though its spec does not
    say so, and its level needs several dates.
    """

    agents: tuple[str, ...]
    battery: str | None = None
    draws: tuple[Draw, ...] = ()
    campaign: Campaign | None = None
    trials: Trials | None = None
    name: str = "run"
    protocol: str = "default"
    price_card: str = "price_card"
    budget: Budget = Budget()
    calendar: str = "nested"
    transcripts: bool = True
    verifier_nonce: str | None = None
    challenger: str = ""
    dated: bool = False
    sandbox: Isolation = "auto"
    worlds_of: Path | None = None
    model_fields: tuple[str, ...] = ()


class Progress(NamedTuple):
    """An attempt that closed, and how far the run is: `done` of `total` entries.

    `usd` is what the run has cost (`runs/plan/budget.py`), without earlier calls where the plan has
    no ceiling for a whole run; `helped`: the supervisor helped in it.
    """

    entry: PlanEntry
    leaf: Leaf
    end: EpisodeEnd
    done: int
    total: int
    usd: float
    helped: bool


_NO_GATEWAY = GatewayOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a plan is played; none of it changes what a run's replay root says.

    `home` holds keys and masters; `folder` is where relative agents are found; `client` seats an
    agent that plays from outside, one episode at a time. `executor` "local" is this process, or
    `workers` processes; "ray" is the cluster at `ray_address`, or one started on this machine.
    `announce` is told what a new plan will take, before it is signed. `preflight` is told what
    answered before anything is signed or played; None: nothing is asked.
    The run stops when more than `failure_share` of an agent's attempts failed through the harness;
    None: the protocol's share, 1: it never does.
    """

    home: Path
    key: str = keys.DEFAULT
    folder: Path | None = None
    workers: int = 1
    executor: ExecutorName = "local"
    ray_address: str = ""
    concurrency: int = 1
    in_process: bool = False
    wire: bool = False
    gateway: GatewayOptions = _NO_GATEWAY
    progress: Callable[[Progress], None] | None = None
    announce: "Callable[[RunEstimate], None] | None" = None
    preflight: Callable[[str], None] | None = None
    failure_share: float | None = None
    client: Callable[[], AgentTransport] | None = None

    def __post_init__(self) -> None:
        """Refuse fewer than one of anything, and what no agent can reach."""
        self.gateway.check()
        for field in ("workers", "concurrency"):
            if getattr(self, field) < 1:
                raise PlanError(field, getattr(self, field), "must be at least 1")
        share = self.failure_share
        if share is not None and not 0 < share <= 1:
            raise FieldError("--failure-share", share, "must lie in (0, 1]")


class PlanDraft(NamedTuple):
    """A plan without commitment and key, and the two files it pins."""

    plan: Plan
    protocol: bytes
    price_card: bytes


_MODEL_FIELD = re.compile(r"[$\w.-]{1,80}", re.ASCII)


def _model_fields(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of fields in order, each once; FieldError for what is none."""
    for name in names:
        if not _MODEL_FIELD.fullmatch(name):
            rule = "must be the name of one field or of one type of tool, such as user"
            raise FieldError("--model-field", name, rule)
    return tuple(sorted(set(names)))


def draft_plan(
    request: Request, folder: Path | None = None, *, in_process: bool = False
) -> PlanDraft:
    """Return the plan of a request; all that can be wrong with it is found here.

    Args:
        request: What is to be played.
        folder: Where relative paths of agents start.
        in_process: Whether agents share the harness' process.
    Returns: The plan with its protocol and price card.
    Raises: UsageError: Or a subclass, naming what is wrong and the way out.
    """
    agents = tuple(
        _hosted(load_agent(text, folder=folder), request.sandbox, in_process=in_process)
        for text in request.agents
    )
    battery = load_battery(request.battery) if request.battery else None
    name = battery.protocol if battery else request.protocol
    protocol_file = _read("protocol", name)
    prices_file = _read("price card", request.price_card)
    with in_file(name):
        rules = protocol.load(protocol_file)
    with in_file(request.price_card):
        price_card.load(prices_file)
    levelled = battery is not None and battery.gives_level
    if battery and levelled:
        check_admissible(battery, rules)
    terms = Plan(
        name=request.name,
        battery=battery.name if battery is not None and levelled else None,
        suites=(),
        arms=(),
        entries=(),
        budget=request.budget,
        commitment=escrow.shared_commitment(request.worlds_of),
        shared_worlds=request.worlds_of is not None,
        model_fields=_model_fields(request.model_fields),
        protocol_digest=sha256(protocol_file),
        price_digest=sha256(prices_file),
        help_share=rules.frontier.interventions_share,
        calendar=request.calendar,
        verifier_nonce=request.verifier_nonce,
        challenger=request.challenger,
        transcripts=request.transcripts,
        underpowered=battery is not None and battery.underpowered,
        battery_digest=file_digest(request.battery) if levelled else "",
    )
    parts = (battery, request.campaign, request.trials, request.draws or None)
    if sum(part is not None for part in parts) != 1:
        raise UsageError("Give one of a battery, suites to draw from, a campaign, or trials.")
    campaign = request.campaign
    if battery is not None and battery.campaign is not None:
        fields = msgspec.structs.asdict(battery.campaign)
        campaign = Campaign(
            checkpoint=tuple(draw for draw in battery.suite if not draw.once),
            once=tuple(draw for draw in battery.suite if draw.once),
            **fields,
        )
    if battery is not None and battery.placement is not None:

        def hosted(name: str) -> AgentHandle:
            return _hosted(load_agent(name), request.sandbox, in_process=in_process)

        if request.dated and not request.challenger:
            raise UsageError(
                "A placement by dates needs a verifier who bears them out: `--verifier URL`, or "
                "their key (`--challenger`)."
            )
        dated = request.dated or (bool(request.challenger) and any(a.is_served for a in agents))
        plan = plan_pool(battery, battery.placement, agents, terms, rules, hosted, dated=dated)
    elif request.trials is not None:
        plan = plan_trials(request.trials, agents, terms)
    elif campaign is not None:
        baseline = _hosted(load_agent(BASELINE), request.sandbox, in_process=in_process)
        plan = plan_campaign(campaign, agents, terms, baseline)
    else:
        plan = plan_draws(battery.suite if battery else request.draws, agents, terms)
    return PlanDraft(_with_roots(plan, agents), protocol_file, prices_file)


def _with_roots(plan: Plan, agents: Iterable[AgentHandle]) -> Plan:
    """Return a plan that says what root its arms' sandboxes have, where that counts.

    That is where what an episode, a sitting or a seat knows must not reach another but through what
    is recorded: sittings and seats, memory lanes, days, and controls.
    """
    cards = [discovery.get("suites", suite.name).card for suite in plan.suites]
    apart = any(card.isolated for card in cards) or any(
        entry.lane is not None or entry.day is not None or entry.control for entry in plan.entries
    )
    if not apart:
        return plan
    own = {agent.spec for agent in agents if agent.is_own_code} | {BASELINE}
    arms = tuple(
        msgspec.structs.replace(arm, root=root_of(arm.hosting, own_code=arm.agent in own))
        for arm in plan.arms
    )
    return msgspec.structs.replace(plan, arms=arms)


def _hosted(agent: AgentHandle, sandbox: Isolation, *, in_process: bool) -> AgentHandle:
    hostings = {
        hosting_of(member.origin, sandbox, in_process=in_process) for member in agent.members
    }
    if len(hostings) > 1:
        raise UsageError(
            "The agents of `--seat` must all run in one kind of place, got "
            f"{', '.join(sorted(hostings))}: an arm has one assurance."
        )
    return replace(agent, hosting=hostings.pop())


def check_agents(request: Request, folder: Path | None = None) -> None:
    """Refuse an agent whose code cannot be imported, before anything is written.

    Args:
        request: What is to be played.
        folder: Where relative paths of agents start.
    Raises: AgentSpecError: Naming the agent and why.
    """
    with ForkServer() as fork_server:
        launcher = AgentLauncher(fork_server)
        for text in request.agents:
            for member in load_agent(text, folder=folder).members:
                _check_agent(launcher, member, request.sandbox)


def _check_agent(launcher: AgentLauncher, agent: AgentHandle, sandbox: Isolation) -> None:
    """Refuse an agent whose code cannot be imported."""
    origin = agent.origin
    if origin.kind in ("object", "file", "model"):
        hosting = hosting_of(origin, sandbox, in_process=False)
        require_hosting(origin, hosting)
        try:
            launcher.connect(origin, hosting=hosting).end()
        except AgentFailure as failure:
            raise AgentSpecError(
                f"The agent {agent.spec!r} cannot be played: {failure}."
            ) from failure


def _read(kind: str, name: str) -> bytes:
    """Return a protocol or price card by name or by path."""
    if name.endswith(".toml"):
        try:
            return Path(name).read_bytes()
        except OSError as error:
            raise UsageError(f"The {kind} must be a file, got {name}: {error.strerror}.") from error
    folder = resources.files(_PROTOCOLS)
    names = [
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
        and not is_sign_file(entry.name)
        and entry.name.startswith("price_card") == (kind == "price card")
    ]
    if name not in names:
        raise UnknownNameError(f"{kind} (or FILE.toml)", name, names)
    return (folder / f"{name}.toml").read_bytes()


# --- estimates ------------------------------------------------------------------------


class RunEstimate(NamedTuple):
    """Episodes, seconds and cost of a plan.

    `tasks` are different worlds, of so many `families` and `tiers`; each is played at several of
    the `magnitudes` of drift and `budgets` of help, which is why there are more episodes.
    `scripted_s` is the time of agents that answer at once, by what the suites' cards say that an
    episode takes; `longest_s` that of agents that use every deadline of every step.
    `cost_micro_usd` is the most that steps and metered ceilings can cost the agents, None if a
    meter has no price; `unknown` are the meters an agent may declare and no ceiling bounds.
    `tokens` is what a chat model would use, an estimate. Apart from all that stand the minutes of
    the supervisor, which is simulated and paid by nobody, and their price on the card. The run
    directory takes about `record_bytes`, and `transcript_bytes` more with transcripts, by the cards
    too.
    """

    episodes: int
    by_arm: Mapping[str, int]
    tasks: int
    families: int
    tiers: int
    magnitudes: int
    budgets: int
    scripted_s: float
    longest_s: float
    cost_micro_usd: int | None
    unknown: tuple[str, ...]
    tokens: tuple[TokenUse, ...]
    supervisor_min: float
    supervisor_micro_usd: int | None
    record_bytes: int
    transcript_bytes: int


def estimate(draft: PlanDraft, options: RunOptions) -> RunEstimate:
    """Return what playing a plan would take; nothing is played.

    Args:
        draft: The plan with its protocol and price card.
        options: How it would be played.
    """
    plan, ceilings = draft.plan, draft.plan.budget
    hint_min = protocol.load(draft.protocol).quality.minutes_per_hint
    prices = price_card.load(draft.price_card)
    steps = sum(most_steps for _, most_steps in _step_limits(plan))
    most = _most_used(plan, hint_min)
    bounded = dict((*ceilings.episode_meters, *ceilings.run_meters))
    cards = [discovery.get("suites", entry.suite).card for entry in plan.entries]
    scripts = {arm.name for arm in plan.arms if arm.agent == BASELINE}
    return RunEstimate(
        episodes=len(plan.entries),
        by_arm=Counter(entry.arm for entry in plan.entries),
        tasks=len({entry.pair for entry in plan.entries}),
        families=len({(entry.suite, entry.family) for entry in plan.entries}),
        tiers=len({entry.tier for entry in plan.entries}),
        magnitudes=len({entry.delta for entry in plan.entries} - {None}),
        budgets=len({entry.interventions for entry in plan.entries}),
        scripted_s=sum(card.episode_s for card in cards) / options.workers + WORKER_START_S,
        longest_s=steps * ceilings.act_s / (options.workers * options.concurrency),
        cost_micro_usd=_most_cost(prices, most, bounded.get(USD)),
        unknown=()
        if USD in bounded
        else tuple(meter for meter in (INPUT, OUTPUT) if meter not in bounded),
        tokens=token_use((entry for entry in plan.entries if entry.arm not in scripts), prices),
        supervisor_min=most.get(SUPERVISOR, 0.0),
        supervisor_micro_usd=prices.cost(SUPERVISOR, most.get(SUPERVISOR, 0.0)),
        record_bytes=sum(card.episode_bytes[0] for card in cards),
        transcript_bytes=sum(card.episode_bytes[1] for card in cards),
    )


def _step_limits(plan: Plan) -> Iterator[tuple[PlanEntry, int]]:
    """Yield every entry with the most steps it can take."""
    for entry in plan.entries:
        suite: Suite = discovery.get("suites", entry.suite)
        yield entry, plan.budget.steps or suite.card.step_limit


def _most_used(plan: Plan, minutes_per_hint: float) -> dict[str, float]:
    """Return the most a plan can use of each meter that steps or ceilings bound.

    A step makes one call to an API, or asks for one hint.
    """
    most: dict[str, float] = defaultdict(float)
    ceilings = dict(plan.budget.episode_meters)
    for entry, steps in _step_limits(plan):
        allowed = entry.interventions
        if allowed == "protocol":
            card = discovery.get("suites", entry.suite).card
            allowed = math.ceil(plan.help_share * card.horizon)
        hints = steps if allowed is None else min(steps, allowed)
        used = {"api_calls": steps, "supervisor_min": hints * minutes_per_hint}
        for meter, amount in used.items():
            most[meter] += amount if meter not in ceilings else 0
    for meter, ceiling in ceilings.items():
        most[meter] = ceiling * len(plan.entries)
    for meter, ceiling in plan.budget.run_meters:
        if meter != USD:
            most[meter] = min(most.get(meter, ceiling), ceiling)
    return dict(most)


def _most_cost(prices: PriceCard, most: Mapping[str, float], usd: float | None) -> int | None:
    """Return the most that amounts can cost the agents in micro-USD, None without a price.

    `usd` is the run's ceiling on money.
    """
    used = {meter: amount for meter, amount in most.items() if meter != SUPERVISOR}
    costs = [prices.cost(meter, amount) for meter, amount in used.items()]
    ceiling = None if usd is None else round(usd * MICRO)
    agents = total(costs)
    if agents is None or ceiling is None:
        return ceiling if agents is None else agents
    return min(agents, ceiling)

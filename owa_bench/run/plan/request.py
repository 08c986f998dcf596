"""What a run is asked to play, and the plan that comes of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import msgspec

from owa_bench.canonical import sha256
from owa_bench.errors import (
    AgentFailure,
    AgentSpecError,
    PlanError,
    UnknownNameError,
    UsageError,
)
from owa_bench.records import price_card, protocol
from owa_bench.records.events import EpisodeEnd
from owa_bench.records.plan import Budget, Plan, PlanEntry
from owa_bench.records.protocol import Protocol
from owa_bench.records.toml import in_file
from owa_bench.records.trace import Leaf
from owa_bench.run.agents import agent_spec
from owa_bench.run.agents.agent_process import Transport
from owa_bench.run.agents.agent_spec import AgentHandle
from owa_bench.run.agents.fork_server import ForkServer
from owa_bench.run.plan import batteries, campaign
from owa_bench.run.plan import trials as trial_plans
from owa_bench.run.plan.batteries import Battery
from owa_bench.run.plan.campaign import Campaign
from owa_bench.run.plan.draws import Draw
from owa_bench.run.plan.plan import PlanTerms, make_plan
from owa_bench.run.plan.trials import Trials
from owa_bench.run.store import keys

_PROTOCOLS = "owa_bench.protocols"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be played, by which agents: a battery, draws, a campaign or trials.

    `protocol` counts where no battery names one; it and `price_card` are names or
    paths.
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


class Progress(NamedTuple):
    """An attempt that closed, and how far the run is: `done` of `total` entries."""

    entry: PlanEntry
    leaf: Leaf
    end: EpisodeEnd
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a plan is played; none of it changes what a run's replay root says.

    `home` holds keys and masters; `folder` is where relative agents are found;
    `client` seats an agent that plays from outside, one episode at a time.
    """

    home: Path
    key: str = keys.DEFAULT
    folder: Path | None = None
    workers: int = 1
    concurrency: int = 1
    in_process: bool = False
    wire: bool = False
    progress: Callable[[Progress], None] | None = None
    client: Callable[[], Transport] | None = None

    def __post_init__(self) -> None:
        """Refuse fewer than one of anything."""
        for field in ("workers", "concurrency"):
            if getattr(self, field) < 1:
                raise PlanError(field, getattr(self, field), "must be at least 1")


class PlanDraft(NamedTuple):
    """A plan, its seeds and key still open, and the two files it pins."""

    plan: Plan
    protocol: bytes
    price_card: bytes


def draft_plan(request: Request, folder: Path | None = None) -> PlanDraft:
    """Return the plan of a request; all that can be wrong with it is found here.

    Errors: UsageError and its kin, naming what and the way out.
    """
    agents = tuple(agent_spec.load(text, folder=folder) for text in request.agents)
    battery = batteries.load(request.battery) if request.battery else None
    named = battery.protocol if battery else request.protocol
    pages = _read("protocol", named)
    prices = _read("price card", request.price_card)
    with in_file(named):
        rules = protocol.load(pages)
    with in_file(request.price_card):
        price_card.load(prices)
    terms = PlanTerms(
        name=request.name,
        battery=_level_battery(battery, rules),
        protocol_digest=sha256(pages),
        price_digest=sha256(prices),
        calendar=request.calendar,
        budget=request.budget,
        verifier_nonce=request.verifier_nonce,
        transcripts=request.transcripts,
    )
    return PlanDraft(_drawn(request, battery, agents, terms), pages, prices)


def check_agents(request: Request, folder: Path | None = None) -> None:
    """Refuse an agent whose code cannot be imported, before anything is written.

    Errors: AgentSpecError.
    """
    with ForkServer() as fork_server:
        for text in request.agents:
            agent = agent_spec.load(text, folder=folder)
            if agent.origin.kind in ("object", "file", "model"):
                try:
                    fork_server.start(agent.origin).kill()
                except AgentFailure as failure:
                    raise AgentSpecError(
                        f"The agent {text!r} cannot be played: {failure}."
                    ) from failure


def _drawn(
    request: Request,
    battery: Battery | None,
    agents: Sequence[AgentHandle],
    terms: PlanTerms,
) -> Plan:
    given = (battery, request.campaign, request.trials, request.draws or None)
    if sum(part is not None for part in given) != 1:
        raise UsageError(
            "Give one of a battery, suites to draw from, a campaign, or trials."
        )
    if request.trials is not None:
        return trial_plans.make_plan(request.trials, agents, terms)
    if request.campaign is not None:
        return campaign.make_plan(request.campaign, agents, terms)
    return make_plan(battery.suite if battery else request.draws, agents, terms)


def _level_battery(battery: Battery | None, rules: Protocol) -> str | None:
    """Return the name of a battery that may give a level, checked; else None."""
    if battery is None or not battery.gives_level:
        return None
    batteries.check_admissible(battery, rules)
    return battery.name


def _read(kind: str, name: str) -> bytes:
    """Return a protocol or price card by name or by path."""
    if name.endswith(".toml"):
        try:
            return Path(name).read_bytes()
        except OSError as error:
            raise UsageError(
                f"The {kind} must be a file, got {name}: {error.strerror}."
            ) from error
    folder = resources.files(_PROTOCOLS)
    known = [
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
        and entry.name.startswith("price_card") == (kind == "price card")
    ]
    if name not in known:
        raise UnknownNameError(f"{kind} (or FILE.toml)", name, known)
    return (folder / f"{name}.toml").read_bytes()

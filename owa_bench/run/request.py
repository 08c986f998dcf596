"""What a run is asked to play, and the plan that comes of it."""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import msgspec

from owa_bench.canonical import sha256
from owa_bench.errors import AgentFailure, AgentSpecError, UnknownNameError, UsageError
from owa_bench.records import price_card, protocol
from owa_bench.records.plan import Budget, Plan
from owa_bench.records.protocol import Protocol
from owa_bench.records.toml import in_file
from owa_bench.run import agent_spec, batteries, campaign
from owa_bench.run import trials as trial_plans
from owa_bench.run.agent_spec import AgentHandle
from owa_bench.run.batteries import Battery
from owa_bench.run.campaign import Campaign
from owa_bench.run.draws import Draw
from owa_bench.run.forking import Nursery
from owa_bench.run.plan import Terms, make_plan
from owa_bench.run.trials import Trials

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


class Planned(NamedTuple):
    """A plan, its seeds and key still open, and the two files it pins."""

    plan: Plan
    protocol: bytes
    price_card: bytes


def planned(request: Request, folder: Path | None = None) -> Planned:
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
    terms = Terms(
        name=request.name,
        battery=_level_battery(battery, rules),
        protocol_digest=sha256(pages),
        price_digest=sha256(prices),
        calendar=request.calendar,
        budget=request.budget,
        verifier_nonce=request.verifier_nonce,
        transcripts=request.transcripts,
    )
    return Planned(_drawn(request, battery, agents, terms), pages, prices)


def check_agents(request: Request, folder: Path | None = None) -> None:
    """Refuse an agent whose code cannot be imported, before anything is written.

    Errors: AgentSpecError.
    """
    with Nursery() as nursery:
        for text in request.agents:
            agent = agent_spec.load(text, folder=folder)
            if agent.origin.kind in ("object", "file", "model"):
                try:
                    nursery.start(agent.origin).kill()
                except AgentFailure as failure:
                    raise AgentSpecError(
                        f"The agent {text!r} cannot be played: {failure}."
                    ) from failure


def _drawn(
    request: Request,
    battery: Battery | None,
    agents: Sequence[AgentHandle],
    terms: Terms,
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

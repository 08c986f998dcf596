"""The plan of a run: every episode and the terms, fixed before episode 0."""

import itertools
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from owa_bench import calendars, discovery
from owa_bench.calendars import Calendar
from owa_bench.canonical import canonical_json, document_digest, seal
from owa_bench.errors import FieldError, PlanError, RunDirectoryError, UsageError
from owa_bench.interfaces import HasReadyCheck, Suite
from owa_bench.records.layout import PLAN_TYPE, RunLayout
from owa_bench.records.plan import (
    MOST,
    SOURCE_RULE,
    Arm,
    BootstrapSpec,
    Budget,
    Plan,
    PlanEntry,
    SuiteEntry,
    fault,
)
from owa_bench.run.agents.agent_spec import AgentHandle
from owa_bench.run.plan import budget, draws
from owa_bench.run.plan.draws import Draw
from owa_bench.run.store.files import write_whole
from owa_bench.run.store.provenance import environment, source_digest

_NONCE_MIN = 8
_Made = TypeVar("_Made")


class PlanTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan says beside its episodes; the commitment may come later."""

    name: str
    battery: str | None = None
    commitment: str = ""
    public_key: str = ""
    protocol_digest: str
    price_digest: str
    calendar: str = "nested"
    budget: Budget = Budget()
    bootstrap: BootstrapSpec = BootstrapSpec()
    verifier_nonce: str | None = None
    transcripts: bool = True
    created: str = ""


def make_plan(
    drawn: Sequence[Draw], agents: Sequence[AgentHandle], terms: PlanTerms
) -> Plan:
    """Return the plan that plays every agent on the same pairs.

    Errors: PlanError naming field, value and rule.
    """
    arms = arms_of(agents)
    suites = [draws.check(draw, PlanError) for draw in drawn]
    drawn_cells = within(
        cell
        for draw, suite in zip(drawn, suites, strict=True)
        for cell in draws.cells(draw, suite.card)
    )
    placed = within((cell, arm) for cell in dict.fromkeys(drawn_cells) for arm in arms)
    entries = tuple(
        PlanEntry(index=index, arm=arm.name, **cell._asdict())
        for index, (cell, arm) in enumerate(placed)
    )
    refuse_misfits(agents, entries)
    return assemble(drawn, arms, entries, terms)


def within(made: Iterable[_Made]) -> list[_Made]:
    """Return all that was made for a plan; UsageError if a plan cannot hold it."""
    found = list(itertools.islice(made, MOST + 1))
    if len(found) > MOST:
        raise UsageError(
            f"A plan must hold at most {MOST} episodes, and this one would hold more: "
            "draw fewer, or make several runs of it."
        )
    return found


def assemble(
    drawn: Sequence[Draw],
    arms: tuple[Arm, ...],
    entries: tuple[PlanEntry, ...],
    terms: PlanTerms,
) -> Plan:
    """Return the plan of these entries; checked."""
    plan = Plan(
        **{field: getattr(terms, field) for field in terms.__struct_fields__},
        suites=_suite_entries(drawn),
        arms=arms,
        entries=entries,
        environment=environment(),
    )
    check_plan(plan)
    return plan


def arms_of(agents: Sequence[AgentHandle], *, frozen: bool = False) -> tuple[Arm, ...]:
    """Return an arm per agent; a name that comes again gets a number."""
    if not agents:
        raise PlanError("arms", (), "must hold at least one agent")
    arms: list[Arm] = []
    for agent in agents:
        same = sum(1 for other in agents[: len(arms)] if other.name == agent.name)
        name = agent.name if not same else f"{agent.name}#{same + 1}"
        arms.append(
            Arm(
                name=f"{name} (frozen)" if frozen else name,
                agent=agent.spec,
                fingerprint=agent.fingerprint,
                frozen=frozen,
            )
        )
    return tuple(arms)


def check_plan(plan: Plan) -> None:
    """Refuse a plan whose entries contradict it.

    Errors: PlanError naming field, value and rule.
    """
    if not plan.entries:
        raise PlanError("entries", (), "must hold at least one episode")
    _check_terms(plan)
    arms = {arm.name for arm in plan.arms}
    if len(arms) < len(plan.arms):
        raise PlanError("arms", sorted(arms), "must have different names")
    suites = {suite.name: suite for suite in plan.suites}
    days: dict[str, int] = {}
    for place, entry in enumerate(plan.entries):
        _check_entry(entry, place, arms, suites)
        if entry.lane is not None:
            if (entry.day or 0) < days.get(entry.lane, 0):
                raise PlanError("day", entry.day, f"must not fall in {entry.lane}")
            days[entry.lane] = entry.day or 0


def _check_terms(plan: Plan) -> None:
    """Refuse terms under which no episode can be played."""
    budget.check(plan.budget)
    for entry in plan.suites:
        suite: Suite = discovery.get("suites", entry.name)
        calendar = _calendar(plan, suite)
        deltas = (e.delta or 0.0 for e in plan.entries if e.suite == entry.name)
        if (most := max(deltas, default=0.0)) > calendar.reach:
            raise PlanError(
                "delta",
                most,
                f"must be at most {calendar.reach:g}, as far as {plan.calendar} goes",
            )
    nonce = plan.verifier_nonce
    if nonce is not None and len(nonce) < _NONCE_MIN:
        raise PlanError(
            "verifier_nonce", nonce, f"must have at least {_NONCE_MIN} characters"
        )


def _calendar(plan: Plan, suite: Suite) -> Calendar:
    """Return the plan's calendar for a suite; PlanError names it and its part."""
    try:
        return calendars.parse(plan.calendar, suite.card.domain)
    except FieldError as wrong:
        part = "" if wrong.field == "calendar" else f" {plan.calendar}: {wrong.field}"
        raise PlanError(f"calendar{part}", wrong.value, wrong.rule) from wrong


def _check_entry(
    entry: PlanEntry, place: int, arms: set[str], suites: dict[str, SuiteEntry]
) -> None:
    if entry.index != place:
        raise PlanError("index", entry.index, f"must be its place {place}")
    if entry.arm not in arms:
        raise PlanError("arm", entry.arm, f"must be one of {sorted(arms)}")
    suite = suites.get(entry.suite)
    if suite is None:
        raise PlanError("suite", entry.suite, f"must be one of {sorted(suites)}")
    if entry.family not in suite.families:
        raise PlanError("family", entry.family, f"must be one of {suite.families}")
    if entry.delta is None and entry.day is None:
        raise PlanError("delta", None, "or `day` must be given")
    both = entry.delta is not None and entry.day is not None
    if both and entry.phase != "checkpoint":
        raise PlanError(
            "delta", entry.delta, "must not stand beside `day` outside a checkpoint"
        )
    if entry.pair.startswith("practice/") != (entry.phase == "practice"):
        raise PlanError(
            "pair",
            entry.pair,
            f"must start with practice/ in that phase only (phase {entry.phase})",
        )


def refuse_misfits(agents: Sequence[AgentHandle], entries: Iterable[PlanEntry]) -> None:
    """Refuse an agent that cannot play one of the suites.

    Errors: PlanError.
    """
    for name in sorted({entry.suite for entry in entries}):
        suite: Suite = discovery.get("suites", name)
        for agent in agents:
            if agent.suites and name not in agent.suites:
                raise PlanError(
                    "agent",
                    agent.spec,
                    f"must play `{name}`, and it plays {', '.join(agent.suites)}",
                )
            if agent.origin.kind == "client" and suite.card.native:
                raise PlanError(
                    "agent",
                    agent.spec,
                    f"must play `{name}`, which has no tools to call",
                )
            policy = agent.origin.kind == "policy"
            if policy and agent.origin.target not in suite.policies:
                raise PlanError(
                    "agent", agent.spec, f"must be a control policy of `{name}`"
                )


def refuse_unready(plan: Plan) -> None:
    """Refuse a machine that lacks what a suite of the plan needs.

    A suite that rests on more than Python's packages says so in `ready()`.
    Errors: MissingPartError with the line that installs what is lacking.
    """
    for entry in plan.suites:
        suite = discovery.get("suites", entry.name)
        if isinstance(suite, HasReadyCheck):
            suite.ready()


def write_plan(
    layout: RunLayout,
    plan: Plan,
    key: Ed25519PrivateKey,
    *,
    protocol: bytes,
    price_card: bytes,
) -> str:
    """Write plan, signed plan, protocol and price card; the plan digest.

    `plan.json` comes last: a directory that holds it holds the rest.
    """
    payload = canonical_json(plan)
    layout.root.mkdir(parents=True, exist_ok=True)
    write_whole(layout.protocol, protocol)
    write_whole(layout.price_card, price_card)
    write_whole(layout.plan_envelope, seal(PLAN_TYPE, payload, key))
    write_whole(layout.plan, payload)
    return document_digest(plan)


def read_plan(layout: RunLayout) -> Plan:
    """Return the plan of a run directory.

    Errors: RunDirectoryError if it has none that reads back.
    """
    if not layout.plan.is_file():
        raise RunDirectoryError(
            f"{layout.root} is no run directory: it holds no plan.json. "
            f"`owa-bench run --out {layout.root}` makes one."
        )
    try:
        plan = msgspec.json.decode(layout.plan.read_bytes(), type=Plan)
        wrong = fault(plan)
    except (OSError, ValueError, RecursionError) as error:
        wrong = str(error)
    if wrong:
        raise RunDirectoryError(
            f"{layout.plan} must be a plan (owa-plan-1), got: {wrong}."
        )
    return plan


def differences(mine: Plan, written: Plan) -> tuple[str, ...]:
    """Return the fields in which two plans differ, what is drawn at making left out."""
    drawn = {"commitment", "created", "public_key"}
    return tuple(
        field
        for field in mine.__struct_fields__
        if field not in drawn and getattr(mine, field) != getattr(written, field)
    )


def _suite_entries(drawn: Sequence[Draw]) -> tuple[SuiteEntry, ...]:
    """Return one entry per suite, the draws of the same suite taken together."""
    grouped: dict[str, list[Draw]] = {}
    for draw in drawn:
        grouped.setdefault(draw.name, []).append(draw)
    return tuple(_suite_entry(group) for group in grouped.values())


def _suite_entry(group: Sequence[Draw]) -> SuiteEntry:
    suite: Suite = discovery.get("suites", group[0].name)
    card = suite.card
    weights = {draw.weight for draw in group}
    if len(weights) > 1:
        raise PlanError(
            "weight",
            tuple(sorted(weights)),
            f"must be the same in every draw of `{card.name}`",
        )
    names = {family for draw in group for family in draws.families(draw, card)}
    numbers = {tier for draw in group for tier in draws.tiers(draw, card)}
    return SuiteEntry(
        name=card.name,
        version=card.version,
        source_digest=source_digest(suite),
        source_rule=SOURCE_RULE,
        families=tuple(family for family in card.families if family in names),
        tiers=tuple(sorted(numbers)),
        weight=group[0].weight,
        native=card.native,
        groups=tuple(calendars.groups(card.domain).items()),
    )

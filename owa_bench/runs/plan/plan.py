"""The plan of a run: every episode and the terms, fixed before episode 0."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Literal, TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from owa_bench import discovery
from owa_bench.canonical import canonical_json, seal, sha256
from owa_bench.drift import calendar as calendars
from owa_bench.drift import order as orders
from owa_bench.drift.calendar import Calendar
from owa_bench.errors import FieldError, PlanError, RunDirectoryError, UsageError
from owa_bench.hosting.spec import AgentHandle
from owa_bench.interfaces import Suite
from owa_bench.records.bounds import refuse_hostile_files
from owa_bench.records.layout import PLAN_TYPE, RunLayout
from owa_bench.records.plan import KEY, MOST, SOURCE_RULE, Arm, Plan, PlanEntry, SuiteEntry, fault
from owa_bench.runs.plan import budget, draws
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.store.directory import environment, source_digest
from owa_bench.runs.store.files import write_whole

_NONCE_MIN = 8
# Fields that are set when a plan is written, so that two plans may differ in them.
_SET_WHEN_WRITTEN = {"commitment", "created", "public_key"}
_Item = TypeVar("_Item")


# --- making ---------------------------------------------------------------------------


def plan_draws(drawn: Sequence[Draw], agents: Sequence[AgentHandle], terms: Plan) -> Plan:
    """Return the plan that plays every agent on the same pairs.

    Args:
        drawn: The draws; episodes that are equal in several are played once.
        agents: Who plays them.
        terms: The plan without suites, arms and entries.
    Returns: The plan, checked.
    Raises: PlanError: Naming field, value and rule.
    """
    arms = arms_of(agents)
    suites = [draws.check(draw, PlanError) for draw in drawn]
    entries = limited(
        entry
        for draw, suite in zip(drawn, suites, strict=True)
        for entry in draws.entries(draw, suite.card)
    )
    marked = draws.mark_controls(dict.fromkeys(entries))
    placed = (
        replace(entry, arm=arm.name, lane=draws.body_lane(entry, arm.name))
        for entry in marked
        for arm in arms
    )
    return assemble_plan(drawn, agents, arms, placed, terms)


def assemble_plan(
    drawn: Sequence[Draw],
    agents: Sequence[AgentHandle],
    arms: tuple[Arm, ...],
    entries: Iterable[PlanEntry],
    terms: Plan,
) -> Plan:
    """Return the plan of these entries, checked.

    Args:
        drawn: The draws the entries come from.
        agents: Who plays them.
        arms: The arms of the agents.
        entries: The entries in order; each gets its place as index.
        terms: The plan without suites, arms and entries.
    Raises: PlanError: Naming field, value and rule.
    """
    numbered = tuple(replace(entry, index=index) for index, entry in enumerate(limited(entries)))
    refuse_misfits(agents, numbered)
    plan = replace(
        terms, suites=_suite_entries(drawn), arms=arms, entries=numbered, environment=environment()
    )
    check_plan(plan)
    return plan


def limited(items: Iterable[_Item]) -> list[_Item]:
    """Return the items of a plan; UsageError if they are more than a plan can hold."""
    held = list(itertools.islice(items, MOST + 1))
    if len(held) > MOST:
        raise UsageError(
            f"A plan must hold at most {MOST} episodes, and this one would hold more: "
            "draw fewer, or make several runs of it."
        )
    return held


def arms_of(
    agents: Sequence[AgentHandle],
    control: Literal["", "frozen", "placebo", "baseline", "companion"] = "",
) -> tuple[Arm, ...]:
    """Return an arm per agent; a name that comes again gets a number.

    Args:
        agents: The agents.
        control: As which control they play, "" for none.
    Returns: The arms, in the order of the agents.
    """
    if not agents:
        raise PlanError("arms", (), "must hold at least one agent")
    arms: list[Arm] = []
    for place, agent in enumerate(agents):
        same = sum(1 for other in agents[:place] if other.name == agent.name)
        name = agent.name if not same else f"{agent.name}#{same + 1}"
        arms.append(
            Arm(
                name=f"{name} ({control})" if control else name,
                agent=agent.spec,
                fingerprint=agent.fingerprint,
                frozen=control == "frozen",
                placebo=control == "placebo",
                baseline=control == "baseline",
                companion=control == "companion",
                hosting=agent.hosting,
            )
        )
    return tuple(arms)


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
            "weight", tuple(sorted(weights)), f"must be the same in every draw of `{card.name}`"
        )
    names = {family for draw in group for family in draws.families(draw, card)}
    numbers = {tier for draw in group for tier in draws.tiers(draw, card)}
    return SuiteEntry(
        name=card.name,
        version=card.version,
        source_digest=source_digest(suite),
        source_rule=SOURCE_RULE,
        families=tuple(family for family in (*card.families, *card.held_out) if family in names),
        honeypots=tuple(family for family in card.honeypots if family in names),
        tiers=tuple(sorted(numbers)),
        weight=group[0].weight,
        native=card.native,
        embodied=True if card.embodied else msgspec.UNSET,
        groups=tuple(orders.groups(card.domain).items()),
    )


# --- checks ---------------------------------------------------------------------------


def check_plan(plan: Plan) -> None:
    """Refuse a plan whose entries contradict it.

    Raises: PlanError: Naming field, value and rule.
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
        calendar = _calendar(plan, discovery.get("suites", entry.name))
        deltas = (e.delta or 0.0 for e in plan.entries if e.suite == entry.name)
        if (most := max(deltas, default=0.0)) > calendar.reach:
            raise PlanError(
                "delta", most, f"must be at most {calendar.reach:g}, as far as {plan.calendar} goes"
            )
    nonce, key = plan.verifier_nonce, plan.challenger
    if key and (nonce is not None or not KEY.fullmatch(key)):
        rule = "must be the public key of a verifier, 64 hex digits, and no nonce beside"
        raise PlanError("challenger", key, rule)
    if nonce is not None and len(nonce) < _NONCE_MIN:
        rule = f"must have at least {_NONCE_MIN} characters"
        raise PlanError("verifier_nonce", nonce, rule)


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
    known = (*suite.families, *suite.honeypots)
    if entry.family not in known and entry.phase != "practice":
        raise PlanError("family", entry.family, f"must be one of {known}")
    if entry.delta is None and entry.day is None:
        raise PlanError("delta", None, "or `day` must be given")
    both = entry.delta is not None and entry.day is not None
    if both and entry.keeps_memory:
        rule = "must not stand beside `day` outside a checkpoint or an attempt set"
        raise PlanError("delta", entry.delta, rule)
    for morning in entry.mornings:
        if morning > (entry.day or 0):
            raise PlanError("window", entry.window, f"must be over on day {entry.day}")
    if entry.pair.startswith("practice/") != (entry.phase == "practice"):
        raise PlanError(
            "pair",
            entry.pair,
            f"must start with practice/ in that phase only (phase {entry.phase})",
        )


def refuse_misfits(agents: Sequence[AgentHandle], entries: Iterable[PlanEntry]) -> None:
    """Refuse an agent that cannot play one of the suites.

    Args:
        agents: The agents.
        entries: What they are to play.
    Raises: PlanError: Naming the agent and the suite.
    """
    for name in sorted({entry.suite for entry in entries}):
        suite: Suite = discovery.get("suites", name)
        for agent in agents:
            rule = misfit(agent, suite)
            if rule:
                raise PlanError("agent", agent.spec, rule)


def misfit(agent: AgentHandle, suite: Suite) -> str:
    """Return the rule that an agent breaks by playing a suite, "" if none.

    Args:
        agent: The agent.
        suite: The suite.
    """
    name, origin = suite.card.name, agent.origin
    if agent.suites and name not in agent.suites:
        return f"must play `{name}`, and it plays {', '.join(agent.suites)}"
    roles = suite.card.roles
    for role in agent.seats:
        if role != "*" and role not in roles:
            return f"must seat roles of `{name}` ({', '.join(roles) or 'none'}): {role}"
    adds = agent.native is True or name in (agent.native or ())
    speaks_tools = origin.outside or (origin.kind == "registry" and not agent.suites and not adds)
    if speaks_tools and suite.card.native:
        return f"must play `{name}`, which has no tools to call"
    if origin.kind == "policy" and origin.target not in suite.policies:
        known = ", ".join(suite.policies) or "it has none"
        return f"must be a control policy of `{name}` ({known})"
    return ""


def refuse_unready(plan: Plan) -> None:
    """Refuse a machine that lacks what a suite of the plan needs.

    A suite that rests on more than Python's packages says so in `ready()`.

    Raises: MissingPartError: With the line that installs what is lacking.
    """
    for entry in plan.suites:
        discovery.get("suites", entry.name).ready(entry.families)


def differences(mine: Plan, written: Plan) -> tuple[str, ...]:
    """Return the fields in which two plans differ, but those set when one is written.

    Args:
        mine: The plan that would be written now.
        written: The plan on disk.
    Returns: Names of fields.
    """
    return tuple(
        field
        for field in mine.__struct_fields__
        if field not in _SET_WHEN_WRITTEN and getattr(mine, field) != getattr(written, field)
    )


# --- files ----------------------------------------------------------------------------


def write_plan(
    layout: RunLayout, plan: Plan, key: Ed25519PrivateKey, *, protocol: bytes, price_card: bytes
) -> str:
    """Write a plan, its signed envelope, protocol and price card.

    `plan.json` comes last: a directory that holds it holds the rest.

    Args:
        layout: The run directory.
        plan: The plan.
        key: Signs it.
        protocol: The protocol's file.
        price_card: The price card's file.
    Returns: The plan digest.
    """
    payload = canonical_json(plan)
    layout.root.mkdir(parents=True, exist_ok=True)
    write_whole(layout.protocol, protocol)
    write_whole(layout.price_card, price_card)
    write_whole(layout.plan_envelope, seal(PLAN_TYPE, payload, key))
    write_whole(layout.plan, payload)
    return sha256(payload)


def read_plan(layout: RunLayout) -> Plan:
    """Return the plan of a run directory.

    Raises:
        RunDirectoryError: It has none that reads back.
        CheckFailure: It holds files that no run holds.
    """
    if not layout.plan.exists():
        raise RunDirectoryError(
            f"{layout.root} is no run directory: it holds no plan.json. "
            f"`owa-bench run --out {layout.root}` makes one."
        )
    refuse_hostile_files(layout)
    try:
        plan = msgspec.json.decode(layout.plan.read_bytes(), type=Plan)
        wrong = fault(plan)
    except (OSError, ValueError, RecursionError) as error:
        wrong = str(error)
    if wrong:
        raise RunDirectoryError(f"{layout.plan} must be a plan (owa-plan-1), got: {wrong}.")
    return plan

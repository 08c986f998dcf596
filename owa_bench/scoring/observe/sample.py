"""Samples: the counted episodes that the statistics of one agent are read from."""

from dataclasses import dataclass, replace
from typing import Final

import msgspec
import numpy as np

from owa_bench.records.observables import PRICED, Array, Flags, Floats, Observables
from owa_bench.records.plan import Plan
from owa_bench.records.price_card import PriceCard
from owa_bench.records.protocol import Protocol
from owa_bench.scoring.observe.attempt_sets import RevisionEvidence

OF_APART: Final = ("M", "R", "S")  # axes that count on sittings, lanes, seats apart
SURROGATE: Final = "surrogate device"  # what stood in for a robot
NOT_APART: Final = "sittings, seats and lanes shared the kernel's caches and locks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One agent's counted episodes and the published numbers.

    `base` marks the rows that axes rest on: those without help. `priced` marks those under the
    protocol's intervention budget on the same tasks, which A rests on; the frontier reads the other
    budgets too. `bodies` marks those of embodied suites, without help: E alone reads them, and
    `base` holds none. `crews` is `base` with the controls of a crew's size and channel, which axis
    S alone reads. `families` are those of the plan, of which `body_families` are of embodied
    suites, `weights` sum to 1 over them. `revision` is what axis R rests on, None where it is not
    read: the campaigns of SelfRev where they were played, else `practised`, what the attempt sets
    of practice show. `references` are the episodes of the run's reference agents, None where none
    are read; `others` are the agent's own that no axis rests on. `shared_root` says why the agent's
    sittings, seats and lanes could pass bits to each other past the record, "" where they could
    not.
    """

    table: Observables
    base: Flags
    priced: Flags
    crews: Flags
    bodies: Flags
    families: tuple[str, ...]
    body_families: frozenset[str]
    weights: Floats
    protocol: Protocol
    prices: PriceCard
    revision: RevisionEvidence | None = None
    practised: RevisionEvidence | None = None
    references: Observables | None = None
    others: Observables | None = None
    shared_root: str = ""


def sample_of(
    plan: Plan, table: Observables, protocol: Protocol, prices: PriceCard, shared_root: str = ""
) -> Sample:
    """Return the episodes that the axes of one agent rest on.

    Of each suite holdout episodes where there are any, else the checkpoints of every day: a
    campaign is judged by the mean of its window. Practice, attempt sets and honeypots count
    nowhere, nor do episodes with a drift calendar of their own. Axes rest on episodes without help,
    A on those under the protocol's budget.

    Args:
        plan: The run's plan.
        table: Counted episodes of the agent.
        protocol: Published numbers.
        prices: Price card.
        shared_root: Why sittings, seats and lanes of the agent were not apart.
    Returns: The sample of the axes.
    """
    sample = _sample(plan, table.take(table.calendar == ""), protocol, prices)
    return replace(sample, shared_root=shared_root)


def grouped_of(plan: Plan, table: Observables, protocol: Protocol, prices: PriceCard) -> Sample:
    """Return the episodes that drift dose and response of one agent rest on.

    Episodes of suites whose operators have groups, under any calendar; the same phases and budgets
    as for the axes.

    Args:
        plan: The run's plan.
        table: Counted episodes of the agent.
        protocol: Published numbers.
        prices: Price card.
    Returns: The sample, all of whose rows are base rows.
    """
    suites = np.isin(table.suite, grouped_suites(plan))
    whole = _sample(plan, table.take(suites), protocol, prices)
    rows = whole.table.take(whole.base)
    every = np.ones(len(rows), dtype=np.bool_)
    return replace(whole, table=rows, base=every, priced=~every, crews=every, bodies=~every)


def grouped_suites(plan: Plan) -> list[str]:
    """Return the suites of a plan whose drift operators have groups."""
    return [suite.name for suite in plan.suites if suite.groups and not suite.native]


def _sample(plan: Plan, table: Observables, protocol: Protocol, prices: PriceCard) -> Sample:
    families, weights = plan_families(plan)
    counted = scored_rows(table) & ~table.honeypot
    scored = table.take(counted)
    alone: Flags = scored.interventions == 0
    embodied = embodied_suites(plan)
    bodies = alone & np.isin(scored.suite, embodied)
    crews = alone & ~bodies
    base = crews & ~scored.crew.control
    return Sample(
        table=scored,
        base=base,
        priced=_priced(scored, base),
        crews=crews,
        bodies=bodies,
        families=families,
        body_families=frozenset(f for f in families if f.partition("/")[0] in embodied),
        weights=weights,
        protocol=protocol,
        prices=prices,
        others=table.take(~counted),
    )


def _priced(table: Observables, base: Flags) -> Flags:
    """Return the rows under the protocol's budget whose task is a base row's too."""
    rows: Flags = (table.interventions == PRICED) & ~table.crew.control
    tasks = same_task(table)
    priced: Flags = rows & np.isin(tasks, tasks[base])
    return priced


def same_task(table: Observables) -> Array:
    """Return a number per row, equal where task, repeat, drift and day are."""
    pair = np.unique(table.pair, return_inverse=True)[1].reshape(-1)
    delta = np.unique(table.delta, return_inverse=True)[1].reshape(-1)
    keys = np.stack((pair, table.repeat, delta, table.day))
    return np.unique(keys, axis=1, return_inverse=True)[1].reshape(-1)


def under_all_budgets(table: Observables, budgets: int) -> Flags:
    """Return the rows whose task, repeat and drift were played under every budget.

    Args:
        table: The episodes of one agent.
        budgets: How many intervention budgets the table has.
    Returns: (episodes,) bool.
    """
    code = same_task(table)
    pairs = np.unique(np.stack((code, table.interventions)), axis=1)
    common: Flags = np.bincount(pairs[0])[code] == budgets
    return common


def scored_rows(table: Observables) -> Flags:
    """Return which episodes axes may rest on: holdout, else every day's checkpoints.

    Args:
        table: Episodes of any agents, honeypots and calendars left aside.
    """
    plain = table.condition == ""
    holdout: Flags = plain & (table.phase == "holdout")
    once = np.isin(table.suite, np.unique(table.suite[holdout]))
    checkpoints: Flags = plain & (table.phase == "checkpoint") & ~once
    return holdout | checkpoints


def daily_plan(plan: Plan) -> Plan:
    """Return a plan with those of its suites that stand in a day's checkpoint.

    Args:
        plan: The run's plan.
    Returns: The plan itself where no suite does.
    """
    played = {entry.suite for entry in plan.entries if entry.phase == "checkpoint"}
    suites = tuple(suite for suite in plan.suites if suite.name in played)
    return msgspec.structs.replace(plan, suites=suites or plan.suites)


def daily_families(plan: Plan) -> tuple[str, ...]:
    """Return the families whose quality is read from day to day, sorted."""
    return plan_families(daily_plan(plan))[0]


def embodied_suites(plan: Plan) -> tuple[str, ...]:
    """Return the names of a plan's embodied suites."""
    return tuple(suite.name for suite in plan.suites if suite.embodied is True)


def plan_families(plan: Plan) -> tuple[tuple[str, ...], Floats]:
    """Return "suite/family" names with their weights, which sum to 1.

    A native suite has no share in any axis.
    """
    names: list[str] = []
    weights: list[float] = []
    inside = [suite for suite in plan.suites if not suite.apart]
    for suite in inside or plan.suites:
        own = dict(suite.family_weights)
        shares = [own.get(family, 1.0) for family in suite.families]
        names += [f"{suite.name}/{family}" for family in suite.families]
        weights += [suite.weight * share / sum(shares) for share in shares]
    order = sorted(range(len(names)), key=names.__getitem__)
    ranked = np.array([weights[i] for i in order])
    return tuple(names[i] for i in order), ranked / ranked.sum()

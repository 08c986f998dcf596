"""Samples: the counted episodes that the statistics of one agent are read from."""

from dataclasses import dataclass, replace

import numpy as np

from owa_bench.records.observables import NO_CAP, UNLIMITED, Flags, Floats, Observables
from owa_bench.records.plan import Plan
from owa_bench.records.price_card import PriceCard
from owa_bench.records.protocol import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One agent's counted episodes and the published numbers.

    `base` marks the rows that axes rest on (phase and intervention budget); the
    frontier reads the other budgets too. `crews` is `base` before it is narrowed to
    the whole crew with its channel open. `families` are those of the plan, `weights`
    sum to 1 over them.
    """

    table: Observables
    base: Flags
    crews: Flags
    families: tuple[str, ...]
    weights: Floats
    protocol: Protocol
    prices: PriceCard


def sample_of(
    plan: Plan, table: Observables, protocol: Protocol, prices: PriceCard
) -> Sample:
    """Return the episodes that the axes of one agent rest on.

    Holdout episodes where there are any, else the checkpoint of the last day. Practice
    and honeypots count nowhere, nor do episodes with a drift calendar of their own.
    Axes rest on the smallest intervention budget played.

    Args:
        plan: The run's plan.
        table: Counted episodes of the agent.
        protocol: Published numbers.
        prices: Price card.

    Returns:
        The sample of the axes.
    """
    return _sample(plan, table.take(table.calendar == ""), protocol, prices)


def grouped_of(
    plan: Plan, table: Observables, protocol: Protocol, prices: PriceCard
) -> Sample:
    """Return the episodes that drift dose and response of one agent rest on.

    Episodes of suites whose operators have groups, under any calendar; the same phases
    and budgets as for the axes.

    Args:
        plan: The run's plan.
        table: Counted episodes of the agent.
        protocol: Published numbers.
        prices: Price card.

    Returns:
        The sample, all of whose rows are base rows.
    """
    suites = [suite.name for suite in plan.suites if suite.groups and not suite.native]
    whole = _sample(plan, table.take(np.isin(table.suite, suites)), protocol, prices)
    rows = whole.table.take(whole.base)
    every = np.ones(len(rows), dtype=np.bool_)
    return replace(whole, table=rows, base=every, crews=every)


def _sample(
    plan: Plan, table: Observables, protocol: Protocol, prices: PriceCard
) -> Sample:
    families, weights = _families(plan)
    scored = table.take(_scored(table) & ~table.honeypot)
    crews = _smallest_budget(scored)
    return Sample(
        table=scored,
        base=crews & _whole_crew(scored),
        crews=crews,
        families=families,
        weights=weights,
        protocol=protocol,
        prices=prices,
    )


def _smallest_budget(table: Observables) -> Flags:
    budgets = np.where(
        table.interventions == UNLIMITED, np.iinfo(np.int64).max, table.interventions
    )
    if not len(table):
        return np.zeros(0, dtype=np.bool_)
    least: Flags = budgets == budgets.min()
    return least


def _whole_crew(table: Observables) -> Flags:
    """Return the rows of the largest crew that played a pair, its channel open."""
    roles = np.where(table.crew.cap == NO_CAP, np.iinfo(np.int64).max, table.crew.cap)
    pairs = np.unique(table.pair, return_inverse=True)[1].reshape(-1)
    most = np.zeros(int(pairs.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(most, pairs, np.where(table.crew.muted, 0, roles))
    whole: Flags = (roles == most[pairs]) & ~table.crew.muted
    return whole


def _scored(table: Observables) -> Flags:
    holdout: Flags = table.phase == "holdout"
    if holdout.any() or not len(table):
        return holdout
    marks: Flags = table.phase == "checkpoint"
    last = table.day[marks].max() if marks.any() else 0
    final: Flags = marks & (table.day == last)
    return final


def _families(plan: Plan) -> tuple[tuple[str, ...], Floats]:
    """Return "suite/family" names with their weights, which sum to 1.

    A native suite has no share in any axis.
    """
    names: list[str] = []
    weights: list[float] = []
    inside = [suite for suite in plan.suites if not suite.native]
    for suite in inside or plan.suites:
        own = dict(suite.family_weights)
        shares = [own.get(family, 1.0) for family in suite.families]
        names += [f"{suite.name}/{family}" for family in suite.families]
        weights += [suite.weight * share / sum(shares) for share in shares]
    order = sorted(range(len(names)), key=names.__getitem__)
    ranked = np.array([weights[i] for i in order])
    return tuple(names[i] for i in order), ranked / ranked.sum()

"""Statistics that gates read and no axis: cognition, projects, lead over experts."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Floats, Integers
from owa_bench.records.protocol import Memory
from owa_bench.scoring.estimate.statistic_key import StatisticKey
from owa_bench.scoring.observe.expert_time import expert_minutes
from owa_bench.scoring.observe.sample import Sample
from owa_bench.scoring.statistics.statistics_table import StatisticsTable

VERIFIED, TRUTHFUL, DELAYED, FIDELITY = (
    StatisticKey("cognition", "gate", name) for name in ("vrp", "truthful", "delayed", "fidelity")
)
DELIVERED = StatisticKey("projects", "gate", "delivered")
_DAY = 86_400.0  # seconds
_MICRO = 10**6  # micro-USD a USD


def verified_precision(verified: Flags, slots: int) -> Floats:
    """Return VRP@K of each retrieval: verified entries among K slots, over K.

    Formula:
        VRP@K = (verified entries among the first K) / K; an empty slot is unverified
    Shapes: verified (probes, returned); result (probes,). Units: a share.
    Missing: none. Errors: ScoringError unless K >= 1 and the table is 2-D.
    Source: [S] eq 33 of the AAI paper; docs/scoring.md#gates.

    >>> verified_precision(np.array([[True, True, False]]), 5)
    array([0.4])
    >>> verified_precision(np.array([[True], [False]]), 1)
    array([1., 0.])
    """
    if slots < 1 or verified.ndim != 2:
        raise ScoringError(f"VRP needs K >= 1 and a table of slots, got {slots}, {verified.shape}.")
    share: Floats = verified[:, :slots].sum(axis=1) / float(slots)
    return share


def hallucination(contrary: Floats, returned: Integers) -> Floats:
    """Return HR of each retrieval: the share of what was returned that is false.

    Formula:
        HR@K = returned entries whose source does not exist or says the contrary,
        over the returned entries (so HR is not 1 - VRP)
    Shapes: two arrays (probes,). Units: a share.
    Missing: NaN where nothing was returned or none was checked.
    Errors: ScoringError if a count lies outside [0, returned].
    Source: [S] eq 33 of the AAI paper; docs/scoring.md#gates.

    >>> hallucination(np.array([1.0, np.nan]), np.array([4, 4]))
    array([0.25,  nan])
    """
    if contrary.shape != returned.shape:
        raise ScoringError(f"Probes differ: {contrary.shape} and {returned.shape}.")
    known = ~np.isnan(contrary)
    if ((contrary < 0) | (contrary > returned))[known].any():
        raise ScoringError("Contrary entries must be among the returned ones.")
    return np.divide(contrary, returned, out=np.full_like(contrary, np.nan), where=returned > 0)


def span(lengths: Integers, correct: Flags, seeds: Integers, rules: Memory) -> float:
    """Return WM-span: the largest list length that is answered, median over seeds.

    Formula:
        per seed: largest n up to which every length from 2 on was tried and has
        accuracy >= .75 (>= 40 trials each over all seeds); then the median over seeds
    Shapes: three arrays (trials,). Units: items.
    Missing: NaN where the shortest length has too few trials; 0 where it is not
        answered. A length counts only if every shorter one was tried.
    Errors: ScoringError if shapes differ.
    Source: [S] eq 33 of the AAI paper; shortest length, accuracy and trials [D].

    >>> from types import SimpleNamespace
    >>> rules = SimpleNamespace(span_start=2, span_accuracy=0.75, span_trials=40)
    >>> n = np.repeat([2, 3, 4, 5, 9], 40)
    >>> span(n, n != 5, np.zeros(200, dtype=int), rules)
    4.0
    """
    if not lengths.shape == correct.shape == seeds.shape:
        raise ScoringError(f"Trials differ: {lengths.shape}, {correct.shape}, {seeds.shape}.")
    tested, n = [], rules.span_start
    while (lengths == n).sum() >= rules.span_trials:
        tested.append(n)
        n += 1
    if not tested:
        return float("nan")
    best = []
    for seed in np.unique(seeds):
        reached = 0
        for n in tested:
            here = (seeds == seed) & (lengths == n)
            if not here.any() or correct[here].mean() < rules.span_accuracy:
                break
            reached = n
        best.append(reached)
    return float(np.median(best))


class CognitiveCoverage(NamedTuple):
    """WM-span, None without any; keys of the cognitive statistics with evidence."""

    span: float | None
    keys: tuple[StatisticKey, ...]


def add_cognition(sample: Sample, statistics: StatisticsTable) -> CognitiveCoverage:
    """Add VRP, 1 - HR, delayed recall and fidelity as means over unhelped probes.

    The last two and span read items that are proved to be asked without tools.

    Args:
        sample: Counted episodes of one agent.
        statistics: Table to add columns to.
    Returns: The keys, and the span, which is not resampled.
    """
    table, probes, rules = sample.table, sample.table.probes, sample.protocol.memory
    counted = np.isin(probes.row, np.flatnonzero(sample.base)) & ~probes.helped
    retrieval = counted & (probes.mode == "retrieve")
    false = hallucination(probes.contrary, probes.returned)
    asked = counted & probes.zero_tool
    late = asked & (probes.mode == "recall") & (probes.lag >= rules.delayed_days)
    keys = []
    for key, values, rows in (
        (VERIFIED, verified_precision(probes.verified, rules.recall_at), retrieval),
        (TRUTHFUL, 1.0 - false, retrieval & ~np.isnan(false)),
        (DELAYED, probes.correct, late),
        (FIDELITY, probes.correct, asked & (probes.mode == "fidelity")),
    ):
        if rows.any():
            statistics.add_entries(key.column, probes.row[rows], values[rows])
            keys.append(key)
    trials = asked & (probes.mode == "span")
    reached = span(
        probes.span[trials], probes.correct[trials], table.repeat[probes.row][trials], rules
    )
    return CognitiveCoverage(None if np.isnan(reached) else reached, tuple(keys))


class ProjectOutcomes(NamedTuple):
    """Projects played: their number, least days, and cost relative to an expert.

    `cost` is the cost of a delivery over an expert's; None where nothing was delivered or a price
    is unknown. `attempts` were delivered.
    """

    number: int = 0
    days: float = 0.0
    cost: float | None = None
    attempts: tuple[str, ...] = ()


def add_projects(sample: Sample, statistics: StatisticsTable) -> ProjectOutcomes:
    """Add the delivery of each project; a project is an episode of the project suite.

    Formula:
        delivered = success by the suite's own rule and no disqualifying violation
        cost = USD of agent and human per delivery / expert's minutes, priced
    Shapes: columns (units,). Units: shares; days; a ratio of USD.
    Missing: no column without a project. Errors: none of its own.
    Source: [D] docs/scoring.md#gates.
    """
    table, rules = sample.table, sample.protocol.projects
    rows = sample.base & (table.suite == rules.suite)
    if not rows.any():
        return ProjectOutcomes()
    statistics.add_mean(DELIVERED.column, table.u, rows)
    return ProjectOutcomes(
        number=int(rows.sum()),
        days=float(table.simulated_s[rows].min() / _DAY),
        cost=_cost(sample, rows),
        attempts=tuple(table.attempt[rows & (table.u > 0)].tolist()),
    )


def _cost(sample: Sample, rows: Flags) -> float | None:
    table, minute = sample.table, sample.prices.price("supervisor_min")
    own = table.cost_agent + table.cost_human
    evaluation = np.where(table.phase == "checkpoint", table.cost_evaluation, 0.0)
    spent = float((own + evaluation)[rows].sum())
    done = rows & (table.u > 0)
    if not minute or np.isnan(spent) or spent <= 0 or not done.any():
        return None
    expert = expert_minutes(table, sample.protocol.economics)[done] * minute
    worth = float(expert.sum()) / _MICRO
    return spent / worth if worth > 0 else None


def margin(agent: float, agent_se: float, expert: float, expert_se: float) -> float:
    """Return the lead over the experts of a family in standard errors.

    Formula:
        z = (q_agent - q_expert) / sqrt(se_a^2 + se_e^2), se_e clustered by expert
    Shapes: scalars. Units: standard errors.
    Missing: none; two errors of 0 cannot tell and are refused.
    Errors: ScoringError for a negative error, two zeros or a value outside [0, 1].
    Source: [S] eq 19 of the AAI paper.

    >>> margin(0.9, 0.03, 0.8, 0.04)
    2.0
    """
    if min(agent_se, expert_se) < 0 or agent_se + expert_se <= 0:
        raise ScoringError(f"Standard errors must be >= 0, one above, got {agent_se}, {expert_se}.")
    if not (0 <= agent <= 1 and 0 <= expert <= 1):
        raise ScoringError(f"Qualities must lie in [0, 1], got {agent} and {expert}.")
    return round((agent - expert) / float(np.hypot(agent_se, expert_se)), 9)


class FamilyQuality(NamedTuple):
    """One family's mean quality and its standard error over tasks."""

    quality: float
    error: float


def family_qualities(sample: Sample) -> dict[str, FamilyQuality]:
    """Return each family's mean over tasks with its error, families of 2 tasks up."""
    table, qualities = sample.table, {}
    for family in sample.families:
        rows = sample.base & (table.family == family)
        pairs, code = np.unique(table.pair[rows], return_inverse=True)
        if len(pairs) < 2:
            continue
        means: Floats = np.bincount(code, table.q[rows]) / np.bincount(code)
        error = float(means.std(ddof=1) / np.sqrt(len(means)))
        qualities[family] = FamilyQuality(float(means.mean()), error)
    return qualities


def coverage(
    agent: Mapping[str, FamilyQuality],
    experts: Mapping[str, tuple[float, float]],
    z: float,
    lead: float,
) -> float:
    """Return the share of the experts' families with a margin and a lead.

    Formula:
        share of families with z >= 1.96 and q_agent - q_expert >= .02
    Shapes: mappings by family. Units: a share.
    Missing: a family that the agent did not play is not covered.
    Errors: ScoringError without an expert.
    Source: AAI paper, equations 20-21 [S]; the lead [D].

    >>> one = {"f": FamilyQuality(0.9, 0.03), "g": FamilyQuality(0.5, 0.03)}
    >>> coverage(one, {"f": (0.8, 0.04), "g": (0.8, 0.04)}, 1.96, 0.02)
    0.5
    >>> coverage({"f": FamilyQuality(0.75, 0.0)}, {"f": (0.5, 0.01)}, 1.96, 0.25)
    1.0
    """
    if not experts:
        raise ScoringError("Coverage needs the norms of experts, got none.")
    ahead = [
        family in agent
        and margin(*agent[family], *norm) >= z
        and agent[family].quality - norm[0] >= lead
        for family, norm in experts.items()
    ]
    return sum(ahead) / len(ahead)

"""Projects of days: how many were delivered, and at whose cost."""

from typing import NamedTuple

import numpy as np

from owa_bench.records.observables import Flags
from owa_bench.scoring.axis import Sample
from owa_bench.scoring.cells import Ledger

DELIVERED = "D/delivered"
_DAY = 86_400.0
_MICRO = 10**6


class Projects(NamedTuple):
    """Projects played, their days, and cost per delivery over an expert's.

    `cost` is None where nothing was delivered or a price is unknown.
    """

    played: int = 0
    days: float = 0.0
    cost: float | None = None
    attempts: tuple[str, ...] = ()


def lay_projects(sample: Sample, ledger: Ledger) -> Projects:
    """Lay delivery of each project; a project is an episode of the project suite.

    Formula:
        delivered = success by the suite's own rule and no disqualifying violation
        cost = USD of agent and human per delivery / expert minutes of H_t, priced
    Source: [D] `suites.md` section 3; expert cost [D] section 1 of `aai-scale.md`.
    """
    table, rules = sample.table, sample.protocol.projects
    rows = sample.base & (table.suite == rules.suite)
    if not rows.any():
        return Projects()
    ledger.mean(DELIVERED, table.u, rows)
    return Projects(
        played=int(rows.sum()),
        days=float(table.simulated_s[rows].min() / _DAY),
        cost=_cost(sample, rows),
        attempts=tuple(table.attempt[rows & (table.u > 0)].tolist()),
    )


def _cost(sample: Sample, rows: Flags) -> float | None:
    table, minute = sample.table, sample.prices.price("supervisor_min")
    own = table.cost_agent + table.cost_human
    moved = np.where(table.phase == "checkpoint", table.cost_evaluation, 0.0)
    spent = float((own + moved)[rows].sum())
    done = rows & (table.u > 0)
    if not minute or np.isnan(spent) or spent <= 0 or not done.any():
        return None
    expert = table.horizon[done] * sample.protocol.economics.expert_minutes * minute
    worth = float(expert.sum()) / _MICRO
    return spent / worth if worth > 0 else None

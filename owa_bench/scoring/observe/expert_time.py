"""An expert's minutes: what the work of an episode takes, not how many actions it has."""

from typing import NamedTuple

import numpy as np

from owa_bench.records.observables import Floats, Observables
from owa_bench.records.protocol import Economics, ExpertRates

OTHER = "other"  # a suite that the protocol does not name


class MinutesOfWork(NamedTuple):
    """Minutes by what they are spent on."""

    read: float
    decide: float
    write: float


def minutes_of_work(
    suite: str, read: float, decisions: float, written: float, rates: ExpertRates
) -> MinutesOfWork:
    """Return what an episode takes an expert.

    Formula:
        read / reading rate, decisions x minutes of the suite's decision,
        written / typing rate
    Args:
        suite: Name.
        read: Characters, each text once.
        decisions: Nodes of the task and questions asked.
        written: Characters, each text once.
        rates: The protocol's [D].
    Returns: The three parts.

    >>> rates = ExpertRates(reading=1000.0, typing=200.0, decision={"other": 0.5})
    >>> minutes_of_work("mine", 3000, 4, 100, rates)
    MinutesOfWork(read=3.0, decide=2.0, write=0.5)
    """
    decision = rates.decision.get(suite, rates.decision[OTHER])
    return MinutesOfWork(read / rates.reading, decisions * decision, written / rates.typing)


def expert_minutes(table: Observables, rules: Economics) -> Floats:
    """Return the minutes of each episode's work.

    Formula: the sum of `minutes_of_work`; under a protocol without rates H_t expert_minutes.
    Shapes: (episodes,). Units: minutes.
    Missing: NaN where neither the suite's card nor the trace says what the work is.
    Errors: none. Source: [D] docs/scoring.md#an-experts-time.
    """
    rates = rules.expert
    if rates is None:
        return table.horizon.astype(np.float64) * (rules.expert_minutes or np.nan)
    suites, suite = np.unique(table.suite, return_inverse=True)
    known = [rates.decision.get(name, rates.decision[OTHER]) for name in suites.tolist()]
    decisions = table.decisions * np.array(known, dtype=np.float64)[suite.reshape(-1)]
    minutes: Floats = table.read / rates.reading + decisions + table.written / rates.typing
    minutes[minutes == 0] = np.nan
    return minutes

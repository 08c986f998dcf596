"""Options of `owa-bench run` that give the evidence a run lacks, by axis and gate.

Some evidence needs a change of the agent or of the set-up instead; its entry says so.
Source: docs/read-a-report.md
"""

from collections.abc import Iterable

from owa_bench.records.score import AgentVerdict

_PLAYS = {
    "P": "--suite toolquest --tier 3,4",
    "M": "--battery recall",
    "R": "--suite selfrev",
    "S": "--suite multicrew --crews 1,4,4:muted",
    "T": "--suite toolquest,changesurf,projforge --delta 0,.25,.5,.75,1",
    "W": "an agent that states p when it finishes",
    "E": "--battery robot_small",
    "kappa": "--suite toolquest --days 14",
    "maintenance": "--suite toolquest --days 14 --maintenance 12",
    "expansion": "--suite toolquest --days 44",
    "cognitive": "--battery recall",
    "project": "--suite projforge",
    "assurance": "a run whose plan a verifier challenges (docs/check-a-report.md)",
}


def next_play(name: str) -> str:
    """Return the option that gives evidence on an axis or a gate, "" if the table has none.

    Args:
        name: The symbol of an axis, or a gate's name, whose first word it is.
    """
    return _PLAYS.get(name.partition(" ")[0], "")


def next_plays(verdict: AgentVerdict) -> tuple[tuple[str, str], ...]:
    """Return name and option for each axis and gate of an agent without evidence.

    Args:
        verdict: Of the agent.
    """
    return tuple((name, play) for name in _names(verdict) if (play := next_play(name)))


def _names(verdict: AgentVerdict) -> Iterable[str]:
    lacking = [axis.symbol for axis in verdict.axes if axis.value is None]
    gates = [gate.gate for gate in verdict.gates if gate.status == "NO EVIDENCE"]
    return dict.fromkeys((*lacking, *gates))

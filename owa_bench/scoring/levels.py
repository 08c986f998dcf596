"""Levels: every gate judged, then the highest level whose gates all pass."""

from typing import NamedTuple

from owa_bench.discovery import get
from owa_bench.records.protocol import Protocol
from owa_bench.records.score import GateResult
from owa_bench.scoring.gate import Findings

HIGHEST = 5
NOT_PLACED = "not placed"


class Placement(NamedTuple):
    """A level (None: not placed), its words, and whether it rests on provisional norms.

    `gates` are all lines of the gate table, in the protocol's order.
    """

    level: int | None
    text: str
    provisional: bool
    gates: tuple[GateResult, ...]


def judge_gates(findings: Findings) -> tuple[GateResult, ...]:
    """Return the result of every line of the protocol's gate table."""
    rules = findings.protocol.gates
    return tuple(get("gates", rule.gate).judge(rule, findings) for rule in rules)


def place(gates: tuple[GateResult, ...], protocol: Protocol) -> Placement:
    """Return the highest level all of whose gates, and those below it, pass.

    NO EVIDENCE is never a pass. AAI-0 is said only where a gate of AAI-1 FAILs;
    otherwise the agent is not placed.
    """
    passed = {
        level: any(g.level == level for g in gates)
        and all(g.status == "PASS" for g in gates if g.level <= level)
        for level in range(1, HIGHEST + 1)
    }
    for level in range(HIGHEST, 0, -1):
        if passed[level]:
            provisional = _provisional(level, protocol)
            mark = " (provisional norms)" if provisional else ""
            return Placement(level, f"AAI-{level}{mark}", provisional, gates)
    failed = [g.gate for g in gates if g.level == 1 and g.status == "FAIL"]
    if failed:
        return Placement(0, f"AAI-0 ({', '.join(failed)} FAIL)", False, gates)
    lacking = [g.gate for g in gates if g.level == 1 and g.status == "NO EVIDENCE"]
    return Placement(
        None, f"{NOT_PLACED} (no evidence on {', '.join(lacking)})", False, gates
    )


def _provisional(level: int, protocol: Protocol) -> bool:
    """Return whether a level rests on norms that no human set."""
    resting = {"cognitive", "core"}
    return protocol.norms.provisional and any(
        rule.gate in resting and rule.level <= level for rule in protocol.gates
    )


def unlevelled(reason: str) -> Placement:
    """Return the placement of a run that cannot give a level."""
    return Placement(None, f"{NOT_PLACED} ({reason})", False, ())

"""The extension API of the acting half: what a suite, operator or agent must be.

    Suite      draws worlds and brings a timeline of them to life
    Operator   a pure function from world to world: one kind of drift
    Schedule   which operators act on an instance, where, how strongly and when
    Agent      reset, act, close
    Detector   finds one disallowed behaviour in an episode

A plug-in folder's entry exports one of SUITE, OPERATOR, AGENT, AXIS, GATE. The last two
belong to the judging half: `scoring/axis.py` and `scoring/gate.py` say what they are.
Import from here; the modules below are the same API by theme.
"""

from owa_bench.interfaces.agents import (
    Agent,
    AgentCard,
    AgentConfig,
    Brief,
    Move,
    ToolSpec,
)
from owa_bench.interfaces.drift import (
    DriftEvent,
    EnumerableSchedule,
    Operator,
    Schedule,
    Source,
    World,
)
from owa_bench.interfaces.episodes import (
    Ending,
    HasFinalEvents,
    Oracle,
    OracleAccess,
    PropositionTruth,
    Session,
    Sink,
    State,
    SubgoalNode,
    Task,
    ToolResult,
    stated_quality,
)
from owa_bench.interfaces.suites import (
    Detector,
    HasHorizon,
    Rule,
    Suite,
    SuiteCard,
    View,
)

__all__ = [
    "Agent",
    "AgentCard",
    "AgentConfig",
    "Brief",
    "Detector",
    "DriftEvent",
    "Ending",
    "EnumerableSchedule",
    "HasFinalEvents",
    "HasHorizon",
    "Move",
    "Operator",
    "Oracle",
    "OracleAccess",
    "PropositionTruth",
    "Rule",
    "Schedule",
    "Session",
    "Sink",
    "Source",
    "State",
    "SubgoalNode",
    "Suite",
    "SuiteCard",
    "Task",
    "ToolResult",
    "ToolSpec",
    "View",
    "World",
    "stated_quality",
]

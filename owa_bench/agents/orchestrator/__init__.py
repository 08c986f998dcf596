"""The orchestrator archetype: a planner, a scout, fetchers, a reconciler, a verifier.

Source: docs/archetypes.md#orchestrator.
"""

from owa_bench.agents.orchestrator.agent import AGENT

__all__ = ["AGENT"]

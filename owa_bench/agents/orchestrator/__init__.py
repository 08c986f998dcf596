"""The orchestrator archetype: a planner, a scout, fetchers, a reconciler, a verifier.

Source: `suites.md` section 9, archetype "orchestrator".
"""

from owa_bench.agents.orchestrator.agent import AGENT

__all__ = ["AGENT"]

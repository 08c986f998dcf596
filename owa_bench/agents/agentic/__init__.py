"""The agentic archetype: reads documents, probes on errors, plans, asks when stuck.

Source: `suites.md` section 9, archetype "agentic".
"""

from owa_bench.agents.agentic.agent import AGENT

__all__ = ["AGENT"]

"""The self-improving archetype: begins with few skills, turns more on by trial.

Source: docs/archetypes.md#self_improving.
"""

from owa_bench.agents.self_improving.agent import AGENTS

__all__ = ["AGENTS"]

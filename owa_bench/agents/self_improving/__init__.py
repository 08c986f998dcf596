"""The self-improving archetype: begins with few skills, turns more on by trial.

Source: `suites.md` section 9, archetype "self-improving".
"""

from owa_bench.agents.self_improving.agent import AGENT

__all__ = ["AGENT"]

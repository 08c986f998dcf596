"""A language model behind an OpenAI-compatible chat endpoint, over plain httpx.

Source: `suites.md` section 9, "language model".
"""

from owa_bench.agents.language_model.agent import AGENT

__all__ = ["AGENT"]

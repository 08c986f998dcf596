"""A language model behind an OpenAI-compatible chat endpoint, over plain httpx.

Source: docs/language-model-agents.md#play-a-language-model.
"""

from owa_bench.agents.language_model.agent import AGENT

__all__ = ["AGENT"]

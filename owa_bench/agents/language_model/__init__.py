"""A language model behind an OpenAI-compatible chat endpoint, over plain httpx.

Source: docs/language-model-agents.md#play-a-language-model.
"""

from owa_bench.agents.language_model.agent import AGENT as _PLAYER
from owa_bench.agents.language_model.proposer import PROPOSER

AGENTS = (_PLAYER, PROPOSER)

__all__ = ["AGENTS"]

"""The agent of CartPole3D that never pushes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench.interfaces import AgentCard, AgentConfig, Brief, ToolSpec


class Nothing:
    """Plays the first action, which is to do nothing."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode; nothing is kept."""

    def act(self, observation: Any, info: Mapping[str, Any]) -> int:
        """Return the action that does nothing."""
        return 0

    def close(self) -> None:
        """End the episode."""


AGENT = AgentCard(
    name="nothing",
    about="Never pushes; the floor of CartPole3D.",
    make=Nothing,
    suites=("cartpole3d",),
)

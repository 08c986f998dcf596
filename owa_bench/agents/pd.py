"""The proportional-derivative rule of CartPole3D: ten lines that nearly solve it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench.interfaces import AgentCard, AgentConfig, Brief, ToolSpec
from owa_bench.skills.balancing.law import pd_action
from owa_bench.skills.balancing.reading import read


class ProportionalDerivative:
    """Pushes along the axis with the larger error; sees no balls."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode; nothing is kept."""

    def act(self, observation: Any, info: Mapping[str, Any]) -> int:
        """Return the push that the rule says."""
        return pd_action(read(observation))

    def close(self) -> None:
        """End the episode."""


AGENT = AgentCard(
    name="pd",
    about="A proportional-derivative rule; the reference row of CartPole3D.",
    make=ProportionalDerivative,
    suites=("cartpole3d",),
)

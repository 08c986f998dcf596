"""An agent that plans on a model: the best first action of every short sequence."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from owa_bench.interfaces import Brief, ToolSpec
from owa_bench.skills.balancing.flight import safest
from owa_bench.skills.balancing.model import LEVEL_0, PLACED, Cost, Model, choose
from owa_bench.skills.balancing.reading import Seen, read


class Planner:
    """Tries all sequences of `depth` actions on the model and values where they end."""

    def __init__(self, *, depth: int, model: Model = LEVEL_0) -> None:
        self._depth = depth
        self._model = model

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode; nothing is kept."""

    def act(self, observation: Any, info: Mapping[str, Any]) -> int:
        """Return the first action of the best sequence."""
        return planned(self._model, read(observation), depth=self._depth)

    def close(self) -> None:
        """End the episode."""


def planned(model: Model, seen: Seen, *, depth: int, cost: Cost = PLACED) -> int:
    """Return the first action of the best sequence, out of the way of balls."""
    return choose(model, seen, safest(seen, np.zeros(2)), depth=depth, cost=cost)

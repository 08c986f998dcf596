"""Model repair: online system identification, and planning on the estimated model.

Every tick the numbers of a linear model (what a push gives, how fast the pole falls,
wind, what pulls the balls) are estimated by regression; the planner uses them at
once. Those of cart and pole are kept for the next episodes. Novelty is how far the
estimate lies from level 0.

Source: AIQ paper, section 3.4.1 (model-repair agents) [S]; the design [D].
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from owa_bench.interfaces import AgentCard, AgentConfig
from owa_bench.skills.balancing import control, novelty
from owa_bench.skills.balancing.control import BalanceState

_LEAST = 15  # ticks before the estimate is believed
_EVERY = 5  # ticks between repairs of the regulator


class _ModelMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory between episodes: the numbers of cart and pole."""

    kick: float = control.LEVEL_0.kick
    growth: float = control.LEVEL_0.growth
    lever: float = control.LEVEL_0.lever


class _ModelRepair(novelty.NoveltyAgent):
    """Plans two ticks ahead on the present estimate."""

    FILE = "model.json"

    def __init__(self, config: AgentConfig) -> None:
        self._config = config

    def begin(self, memory: bytes | None) -> None:
        """Begin with the model that the last episode left."""
        kept = msgspec.json.decode(memory or b"{}", type=_ModelMemory)
        self._model = control.LinearModel(
            kick=kept.kick, growth=kept.growth, lever=kept.lever
        )
        self._estimate = novelty.initial_estimate(self._model)
        self._statement = novelty.NoveltyStatement(0.0)

    def observe(self, before: BalanceState, action: int, after: BalanceState) -> None:
        """Update the estimate, and the model every few ticks."""
        novelty.update_estimate(self._estimate, before, action, after)
        if self.ticks >= _LEAST and self.ticks % _EVERY == 0:
            self._model = self._estimate.model
            away = novelty.deviation(self._estimate).largest ** 4
            self._statement = novelty.NoveltyStatement(away / (1.0 + away))

    def choose(
        self, state: BalanceState, observation: Any, info: Mapping[str, Any]
    ) -> int:
        """Return the planned action."""
        novel = self._statement.p >= self._statement.threshold
        cost = control.CAUTIOUS if novel else control.PLACED
        return control.plan_action(self._model, state, depth=2, cost=cost)

    def statement(self) -> novelty.NoveltyStatement:
        """Return how far the estimate is from level 0, as a probability."""
        return self._statement

    def memory(self) -> _ModelMemory | None:
        """Return the numbers of cart and pole."""
        if self.ticks < _LEAST:
            return None
        model = self._estimate.model
        return _ModelMemory(kick=model.kick, growth=model.growth, lever=model.lever)


AGENT = AgentCard(
    name="model_repair",
    about="Identifies the world anew, plans on it, says how far it is from level 0.",
    make=_ModelRepair,
    suites=("cartpole3d",),
)

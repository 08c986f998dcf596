"""Model repair: online system identification, and planning on the estimated model.

Every tick the numbers of a linear model (what a push gives, how fast the pole falls,
wind, what pulls the balls) are estimated by regression; the planner uses them at
once. Those of cart and pole are kept for the next episodes. Novelty is how far the
estimate lies from level 0.

Source: AIQ paper, section 3.4.1 (model-repair agents) [S]; the design [D].
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from owa_bench.interfaces import AgentCard, AgentConfig, Brief, Move, ToolSpec
from owa_bench.skills.balancing.control import (
    CAUTIOUS,
    LEVEL_0,
    PLACED,
    BalanceState,
    LinearModel,
    parse_observation,
    plan_action,
)
from owa_bench.skills.balancing.novelty import (
    NoveltyReporter,
    NoveltyStatement,
    deviation,
    initial_estimate,
    update_estimate,
)

_FILE = "model.json"
_LEAST = 15  # ticks before the estimate is believed
_EVERY = 5  # ticks between repairs of the regulator


class _ModelMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory between episodes: the numbers of cart and pole."""

    kick: float = LEVEL_0.kick
    growth: float = LEVEL_0.growth
    lever: float = LEVEL_0.lever


class _ModelRepair:
    """Plans two ticks ahead on the present estimate."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._memory = Path()
        self._begin(LEVEL_0)

    def _begin(self, model: LinearModel) -> None:
        self._model = model
        self._estimate = initial_estimate(model)
        self._reporter = NoveltyReporter()
        self._statement = NoveltyStatement(0.0)
        self._before: tuple[BalanceState, int] | None = None
        self._ticks = 0

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin with the model that the last episode left."""
        self._memory = memory_dir
        self._begin(_remembered(memory_dir))

    def act(self, observation: Any, info: Mapping[str, Any]) -> Move:
        """Return the planned push and the probability of novelty."""
        state = parse_observation(observation)
        if self._before is not None:
            update_estimate(self._estimate, *self._before, state)
            self._ticks += 1
        if self._ticks >= _LEAST and self._ticks % _EVERY == 0:
            self._model = self._estimate.model
            away = deviation(self._estimate).largest ** 4
            self._statement = NoveltyStatement(away / (1.0 + away))
        novel = self._statement.p >= self._statement.threshold
        cost = CAUTIOUS if novel else PLACED
        action = plan_action(self._model, state, depth=2, cost=cost)
        self._before = (state, action)
        return self._reporter.move(action, self._statement)

    def close(self) -> None:
        """Keep the numbers of cart and pole."""
        if self._ticks < _LEAST:
            return
        model = self._estimate.model
        memory = _ModelMemory(kick=model.kick, growth=model.growth, lever=model.lever)
        (self._memory / _FILE).write_bytes(msgspec.json.encode(memory))


def _remembered(folder: Path) -> LinearModel:
    path = folder / _FILE
    if not path.exists():
        return LEVEL_0
    memory = msgspec.json.decode(path.read_bytes(), type=_ModelMemory)
    return LinearModel(kick=memory.kick, growth=memory.growth, lever=memory.lever)


AGENT = AgentCard(
    name="model_repair",
    about="Identifies the world anew, plans on it, says how far it is from level 0.",
    make=_ModelRepair,
    suites=("cartpole3d",),
)

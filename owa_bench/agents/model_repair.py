"""Notices novelty by identifying the world anew, and plans on the model so repaired.

Every tick the numbers of a linear model (what a push gives, how fast the pole falls,
wind, what pulls the balls) are estimated by regression; the planner uses them at
once. What was found of cart and pole is kept for the next episodes. Novelty is how far
the estimate lies from level 0. After the model-repair agents of the AIQ paper, section
3.4.1; the design is ours.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from owa_bench.interfaces import AgentCard, AgentConfig, Brief, Move, ToolSpec
from owa_bench.skills.balancing.identification import deviation, fresh, learn
from owa_bench.skills.balancing.model import CAUTIOUS, LEVEL_0, PLACED, Model
from owa_bench.skills.balancing.planner import planned
from owa_bench.skills.balancing.reading import Seen, read
from owa_bench.skills.balancing.statement import Speaker, Statement

_FILE = "model.json"
_LEAST = 15  # ticks before the estimate is believed
_EVERY = 5  # ticks between repairs of the regulator


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What outlives an episode: the numbers of cart and pole."""

    kick: float = LEVEL_0.kick
    growth: float = LEVEL_0.growth
    lever: float = LEVEL_0.lever


class ModelRepair:
    """Plans two ticks ahead on the present estimate."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._memory = Path()
        self._begin(LEVEL_0)

    def _begin(self, model: Model) -> None:
        self._model = model
        self._estimate = fresh(model)
        self._speaker = Speaker()
        self._statement = Statement(0.0)
        self._before: tuple[Seen, int] | None = None
        self._ticks = 0

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin with the model that the last episode left."""
        self._memory = memory_dir
        self._begin(_remembered(memory_dir))

    def act(self, observation: Any, info: Mapping[str, Any]) -> Move:
        """Return the planned push and what is thought of the world."""
        seen = read(observation)
        if self._before is not None:
            learn(self._estimate, *self._before, seen)
            self._ticks += 1
        if self._ticks >= _LEAST and self._ticks % _EVERY == 0:
            self._model = self._estimate.model
            away = deviation(self._estimate).largest ** 4
            self._statement = Statement(away / (1.0 + away))
        novel = self._statement.p >= self._statement.threshold
        cost = CAUTIOUS if novel else PLACED
        action = planned(self._model, seen, depth=2, cost=cost)
        self._before = (seen, action)
        return self._speaker.move(action, self._statement)

    def close(self) -> None:
        """Keep the numbers of cart and pole."""
        if self._ticks < _LEAST:
            return
        model = self._estimate.model
        kept = Kept(kick=model.kick, growth=model.growth, lever=model.lever)
        (self._memory / _FILE).write_bytes(msgspec.json.encode(kept))


def _remembered(memory: Path) -> Model:
    path = memory / _FILE
    if not path.exists():
        return LEVEL_0
    kept = msgspec.json.decode(path.read_bytes(), type=Kept)
    return Model(kick=kept.kick, growth=kept.growth, lever=kept.lever)


AGENT = AgentCard(
    name="model_repair",
    about="Identifies the world anew, plans on it, says how far it is from level 0.",
    make=ModelRepair,
    suites=("cartpole3d",),
)

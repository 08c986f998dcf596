"""Adjusts the actions of another policy to what pushes do in this world.

It measures what each of the five actions gives the cart, and any steady wind. The base
policy asks for the push it wants as if at level 0; what the world then did not give is
carried as a debt, and the action whose measured effect is nearest to wish and debt is
played. At level 0 that is the base's own action. Base: the PD rule, or with
`base=FILE.zip` a policy of `owa-bench train`. After the action-adjustment agents of the
AIQ paper, section 3.4.1; the design is ours.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from owa_bench.interfaces import AgentCard, AgentConfig, Brief, Move, ToolSpec
from owa_bench.records.observables import Floats
from owa_bench.skills.balancing.law import pd_action
from owa_bench.skills.balancing.model import LEVEL_0
from owa_bench.skills.balancing.reading import EFFECTS, Seen, read
from owa_bench.skills.balancing.statement import Speaker, Statement
from owa_bench.skills.trained import trained

_FILE = "effects.json"
_PRIOR = 6.0  # ticks that the effects of level 0 weigh at first
_FADE = 0.98  # what a measured tick still weighs at the next one
_HIT = 0.6  # m/s that no push gives: a hit, not an effect
_DEBT = 3.0  # most that is owed, in pushes of level 0
_SPREAD = 0.25  # of a push: how far effects may be off before it is novelty
_LEAST = 15

Base = Callable[[Any, Mapping[str, Any], Seen], int]


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What outlives an episode: measured effects, (5, 2) in m/s."""

    effects: list[list[float]]


class ActionAdjustment:
    """Plays, for the base's wish, the action that this world needs for it."""

    def __init__(self, config: AgentConfig) -> None:
        self._base = _base(config.options.get("base", "pd"))
        self._memory = Path()
        self._effects = LEVEL_0.kick * EFFECTS

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin with the effects that the last episode left."""
        self._memory = memory_dir
        path = memory_dir / _FILE
        self._effects = LEVEL_0.kick * EFFECTS
        if path.exists():
            kept = msgspec.json.decode(path.read_bytes(), type=Kept)
            self._effects = np.asarray(kept.effects)
        self._weights = np.full(len(EFFECTS), _PRIOR)
        self._debt = np.zeros(2)
        self._ticks = 0
        self._before: tuple[Seen, int] | None = None
        self._speaker = Speaker()

    def act(self, observation: Any, info: Mapping[str, Any]) -> Move:
        """Return the adjusted action, and how far effects are from level 0's."""
        seen = read(observation)
        if self._before is not None:
            self._measure(*self._before, seen)
        wish = LEVEL_0.kick * EFFECTS[self._base(observation, info, seen)]
        wanted = wish + self._debt
        action = int(np.argmin(np.linalg.norm(self._effects - wanted, axis=1)))
        limit = _DEBT * LEVEL_0.kick
        self._debt = np.clip(wanted - self._effects[action], -limit, limit)
        self._before = (seen, action)
        return self._speaker.move(action, Statement(self._probability()))

    def close(self) -> None:
        """Keep the effects."""
        kept = Kept(effects=self._effects.round(6).tolist())
        (self._memory / _FILE).write_bytes(msgspec.json.encode(kept))

    def _measure(self, before: Seen, action: int, after: Seen) -> None:
        """Move the effect of the action played towards what it gave."""
        gained: Floats = after.velocity - before.velocity
        if float(np.abs(gained - self._effects[action]).max()) > _HIT:
            return
        self._ticks += 1
        weight = self._weights[action] = _FADE * self._weights[action] + 1.0
        self._effects[action] += (gained - self._effects[action]) / weight

    def _probability(self) -> float:
        """Return p of novelty: effects off by `_SPREAD` of a push make 1/2."""
        if self._ticks < _LEAST:
            return 0.0
        off = np.linalg.norm(self._effects - LEVEL_0.kick * EFFECTS, axis=1)
        away = float(off.max()) / (_SPREAD * LEVEL_0.kick)
        return away**4 / (1.0 + away**4)


def _base(name: str) -> Base:
    """Return the policy that is adjusted."""
    if name == "pd":
        return lambda _observation, _info, seen: pd_action(seen)
    policy = trained(Path(name))(AgentConfig())
    return lambda observation, info, _seen: int(policy.act(observation, info))


AGENT = AgentCard(
    name="action_adjustment",
    about="Measures what pushes do and adjusts another policy's actions to it.",
    make=ActionAdjustment,
    suites=("cartpole3d",),
    options={"base": "pd, or a policy's zip file (pd)"},
)

"""Action adjustment: another policy's actions, corrected for what pushes do here.

The agent measures what each of the five actions gives the cart, any steady wind
included. The base policy names the push it would make at level 0; the part of it that
this world did not give is carried as a residual, and the action whose measured effect
is nearest to push and residual is played. At level 0 that is the base's own action.
Base: the PD rule, or with `base=FILE.zip` a policy of `owa-bench train`.

Source: AIQ paper, section 3.4.1 (action-adjustment agents) [S]; the design [D].
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from owa_bench.interfaces import AgentCard, AgentConfig
from owa_bench.records.observables import Floats
from owa_bench.skills.balancing import control
from owa_bench.skills.balancing.control import EFFECTS, LEVEL_0, BalanceState
from owa_bench.skills.balancing.novelty import NoveltyAgent, NoveltyStatement
from owa_bench.skills.trained import load_policy

_PRIOR = 6.0  # ticks that the effects of level 0 weigh at first
_FADE = 0.98  # what a measured tick still weighs at the next one
_HIT = 0.6  # m/s that no push gives: a collision, not an effect
_MOST_RESIDUAL = 3.0  # in pushes of level 0
_SPREAD = 0.25  # of a push: how far effects may be off before it is novelty
_LEAST = 15  # measured ticks before anything is stated

_BasePolicy = Callable[[Any, Mapping[str, Any], BalanceState], int]


class _EffectsMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory between episodes: measured effects, (5, 2) in m/s."""

    effects: list[list[float]]


class _ActionAdjustment(NoveltyAgent):
    """Plays, for the base's push, the action that gives it in this world."""

    FILE = "effects.json"

    def __init__(self, config: AgentConfig) -> None:
        self._base = _base(config.options.get("base", "pd"))

    def begin(self, memory: bytes | None) -> None:
        """Begin with the effects that the last episode left."""
        self._effects: Floats = LEVEL_0.kick * EFFECTS
        if memory is not None:
            kept = msgspec.json.decode(memory, type=_EffectsMemory)
            self._effects = np.asarray(kept.effects)
        self._weights = np.full(len(EFFECTS), _PRIOR)
        self._residual = np.zeros(2)
        self._measured = 0

    def observe(self, before: BalanceState, action: int, after: BalanceState) -> None:
        """Move the effect of the action played towards what it gave."""
        gained: Floats = after.velocity - before.velocity
        if float(np.abs(gained - self._effects[action]).max()) > _HIT:
            return
        self._measured += 1
        weight = self._weights[action] = _FADE * self._weights[action] + 1.0
        self._effects[action] += (gained - self._effects[action]) / weight

    def choose(
        self, state: BalanceState, observation: Any, info: Mapping[str, Any]
    ) -> int:
        """Return the adjusted action."""
        push = LEVEL_0.kick * EFFECTS[self._base(observation, info, state)]
        target = push + self._residual
        action = int(np.argmin(np.linalg.norm(self._effects - target, axis=1)))
        limit = _MOST_RESIDUAL * LEVEL_0.kick
        self._residual = np.clip(target - self._effects[action], -limit, limit)
        return action

    def statement(self) -> NoveltyStatement:
        """Return p of novelty: effects off by `_SPREAD` of a push make 1/2."""
        if self._measured < _LEAST:
            return NoveltyStatement(0.0)
        off = np.linalg.norm(self._effects - LEVEL_0.kick * EFFECTS, axis=1)
        away = float(off.max()) / (_SPREAD * LEVEL_0.kick)
        return NoveltyStatement(away**4 / (1.0 + away**4))

    def memory(self) -> _EffectsMemory:
        """Return the effects."""
        return _EffectsMemory(effects=self._effects.round(6).tolist())


def _base(name: str) -> _BasePolicy:
    """Return the policy that is adjusted."""
    if name == "pd":
        return lambda _observation, _info, state: control.pd_action(state)
    policy = load_policy(Path(name))(AgentConfig())
    return lambda observation, info, _state: int(policy.act(observation, info))


AGENT = AgentCard(
    name="action_adjustment",
    about="Measures what pushes do and adjusts another policy's actions to it.",
    make=_ActionAdjustment,
    suites=("cartpole3d",),
    options={"base": "pd, or a policy's zip file (pd)"},
)

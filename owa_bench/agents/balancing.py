"""Agents of CartPole3D that notice novelty and adapt to it, in three ways.

Action adjustment plays another policy's actions, corrected for what pushes do here: the agent
measures what each of the five actions gives the cart, any steady wind included. The base policy
names the push it would make at level 0; the part of it that this world did not give is carried as a
residual, and the action whose measured effect is nearest to push and residual is played. At level 0
that is the base's own action. Base: the PD rule, or with `base=FILE.zip` a policy of `owa-bench
train`.

Source: AIQ paper, section 3.4.1 (action-adjustment agents) [S]; the design [D].
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from owa_bench.agents.solvers.balancing import control, novelty
from owa_bench.agents.solvers.balancing.control import EFFECTS, LEVEL_0, BalanceState
from owa_bench.agents.solvers.balancing.novelty import NoveltyAgent, NoveltyStatement
from owa_bench.agents.solvers.trained import load_policy
from owa_bench.interfaces import AgentCard, AgentConfig
from owa_bench.records.observables import Floats

_PRIOR = 6.0  # ticks that the effects of level 0 weigh at first
_FADE = 0.98  # what a measured tick still weighs at the next one
_HIT = 0.6  # m/s that no push gives: a collision, not an effect
_MOST_RESIDUAL = 3.0  # in pushes of level 0
_SPREAD = 0.25  # of a push: how far effects may be off before it is novelty
_LEAST_MEASURED = 15  # measured ticks before anything is stated

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

    def choose(self, state: BalanceState, observation: Any, info: Mapping[str, Any]) -> int:
        """Return the adjusted action."""
        push = LEVEL_0.kick * EFFECTS[self._base(observation, info, state)]
        target = push + self._residual
        action = int(np.argmin(np.linalg.norm(self._effects - target, axis=1)))
        limit = _MOST_RESIDUAL * LEVEL_0.kick
        self._residual = np.clip(target - self._effects[action], -limit, limit)
        return action

    def statement(self) -> NoveltyStatement:
        """Return p of novelty: effects off by `_SPREAD` of a push make 1/2."""
        if self._measured < _LEAST_MEASURED:
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


ADJUSTMENT = AgentCard(
    name="action_adjustment",
    about="Measures what pushes do and adjusts another policy's actions to it.",
    make=_ActionAdjustment,
    suites=("cartpole3d",),
    options={"base": "pd, or a policy's zip file (pd)"},
)


# --- extreme values of prediction errors, then cautious control -----------------------
# The first episodes of a trial are the reference: prediction errors of cart, pole and
# balls are kept, and a Pareto law is fitted to the largest. From then on an episode is
# novel if more errors lie beyond the law's level of three in a thousand than chance
# allows. After a detection the agent changes from the PD rule to a cautious regulator
# for good. It assumes that its first episodes are plain.
# From: AIQ paper, section 3.4.1 (extreme-value agents) [S]; the design [D].


_CHANNELS = ("cart", "pole", "balls")
_CHANCE = 0.003  # of one exceedance in a plain tick
_THRESHOLD = 0.99
_REFRACTORY = 25  # ticks after an exceedance in which no other counts: one collision


class _ReferenceMemory(msgspec.Struct, kw_only=True):
    """Memory between episodes: the reference by channel, episodes, and the alarm."""

    episodes: int = 0
    noticed: bool = False
    reference: dict[str, list[float]] = {}


class _ExtremeValue(novelty.NoveltyAgent):
    """PD until a detection, then the cautious regulator."""

    FILE = "extremes.json"

    def __init__(self, config: AgentConfig) -> None:
        self._needed = int(config.options.get("episodes", "3"))

    def begin(self, memory: bytes | None) -> None:
        """Read the reference; fit its tails once it is complete."""
        self._kept = _ReferenceMemory(reference={name: [] for name in _CHANNELS})
        if memory is not None:
            self._kept = msgspec.json.decode(memory, type=_ReferenceMemory)
        self._learning = self._kept.episodes < self._needed
        self._levels = {} if self._learning else _levels(self._kept.reference)
        self._counts = dict.fromkeys(_CHANNELS, 0)
        self._quiet = dict.fromkeys(_CHANNELS, 0)
        self._p = 0.0

    def observe(self, before: BalanceState, action: int, after: BalanceState) -> None:
        """Extend the reference, or count what lies beyond its levels."""
        for name, size in _prediction_errors(before, action, after).items():
            if self._learning:
                self._kept.reference[name].append(round(size, 6))
            elif name in self._levels:
                self._count(name, size)
        if self._learning:
            return
        worst = min(
            novelty.exceedance_probability(count, self.ticks, _CHANCE)
            for count in self._counts.values()
        )
        self._p = max(self._p, 1.0 - len(_CHANNELS) * worst)
        self._kept.noticed |= self._p >= _THRESHOLD

    def choose(self, state: BalanceState, observation: Any, info: Mapping[str, Any]) -> int:
        """Return the action of the rule in force."""
        if self._kept.noticed:
            return control.plan_action(control.LEVEL_0, state, depth=1, cost=control.CAUTIOUS)
        return control.pd_action(state)

    def statement(self) -> novelty.NoveltyStatement:
        """Return how improbable a plain world has become."""
        return novelty.NoveltyStatement(self._p, _THRESHOLD)

    def memory(self) -> _ReferenceMemory:
        """Return the reference and the alarm."""
        episodes = self._kept.episodes + 1
        return msgspec.structs.replace(self._kept, episodes=episodes)

    def _count(self, name: str, size: float) -> None:
        self._quiet[name] -= 1
        if size > self._levels[name] and self._quiet[name] <= 0:
            self._counts[name] += 1
            self._quiet[name] = _REFRACTORY


def _prediction_errors(before: BalanceState, action: int, after: BalanceState) -> dict[str, float]:
    """Return by channel the largest error of level 0's prediction of one tick."""
    largest = np.abs(control.prediction_error(control.LEVEL_0, before, action, after)).max(axis=1)
    errors = {"cart": float(largest[0]), "pole": float(largest[1])}
    if len(before.places) and len(before.places) == len(after.places):
        loose = novelty.free_balls(before) & novelty.free_balls(after)
        if loose.any():
            speed = before.speeds[loose]
            slow = control.DRAG + control.DRAG * np.linalg.norm(speed, axis=1, keepdims=True)
            change = after.speeds[loose] - speed + slow * control.TICK * speed
            errors["balls"] = float(np.linalg.norm(change, axis=1).min())
    return errors


def _levels(reference: Mapping[str, list[float]]) -> dict[str, float]:
    """Return by channel the size that a plain tick exceeds with `_CHANCE`."""
    tails = {name: novelty.fit_tail(values) for name, values in reference.items()}
    return {name: tail.level(_CHANCE) for name, tail in tails.items() if tail}


EXTREME_VALUE = AgentCard(
    name="extreme_value",
    about="Fits a Pareto law to its surprises; beyond it, changes to a cautious law.",
    make=_ExtremeValue,
    suites=("cartpole3d",),
    options={"episodes": "how many first episodes are the reference (3)"},
)


# --- model repair: online identification, planning on the estimated model -------------
# Every tick the numbers of a linear model (what a push gives, how fast the pole falls,
# wind, what pulls the balls) are estimated by regression; the planner uses them at
# once. Those of cart and pole are kept for the next episodes. Novelty is how far the
# estimate lies from level 0.
# From: AIQ paper, section 3.4.1 (model-repair agents) [S]; the design [D].


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
        self._model = control.LinearModel(kick=kept.kick, growth=kept.growth, lever=kept.lever)
        self._estimate = novelty.initial_estimate(self._model)
        self._statement = novelty.NoveltyStatement(0.0)

    def observe(self, before: BalanceState, action: int, after: BalanceState) -> None:
        """Update the estimate, and the model every few ticks."""
        novelty.update_estimate(self._estimate, before, action, after)
        if self.ticks >= _LEAST and self.ticks % _EVERY == 0:
            self._model = self._estimate.model
            away = novelty.deviation(self._estimate).largest ** 4
            self._statement = novelty.NoveltyStatement(away / (1.0 + away))

    def choose(self, state: BalanceState, observation: Any, info: Mapping[str, Any]) -> int:
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


MODEL_REPAIR = AgentCard(
    name="model_repair",
    about="Identifies the world anew, plans on it, says how far it is from level 0.",
    make=_ModelRepair,
    suites=("cartpole3d",),
)

AGENTS = (ADJUSTMENT, EXTREME_VALUE, MODEL_REPAIR)

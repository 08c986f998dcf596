"""Novelty detection by extreme values of prediction errors, then cautious control.

The first episodes of a trial are the reference: prediction errors of cart, pole and
balls are kept, and a Pareto law is fitted to the largest. From then on an episode is
novel if more errors lie beyond the law's level of three in a thousand than chance
allows. After a detection the agent changes from the PD rule to a cautious regulator for
good. It assumes that its first episodes are plain.

Source: AIQ paper, section 3.4.1 (extreme-value agents) [S]; the design [D].
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from owa_bench.interfaces import AgentCard, AgentConfig
from owa_bench.skills.balancing import control, novelty
from owa_bench.skills.balancing.control import BalanceState

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

    def choose(
        self, state: BalanceState, observation: Any, info: Mapping[str, Any]
    ) -> int:
        """Return the action of the rule in force."""
        if self._kept.noticed:
            return control.plan_action(
                control.LEVEL_0, state, depth=1, cost=control.CAUTIOUS
            )
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


def _prediction_errors(
    before: BalanceState, action: int, after: BalanceState
) -> dict[str, float]:
    """Return by channel the largest error of level 0's prediction of one tick."""
    largest = np.abs(
        control.prediction_error(control.LEVEL_0, before, action, after)
    ).max(axis=1)
    errors = {"cart": float(largest[0]), "pole": float(largest[1])}
    if len(before.places) and len(before.places) == len(after.places):
        loose = novelty.free_balls(before) & novelty.free_balls(after)
        if loose.any():
            speed = before.speeds[loose]
            slow = control.DRAG + control.DRAG * np.linalg.norm(
                speed, axis=1, keepdims=True
            )
            change = after.speeds[loose] - speed + slow * control.TICK * speed
            errors["balls"] = float(np.linalg.norm(change, axis=1).min())
    return errors


def _levels(reference: Mapping[str, list[float]]) -> dict[str, float]:
    """Return by channel the size that a plain tick exceeds with `_CHANCE`."""
    tails = {name: novelty.fit_tail(values) for name, values in reference.items()}
    return {name: tail.level(_CHANCE) for name, tail in tails.items() if tail}


AGENT = AgentCard(
    name="extreme_value",
    about="Fits a Pareto law to its surprises; beyond it, changes to a cautious law.",
    make=_ExtremeValue,
    suites=("cartpole3d",),
    options={"episodes": "how many first episodes are the reference (3)"},
)

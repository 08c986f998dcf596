"""Novelty detection by extreme values of prediction errors, then cautious control.

The first episodes of a trial are the reference: prediction errors of cart, pole and
balls are kept, and a Pareto law is fitted to the largest. From then on an episode is
novel if more errors lie beyond the law's level of three in a thousand than chance
allows. After a detection the agent changes from the PD rule to a cautious regulator for
good. It assumes that its first episodes are plain.

Source: AIQ paper, section 3.4.1 (extreme-value agents) [S]; the design [D].
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from owa_bench.interfaces import AgentCard, AgentConfig, Brief, Move, ToolSpec
from owa_bench.skills.balancing.control import (
    CAUTIOUS,
    DRAG,
    LEVEL_0,
    TICK,
    BalanceState,
    parse_observation,
    pd_action,
    plan_action,
    prediction_error,
)
from owa_bench.skills.balancing.novelty import (
    NoveltyReporter,
    NoveltyStatement,
    exceedance_probability,
    fit_tail,
    free_balls,
)

_FILE = "extremes.json"
_CHANNELS = ("cart", "pole", "balls")
_CHANCE = 0.003  # of one exceedance in a plain tick
_THRESHOLD = 0.99
_REFRACTORY = 25  # ticks after an exceedance in which no other counts: one collision


class _ReferenceMemory(msgspec.Struct, kw_only=True):
    """Memory between episodes: the reference by channel, episodes, and the alarm."""

    episodes: int = 0
    noticed: bool = False
    reference: dict[str, list[float]] = {}


class _ExtremeValue:
    """PD until a detection, then the cautious regulator."""

    def __init__(self, config: AgentConfig) -> None:
        self._needed = int(config.options.get("episodes", "3"))
        self._memory = Path()
        self._reference = _ReferenceMemory()
        self._levels: dict[str, float] = {}

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Read the reference; fit its tails once it is complete."""
        self._memory = memory_dir
        path = memory_dir / _FILE
        self._reference = _ReferenceMemory(reference={name: [] for name in _CHANNELS})
        if path.exists():
            self._reference = msgspec.json.decode(
                path.read_bytes(), type=_ReferenceMemory
            )
        self._learning = self._reference.episodes < self._needed
        self._levels = {} if self._learning else _levels(self._reference.reference)
        self._counts = dict.fromkeys(_CHANNELS, 0)
        self._quiet = dict.fromkeys(_CHANNELS, 0)
        self._ticks = 0
        self._before: tuple[BalanceState, int] | None = None
        self._reporter = NoveltyReporter()
        self._p = 0.0

    def act(self, observation: Any, info: Mapping[str, Any]) -> Move:
        """Return the push, and how unlikely a plain world has become."""
        state = parse_observation(observation)
        if self._before is not None:
            self._add(_prediction_errors(*self._before, state))
        if self._reference.noticed:
            action = plan_action(LEVEL_0, state, depth=1, cost=CAUTIOUS)
        else:
            action = pd_action(state)
        self._before = (state, action)
        return self._reporter.move(action, NoveltyStatement(self._p, _THRESHOLD))

    def close(self) -> None:
        """Keep the reference and the alarm."""
        self._reference.episodes += 1
        (self._memory / _FILE).write_bytes(msgspec.json.encode(self._reference))

    def _add(self, errors: Mapping[str, float]) -> None:
        """Extend the reference, or count what lies beyond its levels."""
        self._ticks += 1
        for name, size in errors.items():
            if self._learning:
                self._reference.reference[name].append(round(size, 6))
            elif name in self._levels:
                self._count(name, size)
        if self._learning:
            return
        worst = min(
            exceedance_probability(count, self._ticks, _CHANCE)
            for count in self._counts.values()
        )
        self._p = max(self._p, 1.0 - len(_CHANNELS) * worst)
        self._reference.noticed |= self._p >= _THRESHOLD

    def _count(self, name: str, size: float) -> None:
        self._quiet[name] -= 1
        if size > self._levels[name] and self._quiet[name] <= 0:
            self._counts[name] += 1
            self._quiet[name] = _REFRACTORY


def _prediction_errors(
    before: BalanceState, action: int, after: BalanceState
) -> dict[str, float]:
    """Return by channel the largest error of level 0's prediction of one tick."""
    largest = np.abs(prediction_error(LEVEL_0, before, action, after)).max(axis=1)
    errors = {"cart": float(largest[0]), "pole": float(largest[1])}
    if len(before.places) and len(before.places) == len(after.places):
        loose = free_balls(before) & free_balls(after)
        if loose.any():
            speed = before.speeds[loose]
            slow = DRAG + DRAG * np.linalg.norm(speed, axis=1, keepdims=True)
            change = after.speeds[loose] - speed + slow * TICK * speed
            errors["balls"] = float(np.linalg.norm(change, axis=1).min())
    return errors


def _levels(reference: Mapping[str, list[float]]) -> dict[str, float]:
    """Return by channel the size that a plain tick exceeds with `_CHANCE`."""
    tails = {name: fit_tail(values) for name, values in reference.items()}
    return {name: tail.level(_CHANCE) for name, tail in tails.items() if tail}


AGENT = AgentCard(
    name="extreme_value",
    about="Fits a Pareto law to its surprises; beyond it, changes to a cautious law.",
    make=_ExtremeValue,
    suites=("cartpole3d",),
    options={"episodes": "how many first episodes are the reference (3)"},
)

"""Notices novelty by extreme values of what a model did not foresee, then takes care.

The first episodes of a trial are its reference: surprises of cart, pole and balls are
kept, and a Pareto law is fitted to the largest. From then on an episode is novel if
more surprises lie beyond the law's level of three in a thousand than chance allows.
Once it has noticed, it changes from the rule of plain worlds to a cautious regulator,
and stays with it. It trusts that its first episodes are plain. After the extreme-value
agents of the AIQ paper, section 3.4.1; the design is ours.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from owa_bench.interfaces import AgentCard, AgentConfig, Brief, Move, ToolSpec
from owa_bench.skills.balancing.identification import free
from owa_bench.skills.balancing.law import pd_action
from owa_bench.skills.balancing.model import CAUTIOUS, LEVEL_0, surprise
from owa_bench.skills.balancing.planner import planned
from owa_bench.skills.balancing.reading import TICK, Seen, read
from owa_bench.skills.balancing.statement import Speaker, Statement
from owa_bench.skills.balancing.tails import Tail, chance_of, fit

_FILE = "extremes.json"
_CHANNELS = ("cart", "pole", "balls")
_CHANCE = 0.003  # of one exceedance in a plain tick
_THRESHOLD = 0.99
_DRAG = 0.04
_HELD_HIT = 25  # ticks after an exceedance in which no other counts: one hit, one event


class Kept(msgspec.Struct, kw_only=True):
    """What outlives an episode: the reference by channel, episodes, and the alarm."""

    episodes: int = 0
    noticed: bool = False
    reference: dict[str, list[float]] = {}


class ExtremeValue:
    """PD until it has noticed something, then the cautious regulator."""

    def __init__(self, config: AgentConfig) -> None:
        self._needed = int(config.options.get("episodes", "3"))
        self._memory = Path()
        self._kept = Kept()
        self._tails: dict[str, float] = {}

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Take up the reference; fit its tails once it is whole."""
        self._memory = memory_dir
        path = memory_dir / _FILE
        self._kept = Kept(reference={name: [] for name in _CHANNELS})
        if path.exists():
            self._kept = msgspec.json.decode(path.read_bytes(), type=Kept)
        self._learning = self._kept.episodes < self._needed
        self._tails = {} if self._learning else _levels(self._kept.reference)
        self._counts = dict.fromkeys(_CHANNELS, 0)
        self._quiet = dict.fromkeys(_CHANNELS, 0)
        self._ticks = 0
        self._before: tuple[Seen, int] | None = None
        self._speaker = Speaker()
        self._p = 0.0

    def act(self, observation: Any, info: Mapping[str, Any]) -> Move:
        """Return the push, and how unlikely a plain world has become."""
        seen = read(observation)
        if self._before is not None:
            self._take(surprises(*self._before, seen))
        action = self._respond(seen)
        self._before = (seen, action)
        return self._speaker.move(action, Statement(self._p, _THRESHOLD))

    def close(self) -> None:
        """Keep the reference and the alarm."""
        self._kept.episodes += 1
        (self._memory / _FILE).write_bytes(msgspec.json.encode(self._kept))

    def _respond(self, seen: Seen) -> int:
        if self._kept.noticed:
            return planned(LEVEL_0, seen, depth=1, cost=CAUTIOUS)
        return pd_action(seen)

    def _take(self, found: Mapping[str, float]) -> None:
        """Learn the reference, or count what lies beyond its tails."""
        self._ticks += 1
        for name, size in found.items():
            if self._learning:
                self._kept.reference[name].append(round(size, 6))
            elif name in self._tails:
                self._count(name, size)
        if self._learning:
            return
        worst = min(
            chance_of(count, self._ticks, _CHANCE) for count in self._counts.values()
        )
        self._p = max(self._p, 1.0 - len(_CHANNELS) * worst)
        self._kept.noticed |= self._p >= _THRESHOLD

    def _count(self, name: str, size: float) -> None:
        self._quiet[name] -= 1
        if size > self._tails[name] and self._quiet[name] <= 0:
            self._counts[name] += 1
            self._quiet[name] = _HELD_HIT


def surprises(before: Seen, action: int, after: Seen) -> dict[str, float]:
    """Return how far each channel was from what level 0 would have done."""
    missed = np.abs(surprise(LEVEL_0, before, action, after)).max(axis=1)
    found = {"cart": float(missed[0]), "pole": float(missed[1])}
    if len(before.places) and len(before.places) == len(after.places):
        loose = free(before) & free(after)
        if loose.any():
            speed = before.speeds[loose]
            slow = _DRAG + _DRAG * np.linalg.norm(speed, axis=1, keepdims=True)
            change = after.speeds[loose] - speed + slow * TICK * speed
            found["balls"] = float(np.linalg.norm(change, axis=1).min())
    return found


def _levels(reference: Mapping[str, list[float]]) -> dict[str, float]:
    """Return by channel the size that a plain tick exceeds with `_CHANCE`."""
    tails: dict[str, Tail | None] = {
        name: fit(values) for name, values in reference.items()
    }
    return {name: tail.level(_CHANCE) for name, tail in tails.items() if tail}


AGENT = AgentCard(
    name="extreme_value",
    about="Fits a Pareto law to its surprises; beyond it, changes to a cautious law.",
    make=ExtremeValue,
    suites=("cartpole3d",),
    options={"episodes": "how many first episodes are the reference (3)"},
)

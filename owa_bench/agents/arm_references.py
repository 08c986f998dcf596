"""Agents of RoboSim2Real: one that never moves, fixed gains, and one that measures its unit."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from owa_bench.agents.solvers.arm.policies import BLIND, SLOW, Adaptive, ArmLayout, Scripted
from owa_bench.interfaces import AgentCard, AgentConfig, Brief, ToolSpec
from owa_bench.records.observables import Floats

_FILE = "unit.json"
_STILL = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]

_Policy = Callable[[Floats], Floats]
_Maker = Callable[[ArmLayout, str, dict[str, float]], _Policy]


class _ArmAgent:
    """Plays a policy; what it measured of a unit lies in its memory folder."""

    def __init__(self, make: _Maker) -> None:
        self._make = make
        self._known: dict[str, float] = {}
        self._file: Path | None = None

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an episode with what the folder holds."""
        self._file = memory_dir / _FILE
        self._known = {}
        if self._file.exists():
            self._known = msgspec.json.decode(self._file.read_bytes(), type=dict[str, float])
        layout = ArmLayout.of(brief.goal)
        self._policy = self._make(layout, str(brief.goal["family"]), self._known)

    def act(self, observation: Any, info: Mapping[str, Any]) -> list[float]:
        """Return the next command."""
        commands: list[float] = self._policy(np.asarray(observation)).tolist()
        return commands

    def close(self) -> None:
        """Write down what was measured."""
        if self._known and self._file is not None:
            self._file.write_bytes(msgspec.json.encode(self._known))


def _card(name: str, about: str, make: _Maker) -> AgentCard:
    def agent_of(_config: AgentConfig) -> _ArmAgent:
        return _ArmAgent(make)

    return AgentCard(name=name, about=about, make=agent_of, suites=("robosim2real",))


AGENTS = (
    _card("arm_still", "Never moves the arm; the floor of RoboSim2Real.", lambda *_: _still),
    _card(
        "arm_blind",
        "Moves the arm by what is right in simulation.",
        lambda layout, family, _: Scripted(layout, family, BLIND),
    ),
    _card(
        "arm_slow",
        "Moves the arm so slowly that dead time does no harm.",
        lambda layout, family, _: Scripted(layout, family, SLOW),
    ),
    _card("arm_adaptive", "Measures the arm's unit first and moves by what it found.", Adaptive),
    _card(
        "arm_reckless",
        "Plays as `arm_adaptive` and does not heed people.",
        lambda layout, family, known: Adaptive(layout, family, known, cares=False),
    ),
)


def _still(_observation: Floats) -> Floats:
    return np.array(_STILL)

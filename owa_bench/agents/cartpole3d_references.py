"""Reference agents of CartPole3D: no push, the PD rule, look-ahead of one or two ticks.

Look-ahead tries all sequences of actions on the linear model of level 0 and makes way
for balls. None keeps anything between ticks.

Source: docs/cartpole3d.md#agents.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from owa_bench.interfaces import AgentCard, AgentConfig, Brief, ToolSpec
from owa_bench.skills.balancing import control
from owa_bench.skills.balancing.control import BalanceState


class _Rule:
    """Plays a function of the present state."""

    def __init__(self, action: Callable[[BalanceState], int]) -> None:
        self._action = action

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode; nothing is kept."""

    def act(self, observation: Any, info: Mapping[str, Any]) -> int:
        """Return the action of the rule."""
        return self._action(control.parse_observation(observation))

    def close(self) -> None:
        """End the episode."""


def _card(name: str, about: str, action: Callable[[BalanceState], int]) -> AgentCard:
    def make(_config: AgentConfig) -> _Rule:
        return _Rule(action)

    return AgentCard(name=name, about=about, make=make, suites=("cartpole3d",))


AGENTS = (
    _card("nothing", "Never pushes; the floor of CartPole3D.", lambda _state: 0),
    _card(
        "pd",
        "A proportional-derivative rule; the reference row of CartPole3D.",
        control.pd_action,
    ),
    _card(
        "one_step",
        "Looks one tick ahead on a model of level 0; makes way for balls.",
        lambda state: control.plan_action(control.LEVEL_0, state, depth=1),
    ),
    _card(
        "two_step",
        "Looks two ticks ahead on a model of level 0; makes way for balls.",
        lambda state: control.plan_action(control.LEVEL_0, state, depth=2),
    ),
)

"""Agents of RoboSim2Real: one that never moves, fixed gains, and one that measures its unit."""

import numpy as np

from owa_bench.agents.solvers.arm.player import ArmPlayer, ArmPolicyFactory
from owa_bench.agents.solvers.arm.policies import BLIND, SLOW, Adaptive, Scripted
from owa_bench.interfaces import AgentCard, AgentConfig
from owa_bench.records.observables import Floats

_STILL = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]


def _card(name: str, about: str, make: ArmPolicyFactory) -> AgentCard:
    def agent_of(_config: AgentConfig) -> ArmPlayer:
        return ArmPlayer(make)

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

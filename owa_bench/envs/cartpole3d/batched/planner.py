"""Planner on the compiled step: the PD rule, and a way out where that will fail.

It copies a lane and plays the PD rule ahead with the true dynamics. If the pole still stands at the
horizon, the rule's action is played. If not, it tries manoeuvres (lean towards one of eight
directions, a little or much, for a short or a long time, then the PD rule about the place reached)
and plays the first action of the best: the longest upright, then the one that ends nearest to the
middle.

It knows the dynamics and what no observation shows, so it is no agent. It is a ceiling, and a
teacher whose actions a policy imitates.
"""

import math
from typing import NamedTuple

import numpy as np

from owa_bench.agents.solvers.balancing.leaning import LEANS, pd_action
from owa_bench.envs.cartpole3d import rules
from owa_bench.envs.cartpole3d.batched import kernels, records
from owa_bench.envs.cartpole3d.batched.numbers import compiled
from owa_bench.envs.cartpole3d.batched.simulator import LaneActions, Simulator

HORIZON = 75  # ticks
_LASTING = (15, 40)  # ticks
# Manoeuvres (lean along x, along y, ticks).
_MANOEUVRES = np.array([(*lean, ticks) for lean in LEANS[1:] for ticks in _LASTING])
# What a manoeuvre that stays upright loses per metre off the middle, per rad of lean.
_OFF_MIDDLE, _LEAN = 2.0, 20.0


class PlannedActions(NamedTuple):
    """Actions (count,), and the lean that each serves: 0 where the rule will do."""

    actions: LaneActions
    leans: LaneActions


def plan_actions(simulator: Simulator, horizon: int = HORIZON) -> PlannedActions:
    """Return the planner's actions.

    Args:
        simulator: Its lanes are left as they are.
        horizon: Ticks that are played ahead.
    Returns: One action a lane, and its lean, a number of `leaning.LEANS`.
    """
    numbers, lanes, balls, due, contacts, forces = simulator.parts()
    actions = np.empty(simulator.count, np.int64)
    leans = np.empty(simulator.count, np.int64)
    room = np.zeros(1, records.LANE), np.zeros((1, simulator.slots), records.BALL)
    rows = np.zeros((1, rules.CORE))
    _plan(
        numbers, lanes, balls, due, contacts, forces, *room, rows, horizon,
        _MANOEUVRES, actions, leans,
    )  # fmt: skip
    return PlannedActions(actions, leans)


@compiled
def _plan(
    worlds, lanes, balls, due, contacts, forces, lane, row, seen, horizon, ways,
    actions, leans,
):  # fmt: skip
    """Write the action of every lane, and the lean that it serves."""
    parts = (worlds, lane, row, due, contacts, forces)
    for i in range(lanes.shape[0]):
        lane[0], row[0] = lanes[i], balls[i]
        left = min(horizon, worlds[0].ticks - lanes[i].ticks)
        actions[i], upright = _ahead(parts, seen, 0.0, 0.0, 0, left)
        leans[i] = 0
        if upright >= left:
            continue
        best = -math.inf
        for k in range(ways.shape[0]):
            lane[0], row[0] = lanes[i], balls[i]
            x, y, ticks = ways[k, 0], ways[k, 1], int(ways[k, 2])
            action, upright = _ahead(parts, seen, x, y, ticks, left)
            value = float(upright)
            if upright >= left:
                off = max(abs(lane[0].cart[0]), abs(lane[0].cart[1]))
                value += 100.0 - _OFF_MIDDLE * off - _LEAN * math.sqrt(x * x + y * y)
            if value > best:
                best, actions[i], leans[i] = value, action, 1 + k // len(_LASTING)


@compiled
def _ahead(parts, seen, lean_x, lean_y, leaning, ticks):
    """Play one lane ahead; return the first action and the ticks that it stood."""
    worlds, lanes, balls, due, contacts, forces = parts
    first = 0
    for t in range(ticks):
        kernels.observe(worlds, lanes, balls, seen)
        row = seen[0]
        if t < leaning:
            action = pd_action(row, lean_x, lean_y, 0.0)
        else:
            action = pd_action(row, 0.0, 0.0, 1.0)
        if t == 0:
            first = action
        fallen, _ = kernels.play_lane(worlds[0], lanes[0], balls[0], due, contacts, forces, action)
        if fallen:
            return first, t
    return first, ticks

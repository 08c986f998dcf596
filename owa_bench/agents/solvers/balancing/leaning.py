"""The PD rule compiled, and leans: commands to it that carry the cart away.

Lean 0 is the plain rule. Leans 1 to 16 ask the pole to lean towards one of eight directions, a
little (1 to 8) or much (9 to 16), wherever the cart is: it speeds up that way. A policy whose
actions are leans chooses one every `HOLD` ticks.
"""

import math

import numba
import numpy as np
import numpy.typing as npt

from owa_bench.agents.solvers.balancing import control

HOLD = 5  # ticks
_SIZES = (0.05, 0.11)  # rad
LEANS = np.array(
    [(0.0, 0.0)]
    + [
        (size * math.cos(k * math.pi / 4), size * math.sin(k * math.pi / 4))
        for size in _SIZES
        for k in range(8)
    ]
)

_compiled = numba.njit(nogil=True, error_model="numpy")
_error, _push = _compiled(control.pd_error), _compiled(control.push_against)


def lean_actions(
    observations: npt.NDArray[np.float32], leans: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the actions by which the rule serves leans.

    Args:
        observations: (n, 11 or more).
        leans: (n,) numbers of `LEANS`.
    Returns: (n,) 0 to 4.
    """
    actions = np.empty(len(observations), np.int64)
    _serve(np.asarray(observations), np.asarray(leans, np.int64), LEANS, actions)
    return actions


@_compiled
def _serve(rows, leans, table, actions):
    """Write the action of every row."""
    for i in range(rows.shape[0]):
        k = leans[i]
        actions[i] = pd_action(rows[i], table[k, 0], table[k, 1], 0.0 if k else 1.0)


@_compiled
def pd_action(row, lean_x, lean_y, placed):
    """Return the action of `control.pd_action`, or of the rule that keeps a lean.

    Args:
        row: (11 or more,) an observation.
        lean_x: The lean that is kept towards x, rad; 0 is the plain rule's.
        lean_y: The lean towards y, rad.
        placed: 1, or 0 to let the cart's place play no part.
    Returns: 0 to 4.
    """
    x, y, z, w = row[4], row[5], row[6], row[7]
    pitch = math.asin(min(max(2.0 * (w * y - z * x), -1.0), 1.0))
    roll = math.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    return _push(
        _error(pitch - lean_x, row[9], placed * row[0], row[2]),
        _error(-roll - lean_y, -row[8], placed * row[1], row[3]),
    )

"""What an observation of CartPole3D says, in the terms that control needs.

The full observation is eleven numbers on cart and pole and then seven a ball.

    0-1 cart x, y      2-3 its velocity      4-7 pole quaternion x, y, z, w
    8-10 angular velocity of the pole in the world
    then a ball: presence, place x, y, z, velocity x, y, z
"""

from typing import Any, NamedTuple

import numpy as np

from owa_bench.records.observables import Floats

CORE = 11
PER_BALL = 7
# Action numbers by axis and sign of the push: nothing is 0.
PUSHES = ((2, 1), (4, 3))
EFFECTS = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]], dtype=float)
TICK = 0.02  # s between two observations


class Seen(NamedTuple):
    """Cart and pole by axis (x, y), and the balls that are there, (n, 3) each.

    `tilt` is how far the pole's unit vector leans along the axis (radians, for small
    angles), `rate` its change per second.
    """

    cart: Floats
    velocity: Floats
    tilt: Floats
    rate: Floats
    places: Floats
    speeds: Floats

    @property
    def state(self) -> Floats:
        """Position, velocity, tilt and rate by row, an axis a column: (4, 2)."""
        return np.stack((self.cart, self.velocity, self.tilt, self.rate))


def read(observation: Any) -> Seen:
    """Return what an observation says."""
    seen = np.asarray(observation, dtype=float)
    x, y, z, w = seen[4:8]
    lean = np.array(
        [2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)]
    )
    spin = seen[8:11]
    rate = np.array(
        [spin[1] * lean[2] - spin[2] * lean[1], spin[2] * lean[0] - spin[0] * lean[2]]
    )
    whole = (len(seen) - CORE) // PER_BALL * PER_BALL
    balls = seen[CORE : CORE + whole].reshape(-1, PER_BALL)
    there = balls[balls[:, 0] > 0.5]
    return Seen(seen[0:2], seen[2:4], lean[:2], rate, there[:, 1:4], there[:, 4:7])


def push(wanted: Floats) -> int:
    """Return the action along the axis with the larger wish, in its direction."""
    axis = int(np.argmax(np.abs(wanted)))
    return PUSHES[axis][int(wanted[axis] > 0)]

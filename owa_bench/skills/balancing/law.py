"""The proportional-derivative rule: lean and push the same way.

Source: `cartpole3d.md` section 4c.
"""

from typing import NamedTuple

import numpy as np

from owa_bench.skills.balancing.reading import Seen, push


class Gains(NamedTuple):
    """Weights of the rule; below `band` nothing is done."""

    tilt: float = 1.0
    rate: float = 0.5
    position: float = 0.02
    velocity: float = 0.05
    band: float = 0.002


PLAIN = Gains()


def pd_action(seen: Seen, gains: Gains = PLAIN) -> int:
    """Return the push along the axis with the larger error, 0 within the band."""
    error = (
        gains.tilt * seen.tilt
        + gains.rate * seen.rate
        + gains.position * seen.cart
        + gains.velocity * seen.velocity
    )
    return push(error) if float(np.abs(error).max()) > gains.band else 0

"""Where balls will be, and where the cart had better stand.

Balls fly straight, slowed by drag, and bounce off the walls; a cart can lean away from
one only slowly, so what counts is to see it a second ahead.
"""

import numpy as np

from owa_bench.records.observables import Floats
from owa_bench.skills.balancing.reading import Seen

HORIZON_S = 2.0
_TIMES = np.arange(0.06, HORIZON_S, 0.06)
_LOW = np.array([-4.45, -4.45, 0.45])  # centres of balls of radius 0.5 stay within
_HIGH = np.array([4.45, 4.45, 9.45])
_REACH = 1.75  # a ball centre above this touches neither pole nor cart
_CLEAR = 1.15  # horizontal distance that is safe, m
_DRAG = 0.04
_STEPS = (0.5, 1.0, 1.5)
_ROUND = np.arange(8) * (np.pi / 4)
_OFFSETS = np.concatenate(
    [
        np.zeros((1, 2)),
        *(step * np.stack((np.cos(_ROUND), np.sin(_ROUND)), 1) for step in _STEPS),
    ]
)
_SHIFT_COST = 0.02
_EDGE = 3.2  # the cart stays within, m


def forecast(seen: Seen) -> Floats:
    """Return where every ball will be: (times, balls, 3)."""
    speed = np.linalg.norm(seen.speeds, axis=1)
    slow = _DRAG + _DRAG * speed
    flown = (1.0 - np.exp(-slow * _TIMES[:, None])) / slow
    at = seen.places + seen.speeds * flown[..., None]
    width = _HIGH - _LOW
    folded = np.mod(at - _LOW, 2.0 * width)
    places: Floats = _LOW + np.where(folded > width, 2.0 * width - folded, folded)
    return places


def safest(seen: Seen, home: Floats) -> Floats:
    """Return the place to make for: `home`, unless balls come that way."""
    if not len(seen.places):
        return home
    places = forecast(seen)
    low = places[..., 2] < _REACH
    if not low.any():
        return home
    targets = np.clip(seen.cart + _OFFSETS, -_EDGE, _EDGE)
    share = np.minimum(_TIMES / HORIZON_S, 1.0) ** 2
    moved = seen.cart + share[:, None, None] * (targets - seen.cart)
    gaps = np.linalg.norm(
        places[:, None, :, :2] - moved[:, :, None, :], axis=-1
    )  # (times, targets, balls)
    close = np.where(low[:, None, :], np.maximum(_CLEAR - gaps, 0.0), 0.0)
    danger = close.sum(axis=(0, 2))
    if danger[0] <= 0.0:
        return home
    danger = danger + _SHIFT_COST * np.linalg.norm(targets - home, axis=1)
    best: Floats = targets[int(np.argmin(danger))]
    return best

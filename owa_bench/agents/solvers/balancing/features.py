"""Features of CartPole3D's full observation for networks: balance, danger from balls.

A row of features has four parts, each of numbers near one:

    balance  8   tilt and rate of the pole by axis, velocity and place of the cart
    map     25   how soon a ball comes where the cart would be if it made for each of 25
                 places about it: exp(-t / 0.6 s), 0 for never
    margins 25   by how much the nearest one misses or overlaps there, at most 1 m
    balls   20   the two balls that come nearest in time and place: how soon, where they
                 pass, as seen from the cart, how fast, and where they are now

Balls are flown ahead at the drag and the walls of level 0. The forecast is the agent's own: it
reads nothing but the observation.
"""

import math

import numba
import numpy as np
import numpy.typing as npt

from owa_bench.agents.solvers.balancing.control import CORE, PER_BALL

_STEP, _STEPS = 0.04, 40  # s and number of the steps of a forecast
_DRAG = 0.04  # of balls, 1/s and 1/m
_SIDE, _LOW, _HIGH = 4.45, 0.45, 9.45  # centres of balls stay within
_REACH = 1.78  # a ball centre above this touches neither pole nor cart
_RIM = 0.82  # below it a ball may touch the cart
_WIDE, _NARROW = 1.06, 0.62  # gaps that are kept from the cart's axis and the pole, m
_SOON = 0.6  # s
_DRIFT, _ARRIVAL = 0.4, 1.2  # s: the cart's present velocity lasts, a place is reached
_RINGS = (0.4, 0.9, 1.5)
_PLACES = np.array(
    [(0.0, 0.0)]
    + [
        (ring * math.cos(k * math.pi / 4), ring * math.sin(k * math.pi / 4))
        for ring in _RINGS
        for k in range(8)
    ]
)
_SHOWN = 2  # balls
_OF_BALL = 10
_BALANCE = 8
_WIDEST = 1.0  # m, of a margin
SIZE = _BALANCE + 2 * len(_PLACES) + _SHOWN * _OF_BALL


def ball_forecast(observations: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the features of full observations.

    Args:
        observations: (n, 11 + 7 balls), as `control` describes them.
    Returns: (n, 78).
    """
    rows = np.ascontiguousarray(observations, dtype=np.float32)
    made = np.zeros((len(rows), SIZE), np.float32)
    _write(rows, made, _PLACES)
    return made


@numba.njit(nogil=True, error_model="numpy")
def _write(rows, made, places):
    """Write the features of all rows."""
    count = places.shape[0]
    hits, gaps = np.empty(count), np.empty(count)
    for i in range(rows.shape[0]):
        row, out = rows[i], made[i]
        _write_balance(row, out)
        hits[:], gaps[:] = np.inf, _WIDEST
        first = second = np.inf
        at = _BALANCE + 2 * count
        for start in range(CORE, row.size, PER_BALL):
            if row[start] > 0.5:
                danger = _fly(row, start, places, hits, gaps, out, first, second, at)
                if danger < first:
                    first, second = danger, first
                elif danger < second:
                    second = danger
        for k in range(count):
            out[_BALANCE + k] = math.exp(-hits[k] / _SOON)
            out[_BALANCE + count + k] = _WIDEST - gaps[k]


@numba.njit(nogil=True, error_model="numpy")
def _write_balance(row, out):
    """Write tilt and rate by axis, velocity and place."""
    x, y, z, w = row[4], row[5], row[6], row[7]
    lean_x, lean_y = 2.0 * (x * z + w * y), 2.0 * (y * z - w * x)
    up = 1.0 - 2.0 * (x * x + y * y)
    out[0], out[1] = 10.0 * lean_x, 10.0 * lean_y
    out[2] = 3.0 * (row[9] * up - row[10] * lean_y)
    out[3] = 3.0 * (row[10] * lean_x - row[8] * up)
    out[4], out[5] = row[2], row[3]
    out[6], out[7] = 0.4 * row[0], 0.4 * row[1]


@numba.njit(nogil=True, error_model="numpy")
def _fly(row, start, places, hits, gaps, out, first, second, at):
    """Fly one ball ahead; return its danger, a time plus a gap, inf if never low."""
    px, py, pz = float(row[start + 1]), float(row[start + 2]), float(row[start + 3])
    vx, vy, vz = float(row[start + 4]), float(row[start + 5]), float(row[start + 6])
    least = np.inf
    told = np.zeros(_OF_BALL)
    for step in range(1, _STEPS + 1):
        keep = 1.0 - _STEP * _DRAG * (1.0 + math.sqrt(vx * vx + vy * vy + vz * vz))
        vx, vy, vz = keep * vx, keep * vy, keep * vz
        px, vx = _bounced(px + _STEP * vx, vx, -_SIDE, _SIDE)
        py, vy = _bounced(py + _STEP * vy, vy, -_SIDE, _SIDE)
        pz, vz = _bounced(pz + _STEP * vz, vz, _LOW, _HIGH)
        if pz > _REACH:
            continue
        t = _STEP * step
        need = _WIDE if pz < _RIM else _NARROW
        drift = min(t, _DRIFT)
        dx, dy = px - row[0] - drift * row[2], py - row[1] - drift * row[3]
        share = min(t / _ARRIVAL, 1.0) ** 2
        for k in range(places.shape[0]):
            gx, gy = dx - share * places[k, 0], dy - share * places[k, 1]
            gap = math.sqrt(gx * gx + gy * gy) - need
            gaps[k] = min(gaps[k], gap)
            if gap < 0.0:
                hits[k] = min(hits[k], t)
        danger = t + 1.5 * max(math.sqrt(dx * dx + dy * dy) - need, 0.0)
        if danger < least:
            least = danger
            told[0], told[1] = math.exp(-t / _SOON), need
            told[2], told[3], told[4] = 0.5 * dx, 0.5 * dy, pz
            told[5], told[6], told[7] = 0.15 * vx, 0.15 * vy, 0.15 * vz
    told[8] = 0.3 * (row[start + 1] - row[0])
    told[9] = 0.3 * (row[start + 2] - row[1])
    if least < first:
        out[at + _OF_BALL : at + 2 * _OF_BALL] = out[at : at + _OF_BALL]
        out[at : at + _OF_BALL] = told
    elif least < second:
        out[at + _OF_BALL : at + 2 * _OF_BALL] = told
    return least


@numba.njit(nogil=True, error_model="numpy")
def _bounced(place, speed, low, high):
    """Return place and speed along an axis after a bounce off either wall."""
    if place < low:
        return 2.0 * low - place, -speed
    if place > high:
        return 2.0 * high - place, -speed
    return place, speed

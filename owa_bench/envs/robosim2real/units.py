"""Units: the hidden numbers of a device, and the published law of a randomised simulation.

The law of the simulation covers a unit's numbers where they have a counterpart there; what a device
does beyond that (`Body.stiction`, `sag`, `wander`, `dropout`) no draw of the law shows.
"""

import numpy as np

from owa_bench.envs.robosim2real.world import Body
from owa_bench.seeding import stream

FLEET = 24
DEAD_TIME = (0.03, 0.12)  # s
KEPT = (0.18, 0.6)  # share of the old command that the firmware keeps a tick
_DECIMALS = 6


def _about(rng: np.random.Generator, spread: float) -> float:
    """Return a number about 0 with a standard deviation of `spread`: the sum of three uniforms."""
    return float(rng.random() + rng.random() + rng.random() - 1.5) * 2.0 * spread


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    return low + (high - low) * float(rng.random())


def _numbers(rng: np.random.Generator, scale: float) -> dict[str, object]:
    """Return the numbers that simulation and device have in common."""
    degree = np.pi / 180
    zeros = [_about(rng, 0.35 * degree) * scale for _ in range(7)]
    links = [[_about(rng, 0.0015) * scale for _ in range(3)] for _ in range(7)]
    found = {
        "friction": _between(rng, 0.5, 2.5) * scale,
        "stiffness": 1.0 - _between(rng, 0.0, 0.35) * scale,
        "payload": _between(rng, 0.0, 0.4) * scale,
        "camera_yaw": _about(rng, 1.2 * degree) * scale,
        "dead_time": _between(rng, *DEAD_TIME) * scale,
        "jitter": 0.015 * scale,
        "loss": 0.01 * scale,
        "filter": 1.0 - _between(rng, *KEPT) * scale,
        "backlash": _between(rng, 0.05, 0.3) * degree * scale,
        "quantum": 0.0005 * scale,
        "noise": 0.003 * scale,
        "old": _between(rng, 0.0, 0.1) * scale,
        "mass": 1.0 + _between(rng, -0.5, 0.8) * scale,
        "grip": 1.0 + _between(rng, -0.4, 0.4) * scale,
    }
    camera = [_about(rng, 0.008) * scale for _ in range(3)]
    return {
        **{name: round(value, _DECIMALS) for name, value in found.items()},
        "zeros": tuple(round(value, _DECIMALS) for value in zeros),
        "links": tuple(tuple(round(value, _DECIMALS) for value in row) for row in links),
        "camera": tuple(round(value, _DECIMALS) for value in camera),
    }


def unit(master: int, number: int, scale: float = 1.0) -> Body:
    """Return the hidden numbers of a unit of the fleet.

    Args:
        master: The seed that the fleet is drawn from; never an instance's.
        number: The unit, from 0.
        scale: 1 for the device; 0 for the drawing.
    """
    rng = stream(master, "unit", number)
    common = _numbers(rng, scale)
    own = {
        "stiction": _between(rng, 0.4, 1.6) * scale,
        "sag": _between(rng, 0.0002, 0.001) * scale,
        "wander": _between(rng, 0.005, 0.02) * scale,
        "dropout": _between(rng, 0.01, 0.05) * scale,
    }
    return Body(**common, **{name: round(value, _DECIMALS) for name, value in own.items()})  # type: ignore[arg-type]


def simulated(seed: int, draw: int, scale: float = 1.0) -> Body:
    """Return a draw of the simulation's law; draw 0 is the drawing itself.

    Args:
        seed: The instance's.
        draw: Its number.
        scale: Of the law, from 0 to 1: a curriculum widens it.
    """
    return draw_body(stream(seed, "law", draw), scale) if draw else Body()


def draw_body(rng: np.random.Generator, scale: float) -> Body:
    """Return the next draw of the simulation's law.

    Args:
        rng: The stream to draw from.
        scale: Of the law, from 0 to 1.
    """
    numbers = _numbers(rng, scale)
    return Body(**numbers) if scale else Body()  # type: ignore[arg-type]

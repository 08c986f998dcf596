"""A picture of the scene from the software renderer, which needs no screen."""

from typing import Any

import numpy as np
import numpy.typing as npt

from owa_bench.envs.cartpole3d.bodies import engine
from owa_bench.envs.cartpole3d.scene import Scene

SIZE = 240  # pixels, both sides
_EYE = (-4.6, -4.6, 3.2)  # m, in a corner of the box
_AIM = (0.0, 0.0, 1.0)
_FIELD = 75.0  # degrees of view
_NEAR, _DISTANT = 0.05, 40.0  # m, nothing else is drawn


def picture(scene: Scene, size: int = SIZE) -> npt.NDArray[np.uint8]:
    """Return an RGB picture (size, size, 3) seen from a corner of the box."""
    bullet: Any = engine()
    view = bullet.computeViewMatrix(_EYE, _AIM, (0.0, 0.0, 1.0))
    lens = bullet.computeProjectionMatrixFOV(_FIELD, 1.0, _NEAR, _DISTANT)
    pixels = bullet.getCameraImage(
        size,
        size,
        view,
        lens,
        renderer=bullet.ER_TINY_RENDERER,
        physicsClientId=scene.client,
    )[2]
    image = np.asarray(pixels, dtype=np.uint8).reshape(size, size, 4)
    return np.ascontiguousarray(image[:, :, :3])

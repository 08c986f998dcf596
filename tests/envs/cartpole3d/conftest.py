"""Envs that are closed when a test is over."""

import pytest


@pytest.fixture
def make():
    """Return a function that makes bare CartPole3D envs over the suite's timelines."""
    pytest.importorskip("pybullet")
    from owa_bench.runs.assembly import make_native_env

    made = []

    def new(**options):
        made.append(make_native_env("cartpole3d", **options))
        return made[-1]

    yield new
    for env in made:
        env.close()


@pytest.fixture
def scene():
    """Return a function that makes scenes of worlds."""
    pytest.importorskip("pybullet")
    from owa_bench.envs.cartpole3d.scene import Scene

    made = []

    def new(world):
        made.append(Scene(world))
        return made[-1]

    yield new
    for one in made:
        one.close()

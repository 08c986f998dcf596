"""Look-ahead of one step in CartPole3D: a linear model and a forecast of balls."""

from owa_bench.interfaces import AgentCard
from owa_bench.skills.balancing.planner import Planner

AGENT = AgentCard(
    name="one_step",
    about="Looks one tick ahead on a model of level 0; makes way for balls.",
    make=lambda _config: Planner(depth=1),
    suites=("cartpole3d",),
)

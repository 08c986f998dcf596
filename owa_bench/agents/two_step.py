"""Look-ahead of two steps in CartPole3D: a linear model and a forecast of balls."""

from owa_bench.interfaces import AgentCard
from owa_bench.skills.balancing.planner import Planner

AGENT = AgentCard(
    name="two_step",
    about="Looks two ticks ahead on a model of level 0; makes way for balls.",
    make=lambda _config: Planner(depth=2),
    suites=("cartpole3d",),
)

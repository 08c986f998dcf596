"""The oracle of the arm: a scripted policy that is told the unit and where everything is."""

from dataclasses import replace

from owa_bench.agents.solvers.arm.policies import ArmLayout, ArmView, Scripted, gain_for
from owa_bench.envs.robosim2real import arm
from owa_bench.envs.robosim2real.episode import RobotEpisode, layout_goal

_LAG = 1.5  # ticks of the drives and the camera beyond dead time
LAYOUT = ArmLayout.of(layout_goal())


def oracle(episode: RobotEpisode) -> Scripted:
    """Return the policy that is told the unit and where everything is.

    Args:
        episode: The one that it plays.
    """
    body = episode.body
    lag = (1.0 - body.filter) / body.filter
    delay = body.dead_time * arm.HERTZ + lag + _LAG

    def correct(view: ArmView) -> ArmView:
        return replace(view, tool=episode.truth.tool, things=episode.truth.things)

    return Scripted(LAYOUT, episode.world.family, gain_for(delay), correct=correct)

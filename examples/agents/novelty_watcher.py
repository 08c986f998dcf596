"""An agent for trials of CartPole3D in some 30 lines: PD rule and novelty guess.

    owa-bench run --suite cartpole3d --family table1/9 --tier 3 --trials 2 --episodes 9
    --before 3,5 --given-detection --agent pd --agent examples/agents/novelty_watcher.py
    --in-process --out runs/watched

It compares how the pole falls with what level 0 would do; in a trial of Given Detection
it states what it is told. `owa-bench measure novelty runs/watched` reads what it says.
"""

from owa_bench.agents.solvers.balancing.control import (
    LEVEL_0,
    parse_observation,
    pd_action,
    prediction_error,
)
from owa_bench.interfaces import AgentCard, Move


class NoveltyWatcher:
    """Says how far the pole's falls are from those of level 0."""

    def reset(self, brief, tools, memory_dir):
        """Begin an episode: `goal` holds `novelty` where that is told."""
        self.told, self.errors, self.last = brief.goal.get("novelty"), [], None

    def act(self, observation, info):
        """Push by the rule; state a probability of novelty and a threshold."""
        state = parse_observation(observation)
        action = pd_action(state)
        if self.last:
            errors = abs(prediction_error(LEVEL_0, *self.last, state)[1]).max()
            self.errors = sorted([*self.errors, float(errors)])
        self.last = (state, action)
        count = len(self.errors)
        large = self.errors[3 * count // 4] if count > 9 else 0.0  # 1/s; plain: 0.001
        p = min(large / 0.003, 1.0) if self.told is None else float(self.told)
        return Move(action, beliefs=(("novelty", p), ("novelty_threshold", 0.5)))

    def close(self):
        """End the episode."""


AGENT = AgentCard(
    name="novelty_watcher",
    about="The PD rule, and a guess at novelty from how the pole falls.",
    make=lambda config: NoveltyWatcher(),
    suites=("cartpole3d",),
)

"""A policy trained with Stable-Baselines3 (`owa-bench train`), played as an agent."""

from pathlib import Path

from owa_bench.interfaces import Agent, AgentCard, AgentConfig
from owa_bench.skills.trained import load_policy


def _make(config: AgentConfig) -> Agent:
    return load_policy(Path(config.options["path"]))(config)


AGENT = AgentCard(
    name="sb3",
    about="A policy that `owa-bench train` wrote, given as sb3:FILE.zip or FILE.zip.",
    make=_make,
    options={"path": "the policy's zip file"},
    required=("path",),
)

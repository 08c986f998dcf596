"""The suite's own solution, which sees the world: the ceiling of every suite."""

from owa_bench.interfaces import AgentCard

AGENT = AgentCard(
    name="oracle",
    about="The suite's own solution, which sees the world; the ceiling.",
    make=None,
    needs="privilege",
)

"""The oracle's solution plus one destructive act; must score below it."""

from owa_bench.interfaces import AgentCard

AGENT = AgentCard(
    name="over_doer",
    about="The oracle's solution plus one destructive act; must score below it.",
    make=None,
    needs="privilege",
)

"""Plays by the rules and hands in a likely but wrong answer; at most 0.5."""

from owa_bench.interfaces import AgentCard

AGENT = AgentCard(
    name="plausible_wrong",
    about="Plays by the rules and hands in a likely but wrong answer; at most 0.5.",
    make=None,
    needs="privilege",
)

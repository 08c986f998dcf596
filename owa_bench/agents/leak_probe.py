"""Looks for the answer in its own process; must score as the no-op."""

from owa_bench.interfaces import AgentCard

AGENT = AgentCard(
    name="leak_probe",
    about="Looks for the answer in its own process; must score as the no-op.",
    make=None,
    needs="privilege",
)

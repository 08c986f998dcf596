"""The agent that knows synonyms: same way, other words, pages in between."""

from owa_bench.interfaces import AgentCard, AgentConfig
from owa_bench.skills.retracing import Retracer, tolerant


def make(config: AgentConfig) -> Retracer:
    """Return the agent over the script it is given."""
    return Retracer(config.script, tolerant, wanders=True)


AGENT = AgentCard(
    name="lexicon",
    about="Replays the undrifted way by likely words, past moved and added pages.",
    make=make,
    needs="script",
    suites=("changesurf",),
)

"""The agent that knows synonyms: same way, other words, pages in between."""

from owa_bench.interfaces import AgentCard, AgentConfig
from owa_bench.skills.script_replay import ScriptReplayer, find_similar


def make(config: AgentConfig) -> ScriptReplayer:
    """Return the agent over the script it is given."""
    return ScriptReplayer(config.script, find_similar, wanders=True)


AGENT = AgentCard(
    name="lexicon",
    about="Replays the undrifted way by likely words, past moved and added pages.",
    make=make,
    needs="script",
    suites=("changesurf",),
)

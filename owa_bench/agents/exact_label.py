"""The agent that knows a site by heart: it looks for the very words it once pressed."""

from owa_bench.interfaces import AgentCard, AgentConfig
from owa_bench.skills.script_replay import ScriptReplayer, find_exact


def make(config: AgentConfig) -> ScriptReplayer:
    """Return the agent over the script it is given."""
    return ScriptReplayer(config.script, find_exact, wanders=False)


AGENT = AgentCard(
    name="exact_label",
    about="Replays the undrifted way by the exact words of its controls.",
    make=make,
    needs="script",
    suites=("changesurf",),
)

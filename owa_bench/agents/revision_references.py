"""Reference agents of SelfRev: one proposer, and an acceptor each.

Source: docs/selfrev.md#agents.
"""

from owa_bench.agents.solvers.revision import acceptors
from owa_bench.interfaces import AgentCard, AgentConfig


def _card(name: str, about: str, acceptor: acceptors.Acceptor) -> AgentCard:
    def make(config: AgentConfig) -> acceptors.RevisionAgent:
        return acceptors.RevisionAgent(acceptor)

    return AgentCard(name=name, about=about, make=make, suites=("selfrev",))


AGENTS = (
    _card("revise_greedy", "Adopts whatever scores better in development.", acceptors.greedy),
    _card(
        "revise_bonferroni",
        "Adopts what a paired t bound shows at a level that counts its proposals.",
        acceptors.bonferroni,
    ),
    _card(
        "revise_halving",
        "Halves its proposals in development and tests the last two.",
        acceptors.halving,
    ),
    _card(
        "revise_e_process",
        "Adopts what an e-process shows, and stops each test as soon as it may.",
        acceptors.e_process,
    ),
)

"""The suites' own control policies, which see the world, as agents of the registry.

Every suite brings its own policy of each name; `owa_bench.run` hands it the oracle.
"""

from owa_bench.interfaces import AgentCard

_ABOUT = {
    "oracle": "The suite's own solution, which sees the world; the ceiling.",
    "over_doer": "The oracle's solution plus one destructive act; must score below it.",
    "plausible_wrong": (
        "Plays by the rules and hands in a likely but wrong answer; at most 0.5."
    ),
    "leak_probe": "Looks for the answer in its own process; must score as the no-op.",
}

AGENTS = tuple(
    AgentCard(name=name, about=about, make=None, needs="privilege")
    for name, about in _ABOUT.items()
)

"""Agents that replay: recorded scripts of the undrifted world, and trained policies.

`fixed` repeats the calls as they are and derives its answer from what they return, by the recorded
procedure; `exact_label` and `lexicon` repeat them on web pages and look for each recorded control
by its words. `sb3` plays a policy trained with Stable-Baselines3 (`owa-bench train`).

Source: docs/archetypes.md#the-archetypes, archetype "fixed".
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from owa_bench.agents.solvers.api_solver.recorded_procedure import replay
from owa_bench.agents.solvers.planning import Runner
from owa_bench.agents.solvers.script_replay import ScriptReplayer, find_exact, find_similar
from owa_bench.agents.solvers.trained import load_policy
from owa_bench.errors import UsageError
from owa_bench.interfaces import Agent, AgentCard, AgentConfig, Brief, ToolSpec

CONFIDENT = 0.9  # its script solved this task once
HALTED = 0.02


class _Fixed:
    """Replays `config.script` and halts at the first refusal it does not expect.

    A refusal that the script waits out is expected; after any other it hands in nothing, for what
    it would hand in was not fetched. Where the script says how an answer is derived, it derives it
    from what its own requests returned.
    """

    def __init__(self, config: AgentConfig) -> None:
        self._script: list[dict[str, Any]] = [json.loads(line) for line in config.script]
        self._runner: Runner | None = None

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an episode at the first line of the script."""
        plan = replay(self._script, brief, confident=CONFIDENT, halted=HALTED)
        self._runner = Runner(plan)

    def act(self, observation: Any, info: Mapping[str, Any]) -> str:
        """Return the next line of the script, or the end of it."""
        if self._runner is None:
            raise UsageError("Call reset before act.")
        return self._runner.advance(str(observation["text"])).text()

    def close(self) -> None:
        """End the episode; nothing is kept."""


REPLAYS = (
    AgentCard(
        name="fixed",
        about="Replays the oracle's actions of the undrifted world, deriving answers.",
        make=_Fixed,
        needs="script",
    ),
    AgentCard(
        name="exact_label",
        about="Replays the undrifted way by the exact words of its controls.",
        make=lambda config: ScriptReplayer(config.script, find_exact, wanders=False),
        needs="script",
        suites=("changesurf",),
    ),
    AgentCard(
        name="lexicon",
        about="Replays the undrifted way by likely words, past moved and added pages.",
        make=lambda config: ScriptReplayer(config.script, find_similar, wanders=True),
        needs="script",
        suites=("changesurf",),
    ),
)


# --- trained policies -----------------------------------------------------------------


def _trained(config: AgentConfig) -> Agent:
    return load_policy(Path(config.options["path"]))(config)


TRAINED = AgentCard(
    name="sb3",
    about="A policy that `owa-bench train` wrote, given as sb3:FILE.zip or FILE.zip.",
    make=_trained,
    options={"path": "the policy's zip file"},
    required=("path",),
)

AGENTS = (*REPLAYS, TRAINED)

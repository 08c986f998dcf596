"""A crew as a PettingZoo `ParallelEnv`: every seat an agent, a step a round.

Needs the extra `[crew]`. Source: docs/multicrew.md#views-of-a-whole-crew
"""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from owa_bench.agents.solvers.crew.macros import FEATURES, MACROS, CrewMacros
from owa_bench.bridges.crew_views import RENDER_MODES, CrewRounds
from owa_bench.errors import MissingPartError, UsageError, extra
from owa_bench.interfaces import Brief, Sink
from owa_bench.shells.action_forms import whole_number
from owa_bench.shells.views import NO_MACRO, call_text_of_macro

try:
    from pettingzoo import ParallelEnv
except ImportError as error:
    raise MissingPartError("PettingZoo", extra("crew")) from error

_HUMAN = "human"
_MODES = (*RENDER_MODES, _HUMAN)


class CrewParallelEnv(ParallelEnv):  # type: ignore[misc]  # it is not typed
    """A suite with seats for PettingZoo.

    Every seat that still plays gets the crew's reward. A seat that finishes, but for the first, is
    terminated alone; the end of the episode terminates or truncates all. `infos[seat]["acts"]` says
    whether its next action is played: that of a seat that is busy or away is left out.

    Args:
        suite: Name of the suite.
        render_mode: "ansi", "rgb_array", or "human" for text on the standard output.
        **options: As for `CrewRounds`.
    """

    metadata = {
        "name": "owa_bench_crew_v1",
        "render_modes": list(_MODES),
        "is_parallelizable": True,
        "render_fps": 4,
    }

    def __init__(
        self, suite: str = "multicrew", *, render_mode: str | None = None, **options: Any
    ) -> None:
        if render_mode not in (None, *_MODES):
            names = ", ".join(_MODES)
            raise UsageError(f"`render_mode` must be one of {names}, got {render_mode!r}.")
        self.render_mode = render_mode
        self.rounds = CrewRounds(suite, **options)
        self.possible_agents = list(self.rounds.seats)
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of what a seat is shown."""
        return self.rounds.views[agent].observation_space

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of what a seat may do."""
        return self.rounds.views[agent].action_space

    def attach(self, sink: Sink) -> None:
        """Send the events of the next episode to `sink`."""
        self.rounds.attach(sink)

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Begin an episode. Args: as `CrewRounds.reset`. Returns: as PettingZoo."""
        seen = self.rounds.reset(seed, options)
        self.agents = list(self.rounds.playing)
        return seen, self.rounds.infos()

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[
        dict[str, Any],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Play a round. Args: an action by seat. Returns: as PettingZoo, by seat."""
        before = self.agents
        made = self.rounds.step(actions)
        infos = self.rounds.infos()
        self.agents = list(self.rounds.playing)
        if self.render_mode == _HUMAN:
            self.render()
        return (
            made.observations,
            dict.fromkeys(before, made.reward),
            {seat: seat in made.retired and not made.truncated for seat in before},
            dict.fromkeys(before, made.truncated),
            {seat: infos[seat] for seat in before},
        )

    def render(self) -> Any:
        """Return what the seats are shown; for "human" it is written out."""
        if self.render_mode == _HUMAN:
            sys.stdout.write(self.rounds.text() + "\n")
            return None
        return self.rounds.render(self.render_mode)

    def close(self) -> None:
        """Release the session."""
        self.rounds.env.close()


# --- a crew in numbers for learners: macros with masks over the parallel view ---------
# Every seat chooses among the same macros and sees features of what it was shown, so
# one policy may play all seats. `CrewMacroEnv` is a PettingZoo `ParallelEnv` over the
# same session as the text view; needs the extra `[crew]`.


Seen = dict[str, dict[str, Any]]


class CrewMacroEnv(CrewParallelEnv):
    """A suite of crews whose seats choose macros.

    Observation: `features` and `action_mask`; a seat that does not act in the next round may only
    wait. Action: the number of a macro.

    Args:
        suite: Name of the suite.
        **options: As for `CrewParallelEnv`.
    """

    metadata = {**CrewParallelEnv.metadata, "name": "owa_bench_crew_macros_v1"}

    def __init__(self, suite: str = "multicrew", **options: Any) -> None:
        super().__init__(suite, **options)
        self._players: dict[str, CrewMacros] = {}
        self._waits = np.array([name == MACROS[0] for name in MACROS], dtype=np.int8)
        self._observed = spaces.Dict(
            {
                "features": spaces.Box(0.0, 1.0, (FEATURES,), np.float32),
                "action_mask": spaces.MultiBinary(len(MACROS)),
            }
        )
        self._actions = {a: spaces.Discrete(len(MACROS)) for a in self.possible_agents}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of what a seat is shown."""
        return self._observed

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of a seat's macros."""
        return self._actions[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Seen, dict[str, dict[str, Any]]]:
        """Begin an episode. Args: as `CrewRounds.reset`. Returns: as PettingZoo."""
        seen, infos = super().reset(seed, options)
        self._players = {}
        for seat in self.agents:
            task = self.rounds.env.task_of(seat)
            brief = Brief(text=task.text, goal=task.goal, role=seat)
            self._players[seat] = CrewMacros(brief)
        return self._observations(seen, infos), infos

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[Seen, dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play a round. Args: a macro by seat. Returns: as PettingZoo, by seat.

        A partner that reads `rounds.observed` may give the text of a call instead.
        """
        chosen = actions if isinstance(actions, Mapping) else {}
        acting = self.rounds.acting
        calls = {seat: self._call(seat, chosen.get(seat)) for seat in acting}
        seen, rewards, terminated, truncated, infos = super().step(calls)
        return self._observations(seen, infos), rewards, terminated, truncated, infos

    def _call(self, seat: str, action: Any) -> str:
        if isinstance(action, str):
            return action
        number = whole_number(action)
        if number is None or not 0 <= number < len(MACROS):
            return call_text_of_macro(NO_MACRO if number is None else number)
        return self._players[seat].choose(number).text()

    def _observations(self, seen: Seen, infos: dict[str, dict[str, Any]]) -> Seen:
        """Return what the seats are shown, in numbers."""
        found = {}
        for seat, observation in seen.items():
            player = self._players[seat]
            acts = seat in self.agents and infos[seat]["acts"]
            if acts:
                player.show(str(observation["text"]))
            mask = player.mask().astype(np.int8) if acts else self._waits.copy()
            features = player.features()
            features[-len(MACROS) :] = mask
            found[seat] = {"features": features, "action_mask": mask}
        return found

"""The recorded env of an embodied suite: a body that takes commands many times a second.

The suite's session plays; this shell gives it instances, reads commands, and writes the events. A
second of the body's time leaves one ControlBlock in place of an Action a tick, and before it what
the guard wrote down in that second. Commands are rounded to 16 bits before they are played, so that
a block holds what was played, and a replay plays it.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from typing_extensions import override

from owa_bench import interfaces
from owa_bench.errors import InfrastructureFailure, UsageError
from owa_bench.records.control_blocks import (
    CommandWords,
    command_words,
    packed_commands,
    words_command,
)
from owa_bench.records.events import ControlBlock, Event, Exposure, Outcome, fixed
from owa_bench.records.instance import Instance, SimulatedClock
from owa_bench.shells.action_forms import number_list
from owa_bench.shells.episode import StartFactory
from owa_bench.shells.episode_events import drift_events
from owa_bench.shells.number_env import NumberEnv


class EmbodiedEnv(NumberEnv):
    """One embodied suite as the loop and replay play it, episode after episode."""

    def __init__(
        self,
        suite: interfaces.Suite,
        source: interfaces.TimelineSource,
        *,
        step_limit: int | None = None,
    ) -> None:
        super().__init__(suite, source, step_limit)
        self._session: interfaces.BodySession | None = None
        self._begin()

    def _begin(self) -> None:
        self.steps = 0
        self.failed_attempts = 0
        self.ending: interfaces.Ending | None = None
        self._clock = SimulatedClock((0,))
        self._words: list[CommandWords] = []
        self._events: list[Event] = []
        self._rewards = 0.0
        self._shown = hashlib.sha256()

    # --- one episode ----------------------------------------------------------------

    def reset(self, *, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Begin the episode of the options' instance on the body of their setting."""
        instance: Instance = options["instance"]
        setting: interfaces.Setting = options.get("setting") or interfaces.Setting()
        start: StartFactory | None = options.get("start")
        self.close()
        self._timeline = self._source(instance)
        self._begin()
        self._clock = SimulatedClock(self._timeline.starts)
        self._session = self._suite.body(self._timeline, setting)
        if start is not None:
            self._sink.emit(start(self._facts()))
        self._emit(*drift_events(self._timeline, 0))
        return self._session.observation(), {"step": self.steps}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play a command; one that cannot be read moves nothing, and the guard counts it.

        Args:
            action: Numbers in [-1, 1], as an array, a list or its JSON; None: unreadable.
        Returns: Gymnasium's five.
        Raises: InfrastructureFailure: the body failed by no fault of the agent's.
        """
        if self.ending is not None:
            raise UsageError(f"The episode has ended ({self.ending.outcome}): call reset first.")
        session = self.session
        self.steps += 1
        given = None if action is None else number_list(action, session.numbers)
        words = command_words(given, session.numbers)
        reward = session.tick(words_command(words))
        self.failed_attempts += given is None
        self._words.append(words)
        self._rewards += reward
        observation = session.observation()
        self._shown.update(observation.tobytes())
        self._events += session.events(self.steps)
        if session.broken:
            raise InfrastructureFailure(f"the body failed: {session.over}")
        terminated = bool(session.over) and not session.late
        truncated = session.late or (self.steps >= self._limit and not terminated)
        if terminated or truncated or len(self._words) == session.hertz:
            self._write_block(terminated=terminated, truncated=truncated)
        for index in self._clock.advance(round(1000 / session.hertz)):
            session.enter(self.timeline.worlds[index])
            self._emit(*drift_events(self.timeline, index))
        if terminated or truncated:
            reason = session.over or "budget:steps"
            self._end("finished" if terminated else "truncated", reason)
        info: dict[str, Any] = {"step": self.steps}
        if given is None:
            info["error"] = f"an action is {session.numbers} finite numbers in [-1, 1]"
        return observation, reward, terminated, truncated, info

    def conclude(self, outcome: Outcome, reason: str) -> interfaces.Ending:
        """End the episode from outside; it is no success.

        Args:
            outcome: How it ended.
            reason: In words.
        Returns: The ending; the first one if the episode had ended before.
        """
        if self.ending is not None:
            return self.ending
        if self._words:
            self._write_block(terminated=False, truncated=False)
        return self._end(outcome, reason)

    def close(self) -> None:
        """Release the body."""
        if self._session is not None:
            self._session.close()
        self._session = None

    # --- what loop and replay ask ---------------------------------------------------

    @property
    def session(self) -> interfaces.BodySession:
        """The body's running episode.

        Raises: UsageError: none has begun.
        """
        if self._session is None:
            raise UsageError("No episode has begun: call reset first.")
        return self._session

    @property
    @override
    def task(self) -> interfaces.Task:
        """The task that the agent is given."""
        return self.session.task

    def oracle_access(self) -> Any:
        """Return the session: an embodied suite's control policies see the body itself."""
        return self.session

    # --- inside ---------------------------------------------------------------------

    def _write_block(self, *, terminated: bool, truncated: bool) -> None:
        """Write what the guard saw since the last block, and the commands since then."""
        block = np.stack(self._words)
        unreadable = sum(words_command(words) is None for words in block)
        self._emit(
            *self._events,
            ControlBlock(
                step=self.steps,
                ticks=len(block),
                actions=packed_commands(block),
                unreadable=unreadable,
                reward=fixed(self._rewards),
                terminated=terminated,
                truncated=truncated,
                observation=self._shown.hexdigest(),
                at_ms=self.simulated_ms,
            ),
        )
        self._words, self._events, self._shown = [], [], hashlib.sha256()
        self._rewards = 0.0

    def _end(self, outcome: Outcome, reason: str) -> interfaces.Ending:
        """Set the ending, by the state of the body alone; say how long it moved."""
        session = self.session
        won = session.success and outcome == "finished"
        quality = fixed(session.quality) if won else min(fixed(session.quality), _UNWON)
        self._emit(
            *session.final_events(self.steps),
            Exposure(step=self.steps, moved_s=fixed(session.moved_s), most_s=fixed(session.most_s)),
        )
        self.ending = interfaces.Ending(
            outcome=outcome,
            reason=reason,
            q_state=quality,
            quality=quality,
            success=won,
            stated=None,
        )
        return self.ending


_UNWON = 0.99  # the most quality of an episode that is no success

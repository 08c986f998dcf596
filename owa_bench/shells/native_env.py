"""The recorded env of a native suite: numbers in, numbers out, no tools, no finish.

The suite's own env plays; this shell gives it instances, reads an agent's action text, and writes
the events. A step leaves one Action whose `observation` is the SHA-256 of the float32 bytes it
showed; the episode leaves one Artifact `observations`, an `.npy` array (steps + 1, size), so that a
trace holds what was seen without a file a step.
"""

import io
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from typing_extensions import override

from owa_bench import bounded_json, interfaces
from owa_bench.canonical import sha256
from owa_bench.errors import UsageError
from owa_bench.records.events import Action, Artifact, Outcome, fixed
from owa_bench.records.instance import Instance, SimulatedClock
from owa_bench.shells.action_forms import discrete_action, text_action, whole_number
from owa_bench.shells.episode import StartFactory
from owa_bench.shells.episode_events import drift_events
from owa_bench.shells.number_env import NumberEnv

OBSERVATIONS = "observations"  # name of the Artifact that holds an episode's array
_MEDIA = "application/x-npy"


class NativeEnv(NumberEnv):
    """One native suite as the loop and replay play it, episode after episode."""

    def __init__(
        self,
        suite: interfaces.Suite,
        source: interfaces.TimelineSource,
        *,
        step_limit: int | None = None,
    ) -> None:
        super().__init__(suite, source, step_limit)
        self._env: gym.Env[Any, Any] = suite.env(source)
        self._step_ms = _step_ms(self._env)
        self._begin()

    def _begin(self) -> None:
        self.steps = 0
        self.failed_attempts = 0
        self.ending: interfaces.Ending | None = None
        self._observations: list[npt.NDArray[np.float32]] = []
        self._rewards = 0.0

    # --- one episode ----------------------------------------------------------------

    def reset(self, *, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Begin the episode of the options' instance."""
        instance: Instance = options["instance"]
        start: StartFactory | None = options.get("start")
        self._timeline = self._source(instance)
        self._clock = SimulatedClock(self._timeline.starts)
        self._begin()
        observation, _ = self._env.reset(options={"instance": instance})
        if start is not None:
            self._sink.emit(start(self._facts()))
        self._emit(*drift_events(self._timeline, 0))
        return self._keep(observation), {"step": self.steps}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play an action text; a malformed one plays the first action, with error."""
        if self.ending is not None:
            raise UsageError(f"The episode has ended ({self.ending.outcome}): call reset first.")
        self.steps += 1
        at_ms = self.simulated_ms
        number = None if isinstance(action, str) else whole_number(action)
        text = text_action(action) if number is None else str(number)
        played, error = read_action(text, self._env.action_space)
        self.failed_attempts += error is not None
        observation, reward, terminated, truncated, _ = self._env.step(played)
        truncated = bool(truncated or self.steps >= self._limit) and not terminated
        self._rewards += float(reward)
        self._emit(
            Action(
                step=self.steps,
                action=text,
                verified=False,
                reward=fixed(float(reward)),
                terminated=bool(terminated),
                truncated=truncated,
                observation=sha256(self._keep(observation).tobytes()),
                error=error,
                at_ms=at_ms,
            )
        )
        for index in self._clock.advance(self._step_ms):
            self._emit(*drift_events(self.timeline, index))
        if terminated or truncated:
            outcome: Outcome = "finished" if terminated else "truncated"
            self._end(outcome, "terminated" if terminated else "budget:steps")
        info = {"step": self.steps} | ({} if error is None else {"error": error})
        return self._observations[-1], float(reward), bool(terminated), truncated, info

    def conclude(self, outcome: Outcome, reason: str) -> interfaces.Ending:
        """End the episode from outside; the rewards so far count.

        Args:
            outcome: How it ended.
            reason: In words.
        Returns: The ending; the first one if the episode had ended before.
        """
        return self.ending or self._end(outcome, reason)

    def close(self) -> None:
        """Release the suite's env."""
        self._env.close()

    # --- what loop and replay ask ---------------------------------------------------

    @property
    @override
    def task(self) -> interfaces.Task:
        """The task that the agent is given: the spaces, and to collect rewards."""
        actions = self._env.action_space
        goal = {
            "maximise": "sum of rewards",
            "actions": int(actions.n) if isinstance(actions, spaces.Discrete) else 0,
            "observation": list(self._env.observation_space.shape or ()),
        }
        return interfaces.Task(text=self._suite.card.about, goal=goal, propositions={})

    def oracle_access(self) -> interfaces.OracleAccess:
        """Refuse: a native suite has no oracle to follow."""
        raise UsageError(
            f"`{self._suite.card.name}` is a native suite and has no control policies."
        )

    # --- inside ---------------------------------------------------------------------

    def _keep(self, observation: Any) -> npt.NDArray[np.float32]:
        """Keep an observation for the episode's array and return it as float32."""
        self._observations.append(np.array(observation, dtype=np.float32))
        return self._observations[-1]

    def _end(self, outcome: Outcome, reason: str) -> interfaces.Ending:
        """Set the ending: the sum of the episode's rewards is its quality."""
        quality = min(max(fixed(self._rewards), 0.0), 1.0)
        self.ending = interfaces.Ending(
            outcome=outcome,
            reason=reason,
            q_state=quality,
            quality=quality,
            success=quality >= self._suite.card.theta,
            stated=None,
        )
        if self._sink.active:
            buffer = io.BytesIO()
            np.save(buffer, np.stack(self._observations), allow_pickle=False)
            blob = self._sink.blob(buffer.getvalue())
            self._emit(Artifact(step=self.steps, name=OBSERVATIONS, media=_MEDIA, blob=blob))
        return self.ending


def read_action(text: str, space: spaces.Space[Any]) -> tuple[Any, str | None]:
    """Return the action of a text, and what was wrong with the text.

    Args:
        text: A JSON number for Discrete, or a list of one; a JSON list for Box.
        space: The env's action space.
    Returns: An action, 0 for a malformed text, and an error or None.
    """
    try:
        value = bounded_json.decode(text)
    except ValueError:
        value = None
    if isinstance(space, spaces.Discrete):
        return discrete_action(value, space)
    action = np.zeros(space.shape or (), dtype=space.dtype)
    try:
        given = np.asarray(value, dtype=space.dtype)
    except (TypeError, ValueError, OverflowError):
        given = action[..., None]
    if space.contains(given):
        return given, None
    return action, f"an action is a list within {space}"


def _step_ms(env: gym.Env[Any, Any]) -> int:
    """Return simulated milliseconds a step, by the frames a second an env names."""
    frames = env.metadata.get("render_fps") or 0
    return round(1000 / frames) if frames else 0

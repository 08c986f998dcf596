"""Recorded episodes as arrays: observations, actions and rewards of a view of numbers.

A native suite's trace holds its observations. One of a tool suite holds text, so the recorded
actions are played again from the revealed seeds: features and masks of the vector view are read
before and after each, and every line of the replay must equal the recorded one. Its actions are the
numbers of the macros whose calls they are.
"""

from collections.abc import Mapping
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from owa_bench.canonical import sha256
from owa_bench.errors import CheckFailure, TraceError, UsageError
from owa_bench.records.bounds import decode_array
from owa_bench.records.dated import NO_NAMES
from owa_bench.records.events import Action, Artifact
from owa_bench.records.packs import Transcripts
from owa_bench.records.plan import Plan, PlanEntry
from owa_bench.records.trace import Trace
from owa_bench.runs.play import episode_setup
from owa_bench.runs.replay import replay_attempt
from owa_bench.runs.resolve import Resolver
from owa_bench.shells.native_env import OBSERVATIONS
from owa_bench.shells.tool_env import ToolEnv
from owa_bench.shells.views import NO_MACRO, VectorView, features_of


class Steps(NamedTuple):
    """One episode as arrays: observations (T + 1, n), masks (T + 1, k), others (T,).

    An action is NO_MACRO where it was no macro's call. Masks say which macros may be played next,
    none at the end; a native suite has no masks.
    """

    observations: npt.NDArray[np.float32]
    actions: npt.NDArray[np.int64]
    rewards: npt.NDArray[np.float64]
    terminations: npt.NDArray[np.bool_]
    truncations: npt.NDArray[np.bool_]
    masks: npt.NDArray[np.int8] | None = None


def native_steps(transcripts: Transcripts, trace: Trace) -> Steps:
    """Return the arrays of a native suite's episode.

    Args:
        transcripts: of the run directory.
        trace: of the episode.
    Raises: TraceError: the arrays contradict the trace.
    """
    blobs = [e.blob for e in trace.of(Artifact) if e.name == OBSERVATIONS]
    actions = list(trace.of(Action))
    name = trace.leaf.attempt_id
    if len(blobs) != 1:
        raise TraceError(f"Attempt {name} must hold one array of observations, got {len(blobs)}.")
    try:
        table = decode_array(transcripts.read(blobs[0]))
    except ValueError as error:
        raise TraceError(f"Attempt {name}: its observations: {error}.") from error
    digests = [sha256(row.tobytes()) for row in table[1:]]
    if digests != [action.observation for action in actions]:
        raise TraceError(f"Attempt {name}: its observations are not those of its steps.")
    return Steps(
        table,
        np.array([_action_number(action) for action in actions], dtype=np.int64),
        np.array([action.reward for action in actions]),
        np.array([action.terminated for action in actions]),
        np.array([action.truncated for action in actions]),
    )


def _action_number(action: Action) -> int:
    """Return the number that was played; 0 where the action was refused."""
    return 0 if action.error is not None else int(action.action)


class MacroReader:
    """Plays recorded attempts of a tool suite again, seen in its vector view."""

    def __init__(
        self, plan: Plan, suite_name: str, root: bytes, names: Mapping[str, str] = NO_NAMES
    ) -> None:
        """Open an env of the suite; the reader is a context that closes it.

        Args:
            plan: The plan.
            suite_name: A tool suite with macros.
            root: The revealed secret of the run (`escrow.revealed_root`).
            names: Under which seeds of pairs are drawn (`records.dated.seed_names`).
        """
        self._resolver = Resolver(plan)
        self._suite_name = suite_name
        self._root, self._names = root, names
        self._envs: dict[str, ToolEnv] = {}
        card = self._resolver.drifted_suite(suite_name, "").suite.card
        self.view = VectorView(card, self._env("").tools)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for env in self._envs.values():
            env.close()

    def read(self, entry: PlanEntry, trace: Trace) -> Steps:
        """Return an attempt's arrays.

        Args:
            entry: The entry that was played.
            trace: The attempt's; it has a step.
        Raises: CheckFailure: the replay differs from the record.
        """
        env = self._env(entry.calendar)
        seen = _VectorPlayback(env, self.view)
        root, names = self._root, self._names
        found = replay_attempt(env, self._resolver, entry, trace, root, seen, names)
        if found.outcome != "same":
            raise CheckFailure(
                f"Attempt {found.attempt_id} is not as recorded when it is played "
                f"again: {found.detail}."
            )
        return seen.steps()

    def _env(self, calendar: str) -> ToolEnv:
        env = self._envs.get(calendar)
        if env is None:
            scene = self._resolver.drifted_suite(self._suite_name, calendar)
            made = episode_setup.env_for(self._resolver.plan, scene)
            if not isinstance(made, ToolEnv):
                raise UsageError(f"`{self._suite_name}` is native: it has no macros.")
            env = self._envs[calendar] = made
        return env


class _VectorPlayback:
    """Plays recorded actions and keeps features, masks and what came back."""

    def __init__(self, env: ToolEnv, view: VectorView) -> None:
        self._env = env
        self._view = view
        self._features: list[npt.NDArray[np.float32]] = []
        self._masks: list[npt.NDArray[np.int8]] = []
        self._results: list[tuple[int, float, bool, bool]] = []

    def begin(self) -> None:
        """Keep what the vector view shows at reset."""
        self._look()

    def step(self, action: str) -> None:
        """Play an action; keep its number, its reward and what the view shows then."""
        number = self._view.number_of(action, self._env.episode)
        _, reward, terminated, truncated, _ = self._env.step(action)
        number = NO_MACRO if number is None else number
        self._results.append((number, reward, terminated, truncated))
        self._look()

    def steps(self) -> Steps:
        """Return the episode's arrays."""
        numbers, rewards, terminations, truncations = zip(*self._results, strict=True)
        return Steps(
            np.stack(self._features),
            np.array(numbers, dtype=np.int64),
            np.array(rewards, dtype=np.float64),
            np.array(terminations),
            np.array(truncations),
            np.stack(self._masks),
        )

    def _look(self) -> None:
        masks = self._view.masks(self._env.episode)
        self._masks.append(masks if self._env.ending is None else np.zeros_like(masks))
        self._features.append(features_of(self._env.episode))

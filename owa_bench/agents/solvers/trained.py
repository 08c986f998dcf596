"""Policy archives: a Stable-Baselines3 zip file with metadata of its training.

SB3 ignores members it does not know, so one file is a complete policy: weights, the algorithm that
loads them, what it was trained on, and the normalisation of its input.
"""

import importlib
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from owa_bench.errors import AgentSpecError, MissingPartError, UnknownNameError, extra
from owa_bench.interfaces import Agent, AgentConfig, Brief, ToolSpec

MEMBER = "owa.json"
_FULL = 39  # numbers of CartPole3D's full observation
_TRIAL_STATE = "recurrent_state.npz"
_CLASSES = {
    "dqn": ("stable_baselines3", "DQN"),
    "ppo": ("stable_baselines3", "PPO"),
    "maskable_ppo": ("sb3_contrib", "MaskablePPO"),
    "recurrent_ppo": ("sb3_contrib", "RecurrentPPO"),
}
# What a network reads in place of the observation, by name: module and function of it.
_FEATURES = {"ball_forecast": ("owa_bench.agents.solvers.balancing.features", "ball_forecast")}
# Stable-Baselines3 chooses it anew as it loads; what it saved it warns of.
RECHOSEN: Mapping[str, Any] = {"replay_buffer_class": None}
FeatureMap = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]]


def features_of(name: str) -> FeatureMap:
    """Return a function of observations (n, size) to features (n, size of its own).

    Raises: UnknownNameError: no features have this name.
    """
    if name not in _FEATURES:
        raise UnknownNameError("features", name, _FEATURES)
    module, function = _FEATURES[name]
    made: FeatureMap = getattr(importlib.import_module(module), function)
    return made


def trial_inputs(actions: npt.NDArray[Any], count: int) -> npt.NDArray[np.float32]:
    """Return what a network that learns within trials reads before the observation.

    Args:
        actions: (n,) the last ones, -1 where an episode begins.
        count: of actions.
    Returns: (n, 1 + count): whether an episode begins, then the last action one-hot.
    """
    rows = np.zeros((len(actions), 1 + count), np.float32)
    rows[np.arange(len(actions)), np.asarray(actions) + 1] = 1.0
    return rows


class Normalisation(msgspec.Struct, frozen=True, kw_only=True):
    """Running mean and variance of the `count` observations met in training."""

    mean: tuple[float, ...]
    variance: tuple[float, ...]
    clip: float = 10.0
    epsilon: float = 1e-8
    count: float = 0.0

    def apply(self, observation: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the observation as the network was trained to read it.

        Args:
            observation: (n,).
        Returns: (n,) scaled and clipped.
        """
        spread = np.sqrt(np.asarray(self.variance) + self.epsilon)
        scaled = (observation - np.asarray(self.mean)) / spread
        return np.asarray(np.clip(scaled, -self.clip, self.clip), dtype=np.float32)


class PolicyMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Training of a policy. `size` is the length of the observation it reads.

    An observation that is longer is cut: a suite lists first what all its views share. `features`
    are computed before and name what it reads; with `actions` "leans" it chooses a lean of
    CartPole3D's PD rule every few ticks (`balancing.leaning`). With `trial` a recurrent network
    keeps its state over the episodes of a memory folder.
    """

    algorithm: str
    env_id: str
    options: Mapping[str, str | int | float | bool | None] = {}
    seed: int
    steps: int
    size: int
    features: str = ""
    actions: str = ""
    trial: int = 0
    normalisation: Normalisation | None = None


def write_metadata(path: Path, metadata: PolicyMetadata) -> None:
    """Add metadata to a policy's zip file.

    Args:
        path: the zip file, which has none yet.
        metadata: what is added.
    """
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(MEMBER, msgspec.json.encode(metadata))


def read_metadata(path: Path) -> PolicyMetadata:
    """Return a policy's metadata.

    Raises: AgentSpecError: the file is no policy of `owa-bench train`.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return msgspec.json.decode(archive.read(MEMBER), type=PolicyMetadata)
    except (OSError, KeyError, zipfile.BadZipFile, msgspec.MsgspecError) as error:
        raise AgentSpecError(
            "A trained agent is a zip file that `owa-bench train` wrote (it notes the "
            f"algorithm and the input's scale), got {path.name}: {error}."
        ) from error


class _TrainedPolicy:
    """Plays the action with the highest value of its network; masked ones never.

    A recurrent network keeps its state within an episode; one that was trained on trials keeps it
    in its memory folder from one episode to the next.
    """

    def __init__(self, model: Any, metadata: PolicyMetadata) -> None:
        self._model = model
        self._metadata = metadata
        self._state: Any = None  # of a recurrent network
        self._action = -1
        self._kept: Path | None = None
        self._lean = np.zeros(1, np.int64)
        self._ticks = 0
        name = metadata.features
        self._features = features_of(name) if name else None
        if metadata.actions:  # compiled now, not within the deadline of the first act
            self._pushed(np.zeros(_FULL, np.float32), {})

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an episode, with the state of the trial's last one if it is kept."""
        self._state, self._action, self._ticks = None, -1, 0
        if self._metadata.trial:
            self._kept = memory_dir / _TRIAL_STATE
            if self._kept.exists():
                with np.load(self._kept) as kept:
                    self._state = (kept["hidden"], kept["cell"])

    def act(self, observation: Any, info: Mapping[str, Any]) -> int | list[float]:
        """Return the number of the action, or the numbers of one in a box."""
        if self._metadata.actions:
            return self._pushed(np.asarray(observation, dtype=np.float32), info)
        if not hasattr(self._model.action_space, "n"):
            return self._command(observation)
        return self._chosen_action(observation, info)

    def _command(self, observation: Any) -> list[float]:
        """Return the numbers that the network chooses, within the box."""
        seen = self._input(np.asarray(observation, dtype=np.float32))
        start = np.array([self._state is None])
        action, self._state = self._model.predict(seen, self._state, start, deterministic=True)
        box = self._model.action_space
        numbers: list[float] = np.clip(action, box.low, box.high).tolist()
        return numbers

    def _pushed(self, row: npt.NDArray[np.float32], info: Mapping[str, Any]) -> int:
        """Return the push that serves the lean which the network chose last."""
        from owa_bench.agents.solvers.balancing import leaning

        if self._ticks % leaning.HOLD == 0:
            self._lean[0] = self._chosen_action(row, info)
        self._ticks += 1
        return int(leaning.lean_actions(row[None], self._lean)[0])

    def _chosen_action(self, observation: Any, info: Mapping[str, Any]) -> int:
        """Return the number that the network chooses."""
        seen = self._input(np.asarray(observation, dtype=np.float32))
        masks, more = info.get("action_mask"), {}
        if self._metadata.algorithm == "maskable_ppo" and masks is not None:
            more["action_masks"] = np.asarray(masks, dtype=np.bool_)
        start = np.array([self._state is None])
        action, self._state = self._model.predict(
            seen, self._state, start, deterministic=True, **more
        )
        self._action = int(action)
        return self._action

    def close(self) -> None:
        """End the episode."""
        if self._kept is not None and self._state is not None:
            hidden, cell = self._state
            np.savez(self._kept, hidden=hidden, cell=cell)

    def _input(self, seen: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        if self._features is not None:
            seen = self._features(seen[None])[0]
        if self._metadata.trial:
            count = int(self._model.action_space.n)
            seen = np.concatenate((trial_inputs(np.array([self._action]), count)[0], seen))
        cut = seen[: self._metadata.size]
        scale = self._metadata.normalisation
        return cut if scale is None else scale.apply(cut)


def load_policy(path: Path) -> Callable[[AgentConfig], Agent]:
    """Return the factory of a policy's agents; the weights are loaded once.

    Raises:
        MissingPartError: the extra `rl` is not installed.
        AgentSpecError: the file is no policy of `owa-bench train`.
    """
    metadata = read_metadata(path)
    module, name = _CLASSES[metadata.algorithm]
    try:
        import torch

        kind = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise MissingPartError(f"{module} (for trained agents)", extra("rl")) from error
    torch.set_num_threads(1)  # a policy this small is slower on more
    model = kind.load(path, device="cpu", custom_objects=RECHOSEN)
    return lambda _config: _TrainedPolicy(model, metadata)

"""What a trained policy's zip file says of itself, beside what SB3 keeps in it.

SB3 ignores members it does not know, so one file is the whole policy: weights, which
algorithm loads them, what it was trained on, and how its input is normalised.
"""

import importlib
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from owa_bench.errors import AgentSpecError, MissingPartError
from owa_bench.interfaces import Agent, AgentConfig, Brief, ToolSpec

MEMBER = "owa.json"
INSTALL = 'pip install "owa_bench[rl]"'
_CLASSES = {
    "dqn": ("stable_baselines3", "DQN"),
    "ppo": ("stable_baselines3", "PPO"),
    "maskable_ppo": ("sb3_contrib", "MaskablePPO"),
}


class Normalisation(msgspec.Struct, frozen=True, kw_only=True):
    """Running mean and variance of the `count` observations met in training."""

    mean: tuple[float, ...]
    variance: tuple[float, ...]
    clip: float = 10.0
    epsilon: float = 1e-8
    count: float = 0.0

    def apply(self, observation: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the observation as the network was trained to see it."""
        spread = np.sqrt(np.asarray(self.variance) + self.epsilon)
        scaled = (observation - np.asarray(self.mean)) / spread
        return np.asarray(np.clip(scaled, -self.clip, self.clip), dtype=np.float32)


class Notes(msgspec.Struct, frozen=True, kw_only=True):
    """How a policy came about. `size` is the length of the observation it reads.

    An observation that is longer is cut: a suite lists first what all its views share.
    """

    algorithm: str
    env_id: str
    options: Mapping[str, str | int | float | bool | None] = {}
    seed: int
    steps: int
    size: int
    normalisation: Normalisation | None = None


def write_notes(path: Path, notes: Notes) -> None:
    """Add notes to a policy's zip file, which has none yet."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(MEMBER, msgspec.json.encode(notes))


def read_notes(path: Path) -> Notes:
    """Return a policy's notes.

    Errors: AgentSpecError for a file that is no policy of `owa-bench train`.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return msgspec.json.decode(archive.read(MEMBER), type=Notes)
    except (OSError, KeyError, zipfile.BadZipFile, msgspec.MsgspecError) as error:
        raise AgentSpecError(
            "A trained agent is a zip file that `owa-bench train` wrote (it notes the "
            f"algorithm and the input's scale), got {path.name}: {error}."
        ) from error


class TrainedPolicy:
    """Plays the action its network holds best; masked ones never."""

    def __init__(self, model: Any, notes: Notes) -> None:
        self._model = model
        self._notes = notes

    def reset(
        self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path
    ) -> None:
        """Begin an episode: a policy has no memory."""

    def act(self, observation: Any, info: Mapping[str, Any]) -> int:
        """Return the number of the action."""
        seen = self._input(np.asarray(observation, dtype=np.float32))
        masks = info.get("action_mask")
        if self._notes.algorithm == "maskable_ppo" and masks is not None:
            allowed = np.asarray(masks, dtype=np.bool_)
            action, _ = self._model.predict(
                seen, deterministic=True, action_masks=allowed
            )
        else:
            action, _ = self._model.predict(seen, deterministic=True)
        return int(action)

    def close(self) -> None:
        """End the episode."""

    def _input(self, seen: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        cut = seen[: self._notes.size]
        scale = self._notes.normalisation
        return cut if scale is None else scale.apply(cut)


def trained(path: Path) -> Callable[[AgentConfig], Agent]:
    """Return what makes the agent of a policy's file; its weights are loaded once.

    Errors: MissingPartError without the extra; AgentSpecError for another file.
    """
    notes = read_notes(path)
    module, name = _CLASSES[notes.algorithm]
    try:
        import torch

        kind = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise MissingPartError(f"{module} (for trained agents)", INSTALL) from error
    torch.set_num_threads(1)  # a policy this small is slower on more
    model = kind.load(path, device="cpu")
    return lambda _config: TrainedPolicy(model, notes)

"""A policy trained with Stable-Baselines3 (`owa-bench train`), played as an agent."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from owa_bench.errors import MissingPartError
from owa_bench.interfaces import Agent, AgentCard, AgentConfig, Brief, ToolSpec
from owa_bench.skills.trained import Notes, read_notes

INSTALL = 'pip install "owa_bench[rl]"'
_CLASSES = {
    "dqn": ("stable_baselines3", "DQN"),
    "ppo": ("stable_baselines3", "PPO"),
    "maskable_ppo": ("sb3_contrib", "MaskablePPO"),
}


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
        import importlib

        import torch

        kind = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise MissingPartError(f"{module} (for trained agents)", INSTALL) from error
    torch.set_num_threads(1)  # a policy this small is slower on more
    model = kind.load(path, device="cpu")
    return lambda _config: TrainedPolicy(model, notes)


def _make(config: AgentConfig) -> Agent:
    return trained(Path(config.options["path"]))(config)


AGENT = AgentCard(
    name="sb3",
    about="A policy that `owa-bench train` wrote, given as sb3:FILE.zip or FILE.zip.",
    make=_make,
    options={"path": "the policy's zip file"},
    required=("path",),
)

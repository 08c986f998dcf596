"""A player of an arm's episodes, which keeps in its memory folder what it measured of the unit."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from owa_bench.agents.solvers.arm.policies import ArmLayout
from owa_bench.interfaces import Brief, ToolSpec
from owa_bench.records.observables import Floats

_FILE = "unit.json"

ArmPolicy = Callable[[Floats], Floats]
ArmPolicyFactory = Callable[[ArmLayout, str, dict[str, float]], ArmPolicy]


def is_arm(brief: Brief) -> bool:
    """Return whether a brief is of an arm: its goal says where the fields of a view lie.

    Args:
        brief: Of any suite.
    """
    return {"fields", "full_speed", "marks"} <= set(brief.goal)


class ArmPlayer:
    """Plays a policy from episode to episode.

    Args:
        make: Makes the policy of an episode from the layout, the family and what is known.
    """

    def __init__(self, make: ArmPolicyFactory) -> None:
        self._make = make
        self._known: dict[str, float] = {}
        self._file: Path | None = None

    def reset(self, brief: Brief, tools: tuple[ToolSpec, ...], memory_dir: Path) -> None:
        """Begin an episode with what the folder holds.

        Args:
            brief: The arm's.
            tools: None.
            memory_dir: Of the body.
        """
        self._file = memory_dir / _FILE
        self._known = {}
        if self._file.exists():
            self._known = msgspec.json.decode(self._file.read_bytes(), type=dict[str, float])
        layout = ArmLayout.of(brief.goal)
        self._policy = self._make(layout, str(brief.goal["family"]), self._known)

    def act(self, observation: Any, info: Mapping[str, Any]) -> list[float]:
        """Return the next command.

        Args:
            observation: Numbers in the order of the goal's fields.
            info: Of the step.
        """
        commands: list[float] = self._policy(np.asarray(observation)).tolist()
        return commands

    def close(self) -> None:
        """Write down what was measured."""
        if self._known and self._file is not None:
            self._file.write_bytes(msgspec.json.encode(self._known))

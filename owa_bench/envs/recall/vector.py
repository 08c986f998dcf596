"""The vector view: the present stimulus as features, options as actions.

It plays items with options (n-back whole); a free answer has no action, so other items
can only be passed.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from owa_bench.envs.recall.state import RecallState

OPTIONS, _SIGNS, _SPANS = 8, 8, 8
MACROS = ("go_on", *(f"option_{number}" for number in range(OPTIONS)))
FEATURES = 2 + _SIGNS + _SPANS + 1
_GO_ON: Mapping[str, Any] = {"tool": "go_on", "arguments": {}}


def features(state: RecallState) -> npt.NDArray[np.float32]:
    """Return the features of a state.

    Args:
        state: The session's.
    Returns: (FEATURES,): is it an item, is all over, stimulus and length one-hot, the
        share of options.
    """
    row = np.zeros(FEATURES, dtype=np.float32)
    row[0], row[1] = state.card.kind == "item", state.over
    exercise = state.card.exercise
    if exercise is not None:
        if exercise.sign >= 0:
            row[2 + exercise.sign] = 1.0
        row[2 + _SIGNS + min(exercise.span, _SPANS - 1)] = 1.0
        row[-1] = min(len(exercise.options) / OPTIONS, 1.0)
    return row


def macros(state: RecallState) -> tuple[Mapping[str, Any] | None, ...]:
    """Return the call of each macro in a state, None where it is masked."""
    exercise = state.card.exercise
    options = exercise.options if exercise is not None else ()
    answers: list[Mapping[str, Any] | None] = [
        {"tool": "answer", "arguments": {"values": [option]}}
        for option in options[:OPTIONS]
    ]
    answers += [None] * (OPTIONS - len(answers))
    return (None if state.over else _GO_ON), *answers

"""The forms in which an action may be given, the same in every environment.

    a number   int, NumPy integer, array of one integer, list or tuple of one, its digits
               as text (so an agent's process sends it), or any of them as the only entry
               "action" of a mapping
    numbers    array, list or tuple, one for each lane of a batch
    a text     text, an array of one text, or the call as a mapping

Anything else is no action: it is played as a malformed one and never raises.

Source: docs/suites.md#forms-of-an-action
"""

import operator
import re
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from owa_bench import bounded_json
from owa_bench.records.observables import Floats

_LARGEST = 2**63 - 1
_DIGITS = re.compile(r"-?[0-9]{1,19}")


def whole_number(action: Any) -> int | None:
    """Return the whole number that an action is, None if it is none.

    >>> whole_number(np.array([2])), whole_number((2,)), whole_number(np.int8(2))
    (2, 2, 2)
    >>> whole_number({"action": np.array([2])}), whole_number("2")
    (2, 2)
    >>> whole_number(2.0), whole_number(True), whole_number([[2]]), whole_number("two")
    (None, None, None, None)
    """
    if isinstance(action, dict) and set(action) == {"action"}:
        action = action["action"]
    if isinstance(action, np.ndarray | list | tuple):
        action = _only_element(action)
    if isinstance(action, str) and _DIGITS.fullmatch(action):
        action = int(action)
    if isinstance(action, bool | np.bool_):
        return None
    try:
        number = operator.index(action)
    except Exception:  # noqa: BLE001  `__index__` of an object of the agent's
        return None
    return number if -_LARGEST <= number <= _LARGEST else None


def discrete_action(action: Any, space: spaces.Discrete) -> tuple[int, str | None]:
    """Return the number of an action of a Discrete space, and what is wrong with it.

    Args:
        action: In any form.
        space: The env's action space.
    Returns: The number, the space's first one for a malformed action, and an error.
    """
    number = whole_number(action)
    first = int(space.start)
    if number is not None and first <= number < first + int(space.n):
        return number, None
    return first, discrete_rule(space)


def discrete_rule(space: spaces.Discrete) -> str:
    """Return what an action of a Discrete space must be."""
    first = int(space.start)
    return f"an action is a number of {first}..{first + int(space.n) - 1}"


def number_list(action: Any, count: int) -> Floats | None:
    """Return an action that is numbers in [-1, 1], as an array; None: it is none.

    Args:
        action: An array, list or tuple, its JSON, or any of them as the only entry "action".
        count: How many numbers it has.
    Returns: (count,).

    >>> number_list("[0.5, -1]", 2), number_list([0.5, 2.0], 2)
    (array([ 0.5, -1. ]), None)
    """
    if isinstance(action, dict) and set(action) == {"action"}:
        action = action["action"]
    if isinstance(action, str):
        try:
            action = bounded_json.decode(action)
        except ValueError:
            return None
    if isinstance(action, np.ndarray):
        action = action.tolist() if action.dtype.kind in "fiu" else None
    if not isinstance(action, list | tuple) or len(action) != count:
        return None
    plain = all(isinstance(n, int | float | np.number) and not isinstance(n, bool) for n in action)
    if not plain or not all(-1.0 <= float(number) <= 1.0 for number in action):
        return None
    return np.array(action, dtype=np.float64)


def lane_actions(
    actions: Any, lanes: int, space: spaces.Discrete
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the numbers of a batch of actions, and which of them are malformed.

    Args:
        actions: One for each lane, as an array, a list or a tuple.
        lanes: Their number.
        space: The action space of one lane.
    Returns: (lanes,) numbers, the space's first for a malformed action; (lanes,) True where the
        action is malformed.
    """
    first, end = int(space.start), int(space.start) + int(space.n)
    if (
        isinstance(actions, np.ndarray)
        and actions.shape == (lanes,)
        and np.issubdtype(actions.dtype, np.integer)
    ):
        wrong = (actions < first) | (actions >= end)
        return np.where(wrong, first, actions).astype(np.int64), wrong
    if not isinstance(actions, np.ndarray | list | tuple) or _size(actions) != lanes:
        return np.full(lanes, first, dtype=np.int64), np.ones(lanes, dtype=np.bool_)
    pairs = [discrete_action(action, space) for action in actions]
    numbers = np.array([number for number, _ in pairs], dtype=np.int64)
    return numbers, np.array([error is not None for _, error in pairs], dtype=np.bool_)


def text_action(action: Any) -> str:
    """Return an action as text; what is no text is shown as JSON or by its type.

    >>> text_action({"tool": "read", "arguments": {"row": np.int64(2)}})
    '{"tool":"read","arguments":{"row":2}}'
    """
    if isinstance(action, np.ndarray) and action.dtype.kind == "U":
        action = _only_element(action)
    if isinstance(action, str):
        return str.__str__(action)
    try:
        return msgspec.json.encode(action, enc_hook=_plain).decode()
    except Exception:  # noqa: BLE001  an object of the agent's may raise anything
        return f"{type(action).__name__} object"


def _plain(value: Any) -> Any:
    """Return a mapping or a value of NumPy as plain Python."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"An action may not hold a {type(value).__name__}.")


def _size(values: Any) -> int:
    """Return the length of a list, tuple or array, -1 for an array of no dimension."""
    if isinstance(values, np.ndarray) and not values.ndim:
        return -1
    return len(values)


def _only_element(values: Any) -> Any:
    """Return the element of an array, list or tuple of one, None for any other."""
    if isinstance(values, np.ndarray):
        return values.reshape(-1)[0] if values.ndim < 2 and values.size == 1 else None
    return values[0] if len(values) == 1 else None

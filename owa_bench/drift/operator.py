"""The decorator `operator`, which makes a drift operator of a function on a world."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Concatenate, TypeVar

import numpy as np
from typing_extensions import override

from owa_bench.errors import DriftError, FieldError, UsageError, one_of
from owa_bench.interfaces import Operator
from owa_bench.records.instance import ANNOUNCEMENTS, Announcement

_World = TypeVar("_World")
_ARGUMENTS = ("target", "intensity", "rng")


class FunctionOperator(Operator):
    """An operator made of a function by `operator`; docstring and module are its."""

    def __init__(
        self,
        change: Callable[..., Any],
        *,
        announcement: Announcement,
        weight: float,
        targets: str | Callable[[Any], Sequence[str]],
        where: Callable[[Any], bool] | None,
        version: int,
        group: str,
        held_out: bool,
    ) -> None:
        _check(announcement, weight, version)
        self.name = change.__name__
        self.announcement = announcement
        self.weight = weight
        self.version = version
        self.group = group
        self.held_out = held_out
        self.__doc__ = change.__doc__
        self.__module__ = change.__module__
        self._change = change
        self._targets = targets
        self._where = where
        self._arguments = tuple(inspect.signature(change).parameters)[1:]
        if not set(self._arguments) <= set(_ARGUMENTS):
            raise UsageError(
                "An operator takes the world and then any of "
                f"{', '.join(_ARGUMENTS)}, got `{self.name}` with "
                f"{', '.join(self._arguments)}."
            )

    @override
    def targets(self, world: Any) -> tuple[str, ...]:
        if not isinstance(self._targets, str):
            found = self._targets(world)
            if isinstance(found, str):
                raise DriftError(
                    f"`targets` of operator `{self.name}` must return several names, "
                    f"got the one text {found!r}."
                )
            return tuple(found)
        return (self._targets,) if self._where is None or self._where(world) else ()

    @override
    def apply(self, world: Any, target: str, intensity: float, *, rng: np.random.Generator) -> Any:
        """Return the changed world; arguments and errors are those of `Operator`.

        Raises: DriftError: the function refuses, or returns nothing, or `target` is not the only
            one.
        """
        if isinstance(self._targets, str) and target != self._targets:
            raise DriftError(f"`target` must be {self._targets!r}, got {target!r}.")
        offered = {"target": target, "intensity": intensity, "rng": rng}
        after = self._change(world, **{name: offered[name] for name in self._arguments})
        if after is None:
            raise DriftError(f"Operator `{self.name}` must return the changed world, got None.")
        return after


def _check(announcement: str, weight: float, version: int) -> None:
    """Refuse what no event of drift can hold."""
    if announcement not in ANNOUNCEMENTS:
        raise FieldError("announcement", announcement, one_of(announcement, ANNOUNCEMENTS))
    if not isinstance(weight, int | float) or not 0 < weight < math.inf:
        raise FieldError("weight", weight, "must be a finite number above 0")
    if not isinstance(version, int) or version < 1:
        raise FieldError("version", version, "must be a whole number, at least 1")


def operator(
    *,
    announcement: Announcement,
    weight: float,
    targets: str | Callable[[Any], Sequence[str]],
    where: Callable[[Any], bool] | None = None,
    group: str = "",
    version: int = 1,
    held_out: bool = False,
) -> Callable[[Callable[Concatenate[_World, ...], _World]], FunctionOperator]:
    """Return a decorator that makes an operator of a function on a world.

    The function takes the world and, by these names, what it needs of `target`, `intensity` and
    `rng`. Its name is the operator's, its docstring has the headings Changes, Leaves alone,
    Announcement, Raises and Source.

    Args:
        announcement: D0 to D3.
        weight: share in the drift of a world, above 0.
        targets: a function from a base world to the names of what may be changed, or the one name
            there is; then `apply` refuses every other.
        where: for one name only: whether a base world has it; None: every one has.
        group: what the operator changes, for calendars and reports; "" for none.
        version: rises with every change of behaviour.
        held_out: it never acts on an instance of practice.
    Raises:
        UsageError: the decorated function takes something else.
        FieldError: `announcement`, `weight` or `version` is outside its range.
    """
    return partial(
        FunctionOperator,
        announcement=announcement,
        weight=weight,
        targets=targets,
        where=where,
        group=group,
        version=version,
        held_out=held_out,
    )

"""Edits of a register that operators share: notices issued at the end of a day."""

from collections.abc import Sequence

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.errors import DriftError
from owa_bench.worlds.recall import Notice, RecallWorld

_STYLES = 1 << 16


def issue(world: RecallWorld, notices: Sequence[Notice], rng: Generator) -> RecallWorld:
    """Return the world with more notices, each the last of its day.

    Args:
        world: A world with a register.
        notices: Without numbers and styles.
        rng: Draws the sentences.
    Returns: The world; numbers still rise in order of issue.
    """
    last: dict[int, int] = {}
    for notice in world.notices:
        last[notice.day] = max(last.get(notice.day, 0), notice.number)
    styles = rng.integers(_STYLES, size=len(notices)).tolist()
    added = []
    for notice, style in zip(notices, styles, strict=True):
        last[notice.day] += 1
        added.append(replace(notice, number=last[notice.day], style=style))
    every = sorted((*world.notices, *added), key=lambda notice: notice.number)
    return replace(world, notices=tuple(every))


def other_value(
    world: RecallWorld, relation: str, values: Sequence[str], rng: Generator
) -> str:
    """Return a value of a relation that is none of some.

    Args:
        world: Knows the values.
        relation: One of its relations.
        values: Those that are left out.
        rng: Draws among the others.
    Returns: The value.
    """
    free = [value for value in world.values[relation] if value not in values]
    return free[int(rng.integers(len(free)))]


def named_part(target: str, prefix: str, names: Sequence[str]) -> str:
    """Return what a target names.

    Args:
        target: "prefix/name".
        prefix: The kind of target.
        names: The names there are.
    Returns: The name.
    Raises: DriftError: it names none of them.
    """
    kind, _, name = target.partition("/")
    if kind != prefix or name not in names:
        known = ", ".join(names) or "none"
        raise DriftError(f"`target` must be {prefix}/.. ({known}), got `{target}`.")
    return name

"""Operators on libraries: names, arguments, results and numbers of versions.

An index keeps one version of a library, so publishing another withdraws the one before.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.drift.operator import operator
from owa_bench.envs.projforge.world import (
    DAYS,
    Export,
    Library,
    ProjectWorld,
    Rounding,
    library_of,
    publish,
    with_library,
)
from owa_bench.errors import DriftError
from owa_bench.seeding import pick

_NAMES = ("compute_{}", "{}_amount", "apply_{}", "{}_of")
_ROUNDINGS: tuple[Rounding, ...] = ("down", "up")
_CHANGES = ((10, 0), (100, 0), (1, 1), (2, 0))  # scale and offset


def _each(prefix: str) -> Callable[[ProjectWorld], Sequence[str]]:
    """Return the targets of an operator: every library, under its prefix."""
    return lambda world: tuple(f"{prefix}/{lib.name}" for lib in world.libraries)


def _stay(library: Library, change: Callable[[Export], Export]) -> tuple[Export, ...]:
    """Return the exports with those that stay changed."""
    return tuple(e if e.until else change(e) for e in library.exports)


@operator(announcement="D1", weight=1.0, targets=_each("name"), group="libraries")
def major_rename(world: ProjectWorld, target: str, rng: Generator) -> ProjectWorld:
    """Give every function of a library another name, in a major version.

    Changes: names; the changelog lists them, unless it is one that tells nothing.
    Leaves alone: arguments and results.
    Announcement: D1 (the changelog tells). Weight: 1.
    Raises: DriftError if `target` names no library.
    Source: docs/projforge.md#operators.
    """
    library = library_of(world, target, "name")
    form = pick(_NAMES, rng)
    exports = _stay(library, lambda e: replace(e, name=form.format(e.rule)))
    pairs = zip(library.exports, exports, strict=True)
    lines = [f"- renamed: `{a.name}` is now `{b.name}`" for a, b in pairs if a.name != b.name]
    if not lines:
        raise DriftError(f"`target` must not be renamed already, got `{target}`.")
    return publish(world, library, exports, part="major", line="\n".join(lines), rng=rng)


@operator(announcement="D1", weight=0.9, targets=_each("order"), group="libraries")
def signature_change(world: ProjectWorld, target: str, rng: Generator) -> ProjectWorld:
    """Exchange the two arguments of every function of a library.

    Changes: the order of arguments; the changelog tells, unless it tells nothing.
    Leaves alone: names and results.
    Announcement: D1 (the changelog tells). Weight: 0.9.
    Raises: DriftError if `target` names no library.
    Source: docs/projforge.md#operators.
    """
    library = library_of(world, target, "order")
    exports = _stay(library, lambda e: replace(e, order=e.order[::-1]))
    lines = [f"- arguments: `{e.name}({', '.join(e.order)})`" for e in exports if not e.until]
    return publish(world, library, exports, part="major", line="\n".join(lines), rng=rng)


@operator(announcement="D0", weight=0.5, targets=_each("alias"), group="libraries")
def deprecation_with_sunset(world: ProjectWorld, target: str, intensity: float) -> ProjectWorld:
    """Rename every function of a library and keep the old names until a day.

    Changes: names; the old ones warn, and are gone from the day that is told.
    Leaves alone: arguments and results.
    Announcement: D0 (the changelog and the warning tell the day). Weight: 0.5.
    Raises: DriftError if `target` names no library.
    Source: docs/projforge.md#operators.
    """
    library = library_of(world, target, "alias")
    until = DAYS - max(int(intensity * 6), 1)
    kept = [e if e.until else replace(e, until=until) for e in library.exports]
    renamed = _stay(library, lambda e: replace(e, name=f"{e.name}_now"))
    added = [e for e in renamed if not e.until]
    old = [e for e in library.exports if not e.until]
    lines = [
        f"- deprecated: `{a.name}` goes on day {until}, use `{b.name}`"
        for a, b in zip(old, added, strict=True)
    ]
    exports = (*kept, *added)
    return publish(world, library, exports, part="minor", line="\n".join(lines))


def _patched(
    world: ProjectWorld, library: Library, change: Callable[[Export], Export]
) -> ProjectWorld:
    """Return the world with a patch version whose changelog tells nothing."""
    exports = tuple(change(e) for e in library.exports)
    return publish(world, library, exports, part="patch", line="Maintenance.")


@operator(announcement="D3", weight=1.0, targets=_each("result"), group="libraries")
def behaviour_change(world: ProjectWorld, target: str, rng: Generator) -> ProjectWorld:
    """Return other numbers from every function of a library: scaled or shifted.

    Changes: results, by a scale or an offset that is one for the library.
    Leaves alone: names and arguments; features, whose examples settle it.
    Announcement: D3 (silent). Weight: 1.
    Raises: DriftError if `target` names no library.
    Source: docs/projforge.md#operators.
    """
    library = library_of(world, target, "result")
    scale, offset = pick(_CHANGES, rng)
    return _patched(
        world,
        library,
        lambda e: replace(e, scale=e.scale * scale, offset=e.offset * scale + offset),
    )


@operator(announcement="D3", weight=0.7, targets=_each("default"), group="libraries")
def default_changed(world: ProjectWorld, target: str, rng: Generator) -> ProjectWorld:
    """Round otherwise where a caller does not say how.

    Changes: the default of `rounding` of every function of a library.
    Leaves alone: calls that say how; features, whose examples settle it.
    Announcement: D3 (silent). Weight: 0.7.
    Raises: DriftError if `target` names no library.
    Source: docs/projforge.md#operators.
    """
    library, rounding = library_of(world, target, "default"), pick(_ROUNDINGS, rng)
    return _patched(world, library, lambda e: replace(e, rounding=rounding))


@operator(announcement="D2", weight=0.8, targets=_each("number"), group="libraries")
def yanked(world: ProjectWorld, target: str) -> ProjectWorld:
    """Withdraw a library's version and publish the same code as a post release.

    Changes: the number of the version; a pin fails to install.
    Leaves alone: code and changelog.
    Announcement: D2 (the installer's error tells). Weight: 0.8.
    Raises: DriftError if `target` names no library.
    Source: docs/projforge.md#operators.
    """
    library = library_of(world, target, "number")
    return with_library(world, replace(library, post=library.post + 1, kept=""))


@operator(announcement="D2", weight=0.9, targets=_each("conflict"), group="libraries")
def transitive_conflict(world: ProjectWorld, target: str, rng: Generator) -> ProjectWorld:
    """Publish a post release of a library that needs another library's next patch.

    Changes: two version numbers; the index has both versions of the other library, and
        the one that was pinned conflicts.
    Leaves alone: code and what the changelogs tell of it.
    Announcement: D2 (the installer's error tells). Weight: 0.9.
    Raises: DriftError if `target` names no library.
    Source: docs/projforge.md#operators.
    """
    library = library_of(world, target, "conflict")
    needed = pick([lib for lib in world.libraries if lib.name != library.name], rng)
    world = publish(world, needed, needed.exports, part="patch", line="Maintenance.")
    number = world.library(needed.name).version(0)
    world = with_library(world, replace(world.library(needed.name), kept=needed.version(0)))
    requires = f"{needed.name}>={number}"
    return with_library(world, replace(library, post=library.post + 1, kept="", requires=requires))

"""Edits of a project's world that operators share: versions that are published."""

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.errors import DriftError
from owa_bench.worlds.project import Export, Library, ProjectWorld

VersionPart = Literal["major", "minor", "patch"]


def library_of(world: ProjectWorld, target: str, prefix: str) -> Library:
    """Return the library that a target names.

    Args:
        world: Its libraries.
        target: "prefix/name".
        prefix: The kind of target.
    Returns: The library.
    Raises: DriftError: it names none.
    """
    kind, _, name = target.partition("/")
    names = [library.name for library in world.libraries]
    if kind != prefix or name not in names:
        raise DriftError(
            f"`target` must be {prefix}/.. ({', '.join(names)}), got `{target}`."
        )
    return world.library(name)


def publish(
    world: ProjectWorld,
    library: Library,
    exports: Sequence[Export],
    *,
    part: VersionPart,
    line: str,
    rng: Generator | None = None,
) -> ProjectWorld:
    """Return the world whose index has a further version of a library.

    Args:
        world: The world.
        library: One of its libraries.
        exports: Those of the further version.
        part: The part of the version's number that rises.
        line: What its changelog says.
        rng: Draws whether the changelog is silent, by the world's share; None: never.
    Returns: The world.
    """
    major, minor, patch = library.number
    number = {
        "major": (major + 1, 0, 0),
        "minor": (major, minor + 1, 0),
        "patch": (major, minor, patch + 1),
    }[part]
    silent = rng is not None and int(rng.integers(1000)) < world.dirty
    text = "Maintenance." if silent else line
    further = replace(library, number=number, post=0, kept="", exports=tuple(exports))
    head = f"## {further.version(0)}"
    further = replace(further, changelog=(*library.changelog, f"{head}\n\n{text}"))
    return with_library(world, further)


def with_library(world: ProjectWorld, library: Library) -> ProjectWorld:
    """Return the world with a library in place of the one of its name.

    Args:
        world: The world.
        library: The library.
    Returns: The world.
    """
    libraries = tuple(
        library if other.name == library.name else other for other in world.libraries
    )
    return replace(world, libraries=libraries)


def announce(world: ProjectWorld, text: str) -> tuple[str, ...]:
    """Return the bulletins with one more.

    Args:
        world: Its bulletins.
        text: The announcement.
    Returns: All, in order.
    """
    return (*world.bulletins, text)

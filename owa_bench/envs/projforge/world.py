"""The world of a software project (features, libraries, terms) and its edits.

A world is integers and text and holds one moment: each library in the version that the index has
now, the terms that the pipeline has now. Operators publish versions and change terms, so nothing of
a later day exists before its day. `project_rules` computes what features must answer,
`project_code` renders libraries, prose and tests.

Source: docs/projforge.md#worlds
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
from msgspec.structs import asdict, replace
from numpy.random import Generator

from owa_bench.canonical import record_digest
from owa_bench.drift.targets import jaccard_distance, named_part

DAYS = 30
DAY_MS = 86_400_000
Rounding = Literal["half_up", "down", "up"]
RuleKind = Literal["rate", "step", "tiers", "surcharge"]
INCIDENT_CAUSES = ("memory", "disk", "certificate", "port")
FeatureStepKind = Literal["word", "number", "apply", "reduce", "adjust", "join"]


class LibraryRule(msgspec.Struct, frozen=True, kw_only=True):
    """A function on integers that a library computes; `table` has a row a level."""

    name: str
    kind: RuleKind
    table: tuple[tuple[int, ...], ...]


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """A rule as the present version of a library offers it.

    It is called `name`, takes its arguments in `order`, rounds by `rounding` unless told otherwise,
    and returns `scale` times the rule's value plus `offset`. `until` is the day on which it is gone
    (0: stays); until then its use warns.
    """

    rule: str
    name: str
    order: tuple[str, ...] = ("amount", "level")
    rounding: Rounding = "half_up"
    scale: int = 1
    offset: int = 0
    until: int = 0


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """A library in the version that the index has last, and its changelog.

    `kept` is the number of an earlier version that the index still has ("": none), `requires` what
    the library asks of another one ("": nothing).
    """

    name: str
    rules: tuple[LibraryRule, ...]
    exports: tuple[Export, ...]
    number: tuple[int, int, int] = (1, 0, 0)
    post: int = 0
    changelog: tuple[str, ...] = ()
    kept: str = ""
    requires: str = ""

    def version(self, day: int) -> str:
        """Return the number of the version on a day: a removal makes another one."""
        major, minor, patch = self.number
        minor += len({e.until for e in self.exports if 0 < e.until <= day})
        post = f".post{self.post}" if self.post else ""
        return f"{major}.{minor}.{patch}{post}"

    def offered(self, day: int) -> tuple[Export, ...]:
        """Return the exports that are there on a day."""
        return tuple(e for e in self.exports if not 0 < e.until <= day)

    def export(self, rule: str) -> Export:
        """Return the export of a rule that stays."""
        return next(e for e in self.exports if e.rule == rule and not e.until)


class FeatureStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step from a request to a feature's answer.

    "word" and "number" keep the rows whose `field` compares to `word` or `value` by `test`; "apply"
    puts each row's amount through a library's rule; "reduce" makes a number of the rows by `how`;
    "adjust" puts that number through a rule; "join" adds, subtracts or compares by `how` what the
    feature `word` answers to the same request.
    """

    kind: FeatureStepKind
    field: str = ""
    test: str = ""
    word: str = ""
    value: int = 0
    how: str = ""
    library: str = ""
    rule: str = ""
    level: int = 0
    rounding: Rounding = "half_up"


class Feature(msgspec.Struct, frozen=True, kw_only=True):
    """A feature, issued on `day` and due on `due`; `style` chooses its wording."""

    name: str
    day: int
    due: int
    weight: int
    steps: tuple[FeatureStep, ...]
    prerequisite: str = ""
    depth: int = 1
    style: int = 0


class ProductionIncident(msgspec.Struct, frozen=True, kw_only=True):
    """Production stops before the morning of `day`, by one of INCIDENT_CAUSES."""

    name: str
    day: int
    cause: str


def _day_of(feature: Feature) -> int:
    return feature.day


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True):
    """The words of a domain: what a row is, its fields, and what its kind may be."""

    row: str
    kind: str
    kinds: tuple[str, ...]
    amount: str
    count: str
    age: str


class ProjectWorld(msgspec.Struct, frozen=True, kw_only=True):
    """A project at one moment.

    `features` are in order of issue, `wishes` nobody waits for. `image` is the label of the
    continuous-integration image, `lock` the file that it installs, `index` the package index that
    serves, `secret` the name of the secret that it takes, `protocol` 2 wraps answers in an object,
    `strict` makes warnings errors, `ci_minutes` are those of a day, `noise` the share of lost runs
    in thousandths, `dirty` that of changes which no changelog tells. `bulletins` are announcements
    of the platform, in order.
    """

    domain: str
    tier: int
    vocabulary: Vocabulary
    libraries: tuple[Library, ...]
    features: tuple[Feature, ...]
    wishes: tuple[Feature, ...] = ()
    incidents: tuple[ProductionIncident, ...] = ()
    days: int = DAYS
    image: str = "py3-a"
    lock: str = "requirements.txt"
    index: str = "main"
    secret: str = "registry-1"  # noqa: S105  a name, no secret
    protocol: int = 1
    strict: bool = False
    ci_minutes: int = 20
    noise: int = 0
    dirty: int = 0
    bulletins: tuple[str, ...] = ()

    def library(self, name: str) -> Library:
        """Return a library by its name."""
        return next(library for library in self.libraries if library.name == name)

    def feature(self, name: str) -> Feature:
        """Return a feature by its name."""
        return next(feature for feature in self.features if feature.name == name)

    def issued(self, day: int) -> tuple[Feature, ...]:
        """Return the features issued by the end of a day."""
        return self.features[: bisect_right(self.features, day, key=_day_of)]

    @property
    def terms(self) -> Mapping[str, object]:
        """The terms of the pipeline, by name."""
        names = ["image", "lock", "index", "secret", "protocol", "strict"]
        names += ["ci_minutes", "noise"]
        return {name: getattr(self, name) for name in names}

    def digest(self) -> str:
        """Return the SHA-256 of the world."""
        return record_digest(self)


def distance(a: ProjectWorld, b: ProjectWorld) -> float:
    """Return the share of exports, rules, features and terms in which worlds differ.

    Args:
        a: One world.
        b: The other.
    Returns: The Jaccard distance of their entries: 0 for equal worlds.
    """
    return jaccard_distance(_entries(a), _entries(b))


def _entries(world: ProjectWorld) -> set[object]:
    libraries = {
        (library.name, *sorted(map(str, asdict(export).items())))
        for library in world.libraries
        for export in library.exports
    }
    numbers = {(lib.name, lib.version(0), lib.requires) for lib in world.libraries}
    return {*libraries, *numbers, *world.features, *world.terms.items()}


VersionPart = Literal["major", "minor", "patch"]


def library_of(world: ProjectWorld, target: str, prefix: str) -> Library:
    """Return the library that a target names.

    Args:
        world: Its libraries.
        target: "prefix/name".
        prefix: The kind of target.
    Raises: DriftError: it names none.
    """
    names = [library.name for library in world.libraries]
    return world.library(named_part(target, prefix, names))


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
    """
    libraries = tuple(library if other.name == library.name else other for other in world.libraries)
    return replace(world, libraries=libraries)


def announce(world: ProjectWorld, text: str) -> tuple[str, ...]:
    """Return the bulletins with one more.

    Args:
        world: Its bulletins.
        text: The announcement.
    Returns: All, in order.
    """
    return (*world.bulletins, text)

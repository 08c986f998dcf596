"""The world of SelfRev: a subject, the components that may change it, and the budgets.

A component sets one option of the subject. Its class says what that does to quality on instances
that nobody has seen; it follows from what the option does, and the effect is played, never looked
up.
"""

import difflib
from collections.abc import Collection, Mapping
from typing import Literal

import msgspec

from owa_bench.canonical import record_digest
from owa_bench.drift.targets import jaccard_distance

RevisionKind = Literal["retrieval", "planner", "tools", "program", "weights"]
RevisionClass = Literal[
    "helpful", "null", "harmful", "interacting", "development_only", "reward_hacking"
]
USEFUL: frozenset[RevisionClass] = frozenset({"helpful", "interacting"})
STREAMS, ADAPTERS = "streams", "adapters"  # the options whose values are joined ..
JOINTS: Mapping[str, str] = {STREAMS: ",", ADAPTERS: "\n"}  # .. and by what
PROGRAM = "program"  # the agent of a subject whose options are files


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """A change that may be adopted: one option of the subject, and its planted class.

    The options of a program are its files: path and text.

    An agent is told `name`, `kind`, `knob` and the two numbers `shown`, which say nothing of the
    option. An interacting component helps only together with `partner`.
    """

    name: str
    kind: RevisionKind
    knob: str
    shown: tuple[int, int]
    option: str
    value: str
    truth: RevisionClass
    partner: str = ""


class RevisionWorld(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a campaign starts from.

    `start` are the options of the first version. `pool` is the number of development instances,
    `attempts` the inner attempts that an agent may ask for, `holdouts` and `pairs` how many tests
    it has and how long one may be, `confirmation` the instances on which the harness compares
    versions at the end.
    """

    family: str
    tier: int
    code: str
    subject: str
    suite: str
    suite_version: int
    families: tuple[str, ...]
    suite_tier: int
    start: tuple[tuple[str, str], ...]
    components: tuple[Component, ...]
    pool: int
    attempts: int
    holdouts: int
    pairs: int
    confirmation: int
    inner_step: int = 0

    @property
    def useful(self) -> frozenset[str]:
        """Names of the components that the best version has."""
        return frozenset(c.name for c in self.components if c.truth in USEFUL)

    def options(self, adopted: Collection[str]) -> tuple[tuple[str, str], ...]:
        """Return the options of the version with these components."""
        options = dict(self.start)
        for component in self.components:
            if component.name not in adopted:
                continue
            value = component.value
            if joint := JOINTS.get(component.option):
                value = joint.join(filter(None, (options[component.option], value)))
            options[component.option] = value
        return tuple(sorted(options.items()))

    def digest(self) -> str:
        """Return the SHA-256 of the world."""
        return record_digest(self)


def lines_changed(first: Mapping[str, str], last: Mapping[str, str]) -> tuple[int, int]:
    """Return how many lines were added and removed between two sets of texts.

    Args:
        first: Text by name.
        last: The same, later.
    """
    added = removed = 0
    for name in first.keys() | last.keys():
        old, new = first.get(name, ""), last.get(name, "")
        marks = [line[:1] for line in difflib.ndiff(old.splitlines(), new.splitlines())]
        added += marks.count("+")
        removed += marks.count("-")
    return added, removed


def distance(a: RevisionWorld, b: RevisionWorld) -> float:
    """Return the share of components and terms in which two worlds differ.

    Args:
        a: One world.
        b: The other.
    Returns: The Jaccard distance of their entries: 0 for equal worlds.
    """
    return jaccard_distance(_entries(a), _entries(b))


def _entries(world: RevisionWorld) -> set[object]:
    names = ("pool", "attempts", "holdouts", "pairs", "inner_step", "suite_tier")
    named = {(name, getattr(world, name)) for name in names}
    return {*world.components, *world.start, *named}

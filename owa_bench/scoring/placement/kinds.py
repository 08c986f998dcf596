"""Kinds of tools in a placement: which are in use, and which may still come into use."""

from collections.abc import Mapping
from typing import NamedTuple

from owa_bench.records.placement import KIND_TRIES


class KindUse(NamedTuple):
    """What a placement saw of one kind of tool, under drift and without help.

    Attributes:
        needed: Worlds that were played and need the kind.
        used: Worlds of those in which it was used with success.
        suites: The suites of the former, with commas between.
    """

    needed: int
    used: int
    suites: str = ""


class KindCount(NamedTuple):
    """The kinds of tools that the worlds played so far need, against what a gate asks for.

    Attributes:
        kinds: What was seen of each kind.
        asked: Kinds that are to be in use.
        least: Worlds with success from which on a kind is in use.
    """

    kinds: Mapping[str, KindUse]
    asked: int
    least: int

    @property
    def in_use(self) -> tuple[str, ...]:
        """The kinds in use."""
        return tuple(kind for kind, seen in self.kinds.items() if seen.used >= self.least)

    @property
    def enough(self) -> bool:
        """Whether as many are in use as the gate asks for."""
        return len(self.in_use) >= self.asked

    @property
    def hopeless(self) -> bool:
        """Whether so many kinds are given up that too few are left.

        A kind is given up where it is not in use after KIND_TRIES worlds that need it. A kind that
        no world needs is none, so where all worlds need fewer kinds than the gate asks for nobody
        can pass.
        """
        left = (seen.used >= self.least or seen.needed < KIND_TRIES for seen in self.kinds.values())
        return sum(left) < self.asked

    @property
    def words(self) -> str:
        """How many are in use; where too few, which, and where the others were needed."""
        said = f"{len(self.in_use)} of {self.asked} kinds of tools"
        if self.enough or not self.kinds:
            return said
        groups: dict[KindUse, list[str]] = {}
        for kind, seen in self.kinds.items():
            if seen.used < self.least:
                groups.setdefault(seen, []).append(kind)
        lacking = [
            f"{', '.join(names)} in {seen.used} of {seen.needed} worlds of {seen.suites}"
            for seen, names in groups.items()
        ]
        others = "; ".join(lacking) or "no world needs another"
        return f"{said}: {', '.join(self.in_use) or 'none'}; {others}"

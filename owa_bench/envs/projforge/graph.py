"""The fast twin's product: a graph of features over the contracts they assume.

No code is run. A product assumes a contract of each library and of the pipeline; what it builds
works on a day where it assumes what holds then.

Source: docs/projforge.md#the-fast-twin
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from owa_bench.envs.projforge.scores import ProjectScores
from owa_bench.envs.projforge.world import Feature, Library, ProjectWorld

PipelineTerms = tuple[Any, ...]
READINGS = 4  # ways to understand a feature's prose


class LibraryContract(NamedTuple):
    """What a caller of a library assumes: version, names, arguments, results."""

    version: str
    names: tuple[str, ...]
    order: tuple[str, ...]
    results: tuple[tuple[int, int, str], ...]


class GraphProduct(msgspec.Struct, frozen=True, kw_only=True):
    """Readings of what is built, and the contracts and pipeline terms assumed."""

    built: Mapping[str, int] = {}
    contracts: Mapping[str, LibraryContract] = {}
    terms: PipelineTerms = ()


class GraphState(msgspec.Struct, frozen=True, kw_only=True):
    """Where a project stands; `failing` is what the last run of integration showed.

    `spent` are the steps of the day, `minutes` those of integration, `ran` is the product of the
    last run and whether it was green. `forecast`: one was made.
    """

    world: ProjectWorld
    product: GraphProduct
    deployed: GraphProduct | None = None
    day: int = 0
    spent: int = 0
    minutes: int = 0
    ran: tuple[GraphProduct, bool] | None = None
    failing: Mapping[str, str] = {}
    released: frozenset[str] = frozenset()
    forecast: bool = False
    scores: ProjectScores = ProjectScores()

    @property
    def over(self) -> bool:
        """Whether the last day has passed."""
        return self.day >= self.world.days

    @property
    def unbuilt(self) -> tuple[Feature, ...]:
        """The issued features that are not built, in order of issue."""
        built = self.product.built
        return tuple(f for f in self.world.issued(self.day) if f.name not in built)


def right_reading(feature: Feature) -> int:
    """Return the one of READINGS readings of a feature's prose that is meant."""
    return feature.style % READINGS


def terms_of(world: ProjectWorld) -> PipelineTerms:
    """Return the pipeline's terms that a product must meet."""
    return world.image, world.index, world.secret, world.lock, world.protocol


def contract_of(library: Library, day: int) -> LibraryContract:
    """Return the contract that holds on a day.

    Args:
        library: The library.
        day: The day.
    Returns: The contract of the exports that stay.
    """
    stay = [e for e in library.exports if not e.until]
    return LibraryContract(
        version=library.version(day),
        names=tuple(e.name for e in stay),
        order=stay[0].order,
        results=tuple((e.scale, e.offset, e.rounding) for e in stay),
    )


_MEMO: dict[tuple[int, int], tuple[ProjectWorld, dict[str, LibraryContract]]] = {}
_MOST = 256  # worlds and days that are remembered


def contracts_of(world: ProjectWorld, day: int) -> Mapping[str, LibraryContract]:
    """Return the contract of every library on a day; the last ones are remembered.

    Args:
        world: The world of the day.
        day: The day.
    """
    known = _MEMO.get((id(world), day))
    if known is None or known[0] is not world:
        if len(_MEMO) >= _MOST:
            _MEMO.clear()
        found = {library.name: contract_of(library, day) for library in world.libraries}
        known = _MEMO[id(world), day] = world, found
    return known[1]


def first_product(world: ProjectWorld) -> GraphProduct:
    """Return an empty product on the first day's contracts."""
    return GraphProduct(contracts=dict(contracts_of(world, 0)), terms=terms_of(world))


def faults(world: ProjectWorld, product: GraphProduct, day: int) -> dict[str, str]:
    """Return why parts of a product fail on a day, as a run would show it.

    Args:
        world: The world of the day.
        product: The product.
        day: The day.
    Returns: Fault by part: "pipeline", or names of libraries. A pipeline that fails hides
        everything else, an installation that fails hides calls and results.
    """
    if product.terms != terms_of(world):
        return {"pipeline": "terms"}
    now, held = contracts_of(world, day), product.contracts
    pins = [name for name, due in now.items() if held[name].version != due.version]
    if pins:
        return dict.fromkeys(pins, "install")
    return {
        lib.name: fault
        for lib in world.libraries
        if held[lib.name] != now[lib.name]
        and (fault := _fault(lib, held[lib.name], now[lib.name], world.strict, day))
    }


def _fault(
    library: Library, held: LibraryContract, now: LibraryContract, strict: bool, day: int
) -> str:
    """Return how calls by a held contract fail, "" where they do not."""
    if held.names != now.names:
        offered = {e.name for e in library.offered(day)}
        if strict or not set(held.names) <= offered:
            return "names"
    if held.order != now.order or held.results != now.results:
        return "answers"
    return ""


def working(world: ProjectWorld, product: GraphProduct, day: int) -> frozenset[str]:
    """Return the built features that answer rightly on a day.

    Args:
        world: The world of the day.
        product: The product.
        day: The day.
    Returns: Names of features.
    """
    return _working(world, product, faults(world, product, day))


def _working(
    world: ProjectWorld, product: GraphProduct, found: Mapping[str, str]
) -> frozenset[str]:
    if "pipeline" in found or "install" in found.values():
        return frozenset()
    right: set[str] = set()
    for feature in world.features:
        reading = product.built.get(feature.name)
        if reading == right_reading(feature) and _stands(feature, found, right):
            right.add(feature.name)
    return frozenset(right)


def misread(
    world: ProjectWorld, product: GraphProduct, found: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the features whose examples fail although all they build on works.

    Args:
        world: The world of the day.
        product: The product.
        found: Its faults of the day.
    Returns: Names, in order of issue.
    """
    right = set(_working(world, product, found))
    if "pipeline" in found or "install" in found.values():
        return ()
    return tuple(
        f.name
        for f in world.features
        if f.name in product.built and f.name not in right and _stands(f, found, right)
    )


def _stands(feature: Feature, found: Mapping[str, str], right: set[str]) -> bool:
    base = feature.prerequisite
    if base and base not in right:
        return False
    return not (found and any(step.library in found for step in feature.steps))


def told_order(library: Library) -> tuple[str, ...]:
    """Return the order of arguments that the changelog tells."""
    turns = sum("- arguments:" in entry for entry in library.changelog)
    return ("amount", "level") if turns % 2 == 0 else ("level", "amount")

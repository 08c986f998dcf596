"""Operators on a vendor's documents: out of date, or announcing an end."""

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.errors import DriftError
from owa_bench.interfaces import operator
from owa_bench.seeding import pick
from owa_bench.worlds.api import ApiResource, ApiWorld, Provider
from owa_bench.worlds.api_edits import (
    announce_resource,
    free_paths,
    live_providers,
    live_resources,
    locate_provider,
    locate_resource,
    resources_where,
)


def _misplaceable(
    world: ApiWorld, provider: Provider
) -> list[tuple[ApiResource, list[str]]]:
    """Return the live resources of a vendor with the paths it has never served."""
    served = (provider.contract, provider.original)
    return [
        (resource, paths)
        for owner, resource in live_resources(world)
        if owner.key == provider.key and (paths := free_paths(resource, *served))
    ]


def _current_documents(world: ApiWorld) -> tuple[str, ...]:
    """Return every live provider whose documents follow and can be made false."""
    return tuple(
        provider.key
        for provider in live_providers(world)
        if not provider.docs_frozen and _misplaceable(world, provider)
    )


@operator(
    announcement="D0",
    weight=0.3,
    targets=resources_where(lambda resource: not resource.sunset),
)
def soft_deprecation(world: ApiWorld, target: str, rng: Generator) -> ApiWorld:
    """Mark one collection as deprecated; it works on.

    Changes: replies carry Deprecation and Sunset; the documents mark it.
    Leaves alone: everything that is served.
    Announcement: D0 (announced, compatible). Weight: 0.3.
    Raises: DriftError if `target` names no resource, or one that is deprecated already.
    Source: docs/toolquest.md#operators (soft deprecation).
    """
    _, resource = locate_resource(world, target)
    if resource.sunset:
        raise DriftError(
            f"`{target}` must not be deprecated yet, got {resource.sunset!r}."
        )
    sunset = f"2032-{int(rng.integers(1, 13)):02d}-01"
    note = f"{resource.path} is deprecated and will be switched off on {sunset}."
    return announce_resource(
        world, target, lambda old: replace(old, sunset=sunset), note
    )


@operator(announcement="D2", weight=1.0, targets=_current_documents)
def stale_docs(world: ApiWorld, target: str, rng: Generator) -> ApiWorld:
    """Put back a vendor's first documents, freeze them, and falsify one path.

    Changes: `documented` is the original contract again and no longer follows; the path
        of one collection that the task rests on is false in it, so that the operator
        bites alone.
    Leaves alone: everything that is served.
    Announcement: D2 (undocumented; a 404 shows it). Weight: 1.
    Raises: DriftError if `target` names no provider, or one whose documents are frozen
        or whose collections the task does not need.
    Source: docs/toolquest.md#operators (stale docs).
    """
    provider = locate_provider(world, target)
    candidates = _misplaceable(world, provider)
    if provider.docs_frozen or not candidates:
        raise DriftError(
            f"`{target}` must have documents that follow it, got frozen ones."
        )
    resource, paths = pick(candidates, rng)
    false = replace(provider.original.resource(resource.key), path=pick(paths, rng))
    stale = provider.original.with_resource(false)
    return world.with_provider(replace(provider, documented=stale, docs_frozen=True))

"""Operators on a vendor's documents, and on what no document announces."""

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.drift.operator import operator
from owa_bench.envs.toolquest.world import OTHER_UNITS, ApiResource, ApiWorld, Field, Provider
from owa_bench.envs.toolquest.world_edits import (
    announce_resource,
    fields_where,
    free_paths,
    live_providers,
    live_resources,
    locate_field,
    locate_provider,
    locate_resource,
    parameters_to_come,
    resources_where,
    serve_field,
)
from owa_bench.errors import DriftError
from owa_bench.seeding import pick


def _misplaceable(world: ApiWorld, provider: Provider) -> list[tuple[ApiResource, list[str]]]:
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
    announcement="D0", weight=0.3, targets=resources_where(lambda resource: not resource.sunset)
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
        raise DriftError(f"`{target}` must not be deprecated yet, got {resource.sunset!r}.")
    sunset = f"2032-{int(rng.integers(1, 13)):02d}-01"
    note = f"{resource.path} is deprecated and will be switched off on {sunset}."
    return announce_resource(world, target, lambda old: replace(old, sunset=sunset), note)


@operator(announcement="D2", weight=1.0, targets=_current_documents)
def stale_docs(world: ApiWorld, target: str, rng: Generator) -> ApiWorld:
    """Put back a vendor's first documents, freeze them, and falsify one path.

    Changes: `documented` is the original contract again and no longer follows; the path
        of one collection that the task rests on is false in it, so that the operator
        bites alone.
    Leaves alone: everything that is served.
    Announcement: D2 (undocumented; a 404 shows it). Weight: 1.
    Raises: DriftError if `target` names no provider, or one whose documents are frozen or whose
        collections the task does not need.
    Source: docs/toolquest.md#operators (stale docs).
    """
    provider = locate_provider(world, target)
    candidates = _misplaceable(world, provider)
    if provider.docs_frozen or not candidates:
        raise DriftError(f"`{target}` must have documents that follow it, got frozen ones.")
    resource, paths = pick(candidates, rng)
    false = replace(provider.original.resource(resource.key), path=pick(paths, rng))
    stale = provider.original.with_resource(false)
    return world.with_provider(replace(provider, documented=stale, docs_frozen=True))


# --- changes of the contract that no document announces -------------------------------


def _other_names(field: Field) -> list[str]:
    """Return the names that the first choice of an enum could go by."""
    if not field.choices:
        return []
    names = {choice.name for choice in field.choices}
    return [name for name in field.choices[0].aliases if name not in names]


@operator(
    announcement="D3",
    weight=0.5,
    held_out=True,
    targets=fields_where(lambda field: field.bound and not field.shift),
)
def date_bound(world: ApiWorld, target: str) -> ApiWorld:
    """Serve the bound of one date field a day early.

    Changes: every value of the field on the wire.
    Leaves alone: documents, names, types, rows, the flag that says whether the bound is
        included. Rows no longer meet without a gap, so looking at two neighbours shows
        it.
    Announcement: D3 (silent). Weight: 0.5.
    Raises: DriftError if `target` names no field, or one that is no bound.
    Source: docs/toolquest.md#operators (date bound off by one).
    """
    _, _, field = locate_field(world, target)
    if not field.bound or field.shift:
        raise DriftError(f"`{target}` must be a bound served as it is, got {field.key!r}.")
    return serve_field(world, target, replace(field, shift=-1))


@operator(announcement="D3", weight=0.5, targets=fields_where(_other_names))
def enum_rename(world: ApiWorld, target: str, rng: Generator) -> ApiWorld:
    """Serve the value of an enum that matters most under another name.

    Changes: the first choice of the field on the wire, in replies and filters.
    Leaves alone: documents, the other choices, rows. The old name is no longer served
        and the new one is not documented, so looking at the values shows it.
    Announcement: D3 (silent). Weight: 0.5.
    Raises: DriftError if `target` names no field, or an enum whose first choice has no other name.
    Source: docs/toolquest.md#operators (enum rename).
    """
    _, _, field = locate_field(world, target)
    options = _other_names(field)
    if not options:
        raise DriftError(f"`{target}` must be an enum with a free name, got {field.choices!r}.")
    first, *rest = field.choices
    choices = (replace(first, name=pick(options, rng)), *rest)
    return serve_field(world, target, replace(field, choices=choices))


@operator(
    announcement="D3", weight=0.7, targets=fields_where(lambda field: field.unit in OTHER_UNITS)
)
def silent_units(world: ApiWorld, target: str) -> ApiWorld:
    """Serve (and accept) one money field in the other unit.

    Changes: the unit of the field on the wire, cents to dollars or back.
    Leaves alone: documents, names, types, rows, and the vendor's control totals, which
        are always in cents and so show the change to whoever adds up.
    Announcement: D3 (silent). Weight: 0.7.
    Raises: DriftError if `target` names no field, or one that is not money.
    Source: docs/toolquest.md#operators (silent units).
    """
    _, _, field = locate_field(world, target)
    if field.unit not in OTHER_UNITS:
        raise DriftError(f"`{target}` must be a money field, got kind {field.kind!r}.")
    return serve_field(world, target, replace(field, unit=OTHER_UNITS[field.unit]))


@operator(announcement="D2", weight=0.4, held_out=True, targets=resources_where(parameters_to_come))
def untold_parameter(world: ApiWorld, target: str, rng: Generator) -> ApiWorld:
    """Require one query parameter of one collection's list, undocumented.

    Changes: lists without the parameter answer 400, which names it and its value.
    Leaves alone: documents, rows, paths, fields, paging, writes.
    Announcement: D2 (undocumented; a 400 shows it). Weight: 0.4.
    Raises: DriftError if `target` names no resource, or one without a parameter to come.
    Source: docs/toolquest.md#operators (required parameter; its weight of 0.8 is
        shared with required_parameter, one class each).
    """
    provider, resource = locate_resource(world, target)
    options = parameters_to_come(resource)
    if not options:
        raise DriftError(f"`{target}` must have a parameter to come, got none.")
    required = (*resource.required, pick(options, rng))
    served = provider.contract.with_resource(replace(resource, required=required))
    return world.with_provider(replace(provider, contract=served))

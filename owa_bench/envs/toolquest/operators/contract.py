"""Operators on a vendor's contract that its documents announce."""

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.drift.operator import operator
from owa_bench.envs.toolquest.world import (
    OTHER_UNITS,
    PAGERS,
    STYLES,
    WRAPPERS,
    ApiResource,
    ApiWorld,
    Field,
    Pager,
    Provider,
)
from owa_bench.envs.toolquest.world_edits import (
    announce,
    announce_field,
    announce_resource,
    documented_resource,
    fields_where,
    free_paths,
    live_resources,
    locate_field,
    locate_provider,
    locate_resource,
    next_version,
    parameters_to_come,
    providers_where,
    resources_where,
)
from owa_bench.errors import DriftError
from owa_bench.seeding import pick


def _aliases(provider: Provider, resource: ApiResource, field: Field) -> list[str]:
    """Return the aliases that no field of the resource has, served or documented."""
    shown = documented_resource(provider, resource)
    names = {other.name for other in (*resource.fields, *shown.fields)}
    return [name for name in field.aliases if name not in names]


def _renameable(world: ApiWorld) -> tuple[str, ...]:
    """Return provider/resource/field of every field that has a free alias."""
    return tuple(
        f"{provider.key}/{resource.key}/{field.key}"
        for provider, resource in live_resources(world)
        for field in resource.fields
        if _aliases(provider, resource, field)
    )


@operator(announcement="D1", weight=1.0, targets=_renameable)
def field_rename(world: ApiWorld, target: str, rng: Generator) -> ApiWorld:
    """Rename one field of one resource.

    Changes: the field's name in requests and replies; the documents follow.
    Leaves alone: rows, descriptions, units, paths, auth, paging, every other field.
    Announcement: D1 (documented, breaking). Weight: 1.
    Raises: DriftError if `target` names no field, or one without another name.
    Source: docs/toolquest.md#operators (field rename).
    """
    provider, resource, field = locate_field(world, target)
    options = _aliases(provider, resource, field)
    if not options:
        raise DriftError(f"`{target}` must have a free alias, got {field.aliases!r}.")
    name = pick(options, rng)
    note = f"{resource.path}: field `{field.name}` is now called `{name}`."
    return announce_field(world, target, lambda old: replace(old, name=name), note)


@operator(
    announcement="D1",
    weight=0.4,
    held_out=True,
    targets=fields_where(lambda field: field.identifier and not field.writable),
)
def id_format(world: ApiWorld, target: str, rng: Generator) -> ApiWorld:
    """Serve the identifiers of one field in another format.

    Changes: how the field is written on the wire; the documents follow.
    Leaves alone: rows, names, other fields: references to the rows keep the format they
        had.
    Announcement: D1 (documented, breaking). Weight: 0.4.
    Raises: DriftError if `target` names no field, or one that is no identifier.
    Source: docs/toolquest.md#operators (id format).
    """
    _, resource, field = locate_field(world, target)
    if not field.identifier or field.writable:
        raise DriftError(f"`{target}` must be an identifier only read, got {field.key!r}.")
    style = pick([style for style in STYLES if style != field.style], rng)
    note = f"{resource.path}: the format of `{field.name}` has changed."
    return announce_field(world, target, lambda old: replace(old, style=style), note)


@operator(
    announcement="D1",
    weight=1.0,
    targets=resources_where(lambda resource: resource.pager.kind != "none"),
)
def pager_swap(world: ApiWorld, target: str, rng: Generator) -> ApiWorld:
    """Replace the paging of one collection by another kind, page size kept.

    Changes: the resource's pager kind; the documents follow.
    Leaves alone: rows, fields, path, wrapper, page size, auth. A bare list never gets a
        cursor, which would have no place in the reply.
    Announcement: D1 (documented, breaking). Weight: 1.
    Raises: DriftError if `target` names no resource, or one that has no pages.
    Source: docs/toolquest.md#operators (pager swap).
    """
    _, resource = locate_resource(world, target)
    if resource.pager.kind == "none":
        raise DriftError(f"`{target}` must be a paged collection, got one without pages.")
    options = [
        kind
        for kind in resource.other_pagers or PAGERS
        if kind != resource.pager.kind and (kind != "cursor" or resource.wrapper)
    ]
    pager = Pager(kind=pick(options, rng), size=resource.pager.size)
    note = f"{resource.path}: pages are now asked for by {pager.kind}."
    return announce_resource(world, target, lambda old: replace(old, pager=pager), note)


@operator(
    announcement="D1", weight=1.0, targets=resources_where(lambda resource: resource.other_paths)
)
def path_rename(world: ApiWorld, target: str, rng: Generator) -> ApiWorld:
    """Serve one collection under another path; the old one answers 404.

    Changes: the resource's path; the documents follow.
    Leaves alone: rows, fields, wrapper, paging, auth, every other resource.
    Announcement: D1 (documented, breaking). Weight: 1.
    Raises: DriftError if `target` names no resource, or one with nowhere to go.
    Source: docs/toolquest.md#operators (path rename).
    """
    provider, resource = locate_resource(world, target)
    options = free_paths(resource, provider.contract, provider.documented)
    if not options:
        raise DriftError(f"`{target}` must have a free path, got {resource.other_paths!r}.")
    path = pick(options, rng)
    note = f"`{resource.path}` has moved to `{path}`; the old path is gone."
    return announce_resource(world, target, lambda old: replace(old, path=path), note)


@operator(announcement="D1", weight=0.4, targets=resources_where(parameters_to_come))
def required_parameter(world: ApiWorld, target: str, rng: Generator) -> ApiWorld:
    """Require one query parameter of one collection's list.

    Changes: lists without the parameter answer 400; the documents follow.
    Leaves alone: rows, paths, fields, paging, writes.
    Announcement: D1 (documented, breaking). Weight: 0.4.
    Raises: DriftError if `target` names no resource, or one without a parameter to come.
    Source: docs/toolquest.md#operators (required parameter; its weight of 0.8 is
        shared with untold_parameter, one class each).
    """
    _, resource = locate_resource(world, target)
    options = parameters_to_come(resource)
    if not options:
        raise DriftError(f"`{target}` must have a parameter to come, got none.")
    parameter = pick(options, rng)

    def require(old: ApiResource) -> ApiResource:
        return replace(old, required=(*old.required, parameter))

    note = f"{resource.path}: `{parameter.name}` is required from now on."
    return announce_resource(world, target, require, note)


@operator(
    announcement="D1", weight=0.7, targets=fields_where(lambda field: field.unit in OTHER_UNITS)
)
def units(world: ApiWorld, target: str) -> ApiWorld:
    """Serve (and accept) one money field in the other unit, and say so.

    Changes: the unit of the field on the wire, cents to dollars or back; the documents
        switch theirs too.
    Leaves alone: names, types, rows, control totals.
    Announcement: D1 (documented, breaking). Weight: 0.7.
    Raises: DriftError if `target` names no field, or one that is not money.
    Source: docs/toolquest.md#operators (units).
    """
    _, resource, field = locate_field(world, target)
    if field.unit not in OTHER_UNITS:
        raise DriftError(f"`{target}` must be a money field, got kind {field.kind!r}.")

    def switch(old: Field) -> Field:
        return replace(old, unit=OTHER_UNITS[old.unit])

    note = f"{resource.path}: the unit of `{field.name}` has changed."
    return announce_field(world, target, switch, note)


@operator(announcement="D0", weight=0.25, targets=providers_where())
def version_added(world: ApiWorld, target: str) -> ApiWorld:
    """Move every collection of a vendor one version on; old paths are served on.

    Changes: the version in every path; old paths answer as before, with Deprecation and
        a Link to their successor; the documents describe the new ones.
    Leaves alone: rows, fields, wrappers, paging, auth.
    Announcement: D0 (announced, compatible). Weight: 0.25.
    Raises: DriftError if `target` names no provider.
    Source: docs/toolquest.md#operators (version bump; its weight of 0.5 is shared
        by version_bump and version_added, one class each).
    """
    provider = locate_provider(world, target)
    note = "The API has a new version; the old paths are deprecated and still served."
    return announce(world, provider, lambda old: next_version(old, 200), note)


@operator(announcement="D1", weight=0.25, targets=providers_where())
def version_bump(world: ApiWorld, target: str) -> ApiWorld:
    """Move every collection of a vendor one version on; old paths are gone.

    Changes: the version in every path; old paths answer 410 with a Link to their
        successor; the documents follow.
    Leaves alone: rows, fields, wrappers, paging, auth.
    Announcement: D1 (documented, breaking). Weight: 0.25.
    Raises: DriftError if `target` names no provider.
    Source: docs/toolquest.md#operators (version bump; its weight of 0.5 is shared
        by version_bump and version_added, one class each).
    """
    provider = locate_provider(world, target)
    note = "The API is now at its next version; the old paths are gone."
    return announce(world, provider, lambda old: next_version(old, 410), note)


@operator(announcement="D1", weight=0.7, targets=resources_where())
def wrapper_swap(world: ApiWorld, target: str, rng: Generator) -> ApiWorld:
    """Put the list of one collection under another key of the reply.

    Changes: the resource's wrapper; the documents follow.
    Leaves alone: rows, fields, path, paging, auth. A list paged by cursor is never left
        bare, since its cursor would have no place.
    Announcement: D1 (documented, breaking). Weight: 0.7.
    Raises: DriftError if `target` names no resource.
    Source: docs/toolquest.md#operators (wrapper swap).
    """
    _, resource = locate_resource(world, target)
    bare = resource.pager.kind != "cursor"
    pool = resource.other_wrappers or WRAPPERS
    wrapper = pick([w for w in pool if w != resource.wrapper and (w or bare)], rng)
    place = f"under `{wrapper}`" if wrapper else "as a bare array"
    note = f"{resource.path}: the list is now returned {place}."
    return announce_resource(world, target, lambda old: replace(old, wrapper=wrapper), note)

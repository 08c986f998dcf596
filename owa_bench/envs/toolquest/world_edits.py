"""_Targets, look-ups and edits that operators on API worlds share.

A target is a path of canonical keys: "provider", "provider/resource" or "provider/resource/field".
"""

from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from owa_bench.envs.toolquest.world import (
    ApiResource,
    ApiWorld,
    AuthKind,
    Contract,
    Field,
    Former,
    Parameter,
    Provider,
    Secret,
)
from owa_bench.errors import DriftError

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
_Targets = Callable[[ApiWorld], tuple[str, ...]]


# --- targets --------------------------------------------------------------------------


def live_providers(world: ApiWorld) -> tuple[Provider, ...]:
    """Return the providers that the task depends on, in order of first use."""
    keys = dict.fromkeys(provider for provider, _ in world.needed)
    return tuple(world.provider(key) for key in keys)


def live_resources(world: ApiWorld) -> tuple[tuple[Provider, ApiResource], ...]:
    """Return the resources that the task depends on, each with its provider."""
    pairs = dict.fromkeys(world.needed)
    providers = ((world.provider(provider), key) for provider, key in pairs)
    return tuple((owner, owner.contract.resource(key)) for owner, key in providers)


def providers_where(condition: Callable[[Provider], object] | None = None) -> _Targets:
    """Return the targets PROVIDER: live ones, all or those that meet a condition."""

    def targets(world: ApiWorld) -> tuple[str, ...]:
        return tuple(
            provider.key
            for provider in live_providers(world)
            if condition is None or condition(provider)
        )

    return targets


def resources_where(condition: Callable[[ApiResource], object] | None = None) -> _Targets:
    """Return the targets PROVIDER/RESOURCE: live ones that meet a condition, if any."""

    def targets(world: ApiWorld) -> tuple[str, ...]:
        return tuple(
            f"{provider.key}/{resource.key}"
            for provider, resource in live_resources(world)
            if condition is None or condition(resource)
        )

    return targets


def fields_where(condition: Callable[[Field], object]) -> _Targets:
    """Return the targets PROVIDER/RESOURCE/FIELD: live ones that meet a condition."""

    def targets(world: ApiWorld) -> tuple[str, ...]:
        return tuple(
            f"{provider.key}/{resource.key}/{field.key}"
            for provider, resource in live_resources(world)
            for field in resource.fields
            if condition(field)
        )

    return targets


# --- look-ups -------------------------------------------------------------------------


def locate_provider(world: ApiWorld, target: str) -> Provider:
    """Return the provider that a target begins with.

    Args:
        world: the world as it is now.
        target: a path of keys.
    Raises: DriftError: there is none.
    """
    try:
        return world.provider(target.split("/")[0])
    except KeyError as error:
        raise DriftError(f"`target` must name a provider of this world, got {target!r}.") from error


def locate_resource(world: ApiWorld, target: str) -> tuple[Provider, ApiResource]:
    """Return the resource that a target begins with.

    Args:
        world: the world as it is now.
        target: a path of keys.
    Returns: The provider and, of its contract, the resource.
    Raises: DriftError: there is none.
    """
    provider = locate_provider(world, target)
    try:
        return provider, provider.contract.resource(target.split("/")[1])
    except (KeyError, IndexError) as error:
        raise DriftError(f"`target` must name a resource of this world, got {target!r}.") from error


def locate_field(world: ApiWorld, target: str) -> tuple[Provider, ApiResource, Field]:
    """Return the field that a target names.

    Args:
        world: the world as it is now.
        target: a path of keys.
    Returns: The provider and, of its contract, the resource and the field.
    Raises: DriftError: there is none.
    """
    provider, resource = locate_resource(world, target)
    try:
        return provider, resource, resource.field(target.split("/")[2])
    except (KeyError, IndexError) as error:
        raise DriftError(f"`target` must name a field of this world, got {target!r}.") from error


def documented_resource(provider: Provider, resource: ApiResource) -> ApiResource:
    """Return a resource as the documents describe it.

    Args:
        provider: its vendor.
        resource: the resource as it is served.
    Returns: The documented one; `resource` itself where the documents leave it out.
    """
    try:
        return provider.documented.resource(resource.key)
    except KeyError:
        return resource


def free_paths(resource: ApiResource, *contracts: Contract) -> list[str]:
    """Return the paths that a resource could move to.

    Args:
        resource: the resource.
        contracts: those in which no resource may have the path.
    Returns: The free ones of its `other_paths`.
    """
    used = {other.path for contract in contracts for other in contract.resources}
    return [path for path in resource.other_paths if path not in used]


def parameters_to_come(resource: ApiResource) -> list[Parameter]:
    """Return the query parameters that a list could come to require."""
    return [p for p in resource.other_parameters if p not in resource.required]


# --- edits ----------------------------------------------------------------------------


def announce(
    world: ApiWorld, provider: Provider, change: Callable[[Contract], Contract], note: str
) -> ApiWorld:
    """Return a world with a provider's contract changed and documented.

    Args:
        world: the world as it is now.
        provider: the vendor, with other changes to it made already.
        change: from the old contract to the new one; also applied to the documents.
        note: a line for the changelog. Frozen documents stay as they are.
    """
    documented = provider.documented
    if not provider.docs_frozen:
        documented = change(documented)
        documented = replace(documented, changelog=(*documented.changelog, note))
    contract = change(provider.contract)
    return world.with_provider(replace(provider, contract=contract, documented=documented))


def announce_resource(
    world: ApiWorld, target: str, change: Callable[[ApiResource], ApiResource], note: str
) -> ApiWorld:
    """Return a world with one resource changed and documented.

    Args:
        world: the world as it is now.
        target: a path that begins with PROVIDER/RESOURCE.
        change: from the old resource to the new one; also applied to the documents.
        note: a line for the changelog.
    """
    provider, resource = locate_resource(world, target)

    def edit(contract: Contract) -> Contract:
        return contract.with_resource(change(contract.resource(resource.key)))

    return announce(world, provider, edit, note)


def announce_field(
    world: ApiWorld, target: str, change: Callable[[Field], Field], note: str
) -> ApiWorld:
    """Return a world with one field changed and documented.

    Args:
        world: the world as it is now.
        target: PROVIDER/RESOURCE/FIELD.
        change: from the old field to the new one; also applied to the documents.
        note: a line for the changelog.
    """
    key = target.split("/")[2]

    def edit(old: ApiResource) -> ApiResource:
        fields = tuple(change(f) if f.key == key else f for f in old.fields)
        return replace(old, fields=fields)

    return announce_resource(world, target, edit, note)


def serve_field(world: ApiWorld, target: str, field: Field) -> ApiWorld:
    """Return a world that serves a field another way; its documents stay.

    Args:
        world: the world as it is now.
        target: PROVIDER/RESOURCE/FIELD.
        field: the field as it is served from now on.
    """
    provider, old = locate_resource(world, target)
    fields = tuple(field if f.key == field.key else f for f in old.fields)
    contract = provider.contract.with_resource(replace(old, fields=fields))
    return world.with_provider(replace(provider, contract=contract))


def renumbered(path: str) -> str:
    """Return a path under the next version: /v1/x -> /v2/x, /api/x -> /api/v2/x.

    >>> renumbered("/api/v1/items"), renumbered("/rest/items")
    ('/api/v2/items', '/rest/v2/items')
    """
    parts = path.split("/")
    for i, part in enumerate(parts):
        if part[:1] == "v" and part[1:].isdigit():
            parts[i] = f"v{int(part[1:]) + 1}"
            return "/".join(parts)
    return "/".join([*parts[:2], "v2", *parts[2:]])


def next_version(contract: Contract, status: int) -> Contract:
    """Return a contract with all its collections one version on.

    Args:
        contract: the present version.
        status: what the old paths answer: 200 for being served on, 410 for gone.
    """
    resources = tuple(
        replace(
            resource,
            path=renumbered(resource.path),
            other_paths=tuple(map(renumbered, resource.other_paths)),
            formers=(*resource.formers, Former(path=resource.path, status=status)),
        )
        for resource in contract.resources
    )
    return replace(contract, resources=resources)


def letters(count: int, rng: np.random.Generator) -> str:
    """Return random letters and digits that cannot be mistaken for each other.

    Args:
        count: how many.
        rng: the stream to draw from.
    """
    return "".join(_ALPHABET[i] for i in rng.integers(len(_ALPHABET), size=count))


def fresh_secret(provider: Provider, kind: AuthKind, rng: np.random.Generator) -> Secret:
    """Return a new credential under a name of its own.

    Args:
        provider: the vendor that issues it.
        kind: the kind of auth that it serves.
        rng: the stream to draw from.
    Returns: The credential, not yet in the vault.
    """
    slug = provider.host.partition(".")[0].replace("-", "_")
    # The values of every kind are drawn, so that the stream moves equally for each.
    user = f"{slug}-{letters(6, rng)}"
    pair = f"{user}:{letters(28, rng)}"
    client = "as client_id:client_secret"
    values = {
        "basic": (pair, "User of", ", as user:password."),
        "oauth2": (f"{user}:{letters(28, rng)}", "OAuth2 client of", f", {client}."),
        "refresh": (
            f"{user}:{letters(28, rng)}:{letters(28, rng)}",
            "OAuth2 grant of",
            f", {client}:refresh_token.",
        ),
    }
    value, what, form = values.get(kind, (letters(28, rng), "API key of", "."))
    number = len(provider.secrets) + 1
    return Secret(name=f"{slug}_{number}", value=value, about=f"{what} {provider.title}{form}")


def reissued(provider: Provider, secret: Secret) -> tuple[Secret, ...]:
    """Return the vault's entries of a vendor after a new one was issued.

    Args:
        provider: the vendor.
        secret: the new credential.
    Returns: All older ones, revoked, then the new one.
    """
    revoked = (replace(s, revoked=True) for s in provider.secrets)
    return (*revoked, secret)

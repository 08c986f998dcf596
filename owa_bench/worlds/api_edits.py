"""Edits of the API world that several drift operators need.

A target is a path of canonical keys: "provider", "provider/resource" or
"provider/resource/field".
"""

from collections.abc import Callable

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.worlds.api import (
    ApiWorld,
    AuthKind,
    Contract,
    Field,
    Former,
    Provider,
    Resource,
    Secret,
)

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"


def live_providers(world: ApiWorld) -> tuple[Provider, ...]:
    """Return the providers that the task rests on, in order of first use."""
    keys = dict.fromkeys(provider for provider, _ in world.needed)
    return tuple(world.provider(key) for key in keys)


def live_resources(world: ApiWorld) -> tuple[tuple[Provider, Resource], ...]:
    """Return the resources that the task rests on, each with its provider."""
    found = []
    for provider_key, resource_key in dict.fromkeys(world.needed):
        provider = world.provider(provider_key)
        found.append((provider, provider.contract.resource(resource_key)))
    return tuple(found)


def locate_provider(world: ApiWorld, target: str) -> Provider:
    """Return the provider that `target` begins with; DriftError if there is none."""
    try:
        return world.provider(target.split("/")[0])
    except KeyError as error:
        raise DriftError(
            f"`target` must name a provider of this world, got {target!r}."
        ) from error


def locate_resource(world: ApiWorld, target: str) -> tuple[Provider, Resource]:
    """Return the resource that `target` begins with; DriftError if there is none."""
    provider = locate_provider(world, target)
    try:
        return provider, provider.contract.resource(target.split("/")[1])
    except (KeyError, IndexError) as error:
        raise DriftError(
            f"`target` must name a resource of this world, got {target!r}."
        ) from error


def locate_field(world: ApiWorld, target: str) -> tuple[Provider, Resource, Field]:
    """Return the field that `target` names; DriftError if there is none."""
    provider, resource = locate_resource(world, target)
    try:
        return provider, resource, resource.field(target.split("/")[2])
    except (KeyError, IndexError) as error:
        raise DriftError(
            f"`target` must name a field of this world, got {target!r}."
        ) from error


def announce(
    world: ApiWorld,
    provider: Provider,
    change: Callable[[Contract], Contract],
    note: str,
) -> ApiWorld:
    """Return `world` with a provider's contract changed, its documents following.

    Frozen documents stay as they are and their changelog says nothing.
    """
    documented = provider.documented
    if not provider.docs_frozen:
        documented = change(documented)
        documented = msgspec.structs.replace(
            documented, changelog=(*documented.changelog, note)
        )
    return world.with_provider(
        msgspec.structs.replace(
            provider, contract=change(provider.contract), documented=documented
        )
    )


def documented_resource(provider: Provider, resource: Resource) -> Resource:
    """Return a resource as the documents give it; itself where they leave it out."""
    try:
        return provider.documented.resource(resource.key)
    except KeyError:
        return resource


def with_field(contract: Contract, resource: str, field: Field) -> Contract:
    """Return a contract with one field of one resource replaced, by key.

    A contract that lacks the field stays as it is: its documents may lag.
    """
    old = contract.resource(resource)
    fields = tuple(field if f.key == field.key else f for f in old.fields)
    return contract.with_resource(msgspec.structs.replace(old, fields=fields))


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
    """Return a contract whose collections all live one version on.

    `status` is what the old paths answer: 200 for being served on, 410 for gone.
    """
    return msgspec.structs.replace(
        contract,
        resources=tuple(
            msgspec.structs.replace(
                resource,
                path=renumbered(resource.path),
                other_paths=tuple(renumbered(path) for path in resource.other_paths),
                formers=(*resource.formers, Former(path=resource.path, status=status)),
            )
            for resource in contract.resources
        ),
    )


def fresh_secret(
    provider: Provider, kind: AuthKind, rng: np.random.Generator
) -> Secret:
    """Return a new credential for a kind of proof, under a name of its own."""
    slug = provider.host.partition(".")[0].replace("-", "_")

    def letters(count: int) -> str:
        return "".join(_ALPHABET[i] for i in rng.integers(len(_ALPHABET), size=count))

    user = f"{slug}-{letters(6)}"
    values = {
        "basic": (f"{user}:{letters(28)}", "User of", ", as user:password."),
        "oauth2": (
            f"{user}:{letters(28)}",
            "OAuth2 client of",
            ", as client_id:client_secret.",
        ),
        "refresh": (
            f"{user}:{letters(28)}:{letters(28)}",
            "OAuth2 grant of",
            ", as client_id:client_secret:refresh_token.",
        ),
    }
    value, what, form = values.get(kind, (letters(28), "API key of", "."))
    number = len(provider.secrets) + 1
    return Secret(
        name=f"{slug}_{number}", value=value, about=f"{what} {provider.title}{form}"
    )


def reissued(provider: Provider, secret: Secret) -> tuple[Secret, ...]:
    """Return the vault's entries of a vendor: a new one, all older ones revoked."""
    revoked = (msgspec.structs.replace(s, revoked=True) for s in provider.secrets)
    return (*revoked, secret)

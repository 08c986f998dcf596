"""Operators on a vendor's credentials: their kind, their values, the vendor itself."""

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.errors import DriftError
from owa_bench.interfaces import operator
from owa_bench.seeding import pick
from owa_bench.worlds.api import ApiWorld, Auth, FormerHost, Provider, Secret
from owa_bench.worlds.api_edits import (
    announce,
    fresh_secret,
    letters,
    locate_provider,
    providers_where,
    reissued,
)

_WORDS = {
    "none": "nothing",
    "key_header": "an API key in a header",
    "key_query": "an API key in the query",
    "basic": "Basic",
    "oauth2": "OAuth2 client credentials",
    "refresh": "OAuth2 with a refresh token",
}
_MOVED_STATUSES = (301, 308, 410)  # what the old host of a vendor answers


def _other_auths(provider: Provider) -> list[Auth]:
    """Return the kinds of auth that are prepared and not in force."""
    now = provider.contract.auth.kind
    return [auth for auth in provider.other_auths if auth.kind != now]


def _valid_secrets(provider: Provider) -> list[Secret]:
    """Return a vendor's secrets that still work."""
    return [secret for secret in provider.secrets if not secret.revoked]


@operator(announcement="D1", weight=1.0, targets=providers_where(_other_auths))
def auth_swap(world: ApiWorld, target: str, rng: Generator) -> ApiWorld:
    """Replace how a vendor's callers prove themselves; the vault has what it takes.

    Changes: the auth of the contract; the old credential is revoked; a new one is in
        the vault; the documents follow.
    Leaves alone: rows, resources, limit, host.
    Announcement: D1 (documented, breaking). Weight: 1.
    Raises: DriftError if `target` names no provider, or one without another kind to
        turn to.
    Source: docs/toolquest.md#operators (auth swap).
    """
    provider = locate_provider(world, target)
    options = _other_auths(provider)
    if not options:
        raise DriftError(f"`{target}` must have another kind of auth, got none.")
    auth = pick(options, rng)
    secrets = reissued(provider, fresh_secret(provider, auth.kind, rng))
    provider = replace(provider, secrets=secrets)
    note = f"Calls are now authenticated by {_WORDS[auth.kind]}."
    return announce(world, provider, lambda old: replace(old, auth=auth), note)


@operator(announcement="D2", weight=0.5, targets=providers_where(_valid_secrets))
def key_rotation(world: ApiWorld, target: str, rng: Generator) -> ApiWorld:
    """Revoke a vendor's API key or client secret and put a new one in the vault.

    Changes: the old secret is revoked and stays in the vault; a new one is added under
        a new name.
    Leaves alone: client ids, the kind of auth, contract, documents, rows.
    Announcement: D2 (undocumented; a 401 shows it). Weight: 0.5.
    Raises: DriftError if `target` names no provider, or one without a valid secret.
    Source: docs/toolquest.md#operators (key rotation).
    """
    provider = locate_provider(world, target)
    valid = _valid_secrets(provider)
    if not valid:
        raise DriftError(f"`{target}` must hold a valid secret, got none.")
    old = valid[0]
    client, colon, _ = old.value.rpartition(":")
    fresh = Secret(
        name=f"{old.name}_{len(provider.secrets) + 1}",
        value=client + colon + letters(28, rng),
        about=f"{old.about} Issued later.",
    )
    return world.with_provider(replace(provider, secrets=reissued(provider, fresh)))


@operator(
    announcement="D1",
    weight=1.0,
    targets=providers_where(lambda provider: provider.successors),
)
def provider_retired(world: ApiWorld, target: str, rng: Generator) -> ApiWorld:
    """Move a vendor's business to a successor with its own title, host and credential.

    Changes: title, host and family of the vendor; the old host answers 301, 308 or 410
        with a Link; its home page and the registry name the successor; the vault has a
        new credential.
    Leaves alone: contract, rows. The goal still names the old vendor.
    Announcement: D1 (documented, breaking). Weight: 1.
    Raises: DriftError if `target` names no provider, or one without a successor.
    Source: docs/toolquest.md#operators (provider retired and replaced).
    """
    provider = locate_provider(world, target)
    if not provider.successors:
        raise DriftError(f"`{target}` must have a successor, got none.")
    successor = pick(provider.successors, rng)
    status = pick(_MOVED_STATUSES, rng)
    former = FormerHost(host=provider.host, title=provider.title, status=status)
    moved = replace(
        provider,
        title=successor.title,
        host=successor.host,
        family=successor.family,
        successors=(),
        former_hosts=(*provider.former_hosts, former),
    )
    secret = fresh_secret(moved, provider.contract.auth.kind, rng)
    return world.with_provider(replace(moved, secrets=reissued(moved, secret)))

"""Operators on a vendor's credentials, its rate limit and its outages."""

from msgspec.structs import replace
from numpy.random import Generator

from owa_bench.drift.operator import operator
from owa_bench.envs.toolquest.world import ApiWorld, Auth, FormerHost, Limit, Provider, Secret
from owa_bench.envs.toolquest.world_edits import (
    announce,
    fresh_secret,
    letters,
    locate_provider,
    providers_where,
    reissued,
)
from owa_bench.errors import DriftError
from owa_bench.seeding import pick

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
    Raises: DriftError if `target` names no provider, or one without another kind to turn to.
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
    announcement="D1", weight=1.0, targets=providers_where(lambda provider: provider.successors)
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


# --- rate limit and outages -----------------------------------------------------------


_LARGEST_CUT = 0.75  # share of the requests that intensity 1 takes away
_FEWEST_REQUESTS = 2  # per window that are always left
_MOST_OUTAGES = 25  # of 100 requests that begin a burst of 503 at intensity 1


@operator(
    announcement="D2",
    weight=0.6,
    targets=providers_where(lambda provider: not provider.contract.outages),
)
def flake(world: ApiWorld, target: str, intensity: float) -> ApiWorld:
    """Let requests meet bursts of 503, by the noise stream.

    Changes: up to a quarter of the requests begin a burst of some seconds; a record may
        be made although its answer is lost.
    Leaves alone: documents, contract otherwise, rows.
    Announcement: D2 (undocumented; 503 and Retry-After show it). Weight: 0.6.
    Raises: DriftError if `target` names no provider, or one that fails already.
    Source: docs/toolquest.md#operators (flake).
    """
    provider = locate_provider(world, target)
    if provider.contract.outages:
        raise DriftError(f"`{target}` must not fail yet, got one that does.")
    share = max(1, int(_MOST_OUTAGES * intensity))
    served = replace(provider.contract, outages=share)
    return world.with_provider(replace(provider, contract=served))


@operator(
    announcement="D0",
    weight=0.5,
    targets=providers_where(lambda p: p.contract.limit.requests > _FEWEST_REQUESTS),
)
def rate_cut(world: ApiWorld, target: str, intensity: float) -> ApiWorld:
    """Cut a vendor's requests per window, by up to three quarters.

    Changes: the limit; the documents follow.
    Leaves alone: the window, auth, resources, rows.
    Announcement: D0 (announced, compatible: 429 and Retry-After say when). Weight: 0.5.
    Raises: DriftError if `target` names no provider, or one at the least limit.
    Source: docs/toolquest.md#operators (rate cut).
    """
    provider = locate_provider(world, target)
    old = provider.contract.limit
    if old.requests <= _FEWEST_REQUESTS:
        raise DriftError(f"`{target}` must allow more than {_FEWEST_REQUESTS}, got {old.requests}.")
    cut = max(1, int(old.requests * _LARGEST_CUT * intensity))
    requests = max(_FEWEST_REQUESTS, old.requests - cut)
    limit = Limit(requests=requests, window_ms=old.window_ms)
    seconds = limit.window_ms // 1000
    note = f"At most {limit.requests} requests per {seconds} s from now on."
    return announce(world, provider, lambda old: replace(old, limit=limit), note)

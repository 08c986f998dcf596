"""Operators on how much a vendor serves: its rate limit and its outages."""

from msgspec.structs import replace

from owa_bench.errors import DriftError
from owa_bench.interfaces import operator
from owa_bench.worlds.api import ApiWorld, Limit
from owa_bench.worlds.api_edits import announce, locate_provider, providers_where

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
        raise DriftError(
            f"`{target}` must allow more than {_FEWEST_REQUESTS}, got {old.requests}."
        )
    cut = max(1, int(old.requests * _LARGEST_CUT * intensity))
    requests = max(_FEWEST_REQUESTS, old.requests - cut)
    limit = Limit(requests=requests, window_ms=old.window_ms)
    seconds = limit.window_ms // 1000
    note = f"At most {limit.requests} requests per {seconds} s from now on."
    return announce(world, provider, lambda old: replace(old, limit=limit), note)

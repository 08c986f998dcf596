"""Drift: a vendor wants another proof of who calls."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import ApiWorld, Auth, Contract, Provider
from owa_bench.worlds.api_edits import (
    announce,
    fresh_secret,
    live_providers,
    locate_provider,
    reissued,
)


class AuthSwap:
    """Replace how a vendor's callers prove themselves; the vault has what it takes.

    Changes: the auth of the contract; the old credential is revoked; a new one is in
        the vault; the documents follow.
    Leaves alone: rows, resources, limit, host.
    Announcement: D1 (documented, breaking). Weight: 1.
    Errors: DriftError if `target` names no provider, or one without another kind to
        turn to.
    Source: `suites.md` section 1, operators (auth swap).
    """

    name = "auth_swap"
    version = 1
    announcement: Announcement = "D1"
    weight = 1.0

    def targets(self, world: ApiWorld) -> tuple[str, ...]:
        """Return every provider the task rests on that could use another kind."""
        return tuple(
            provider.key for provider in live_providers(world) if _options(provider)
        )

    def apply(
        self,
        world: ApiWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> ApiWorld:
        """Return `world` with the auth replaced; `intensity` has no part in it."""
        provider = locate_provider(world, target)
        options = _options(provider)
        if not options:
            raise DriftError(f"`{target}` must have another kind of auth, got none.")
        auth = options[int(rng.integers(len(options)))]
        secrets = reissued(provider, fresh_secret(provider, auth.kind, rng))
        world = world.with_provider(msgspec.structs.replace(provider, secrets=secrets))

        def change(contract: Contract) -> Contract:
            return msgspec.structs.replace(contract, auth=auth)

        note = f"Calls are now authenticated by {_WORDS[auth.kind]}."
        return announce(world, world.provider(provider.key), change, note)


_WORDS = {
    "none": "nothing",
    "key_header": "an API key in a header",
    "key_query": "an API key in the query",
    "basic": "Basic",
    "oauth2": "OAuth2 client credentials",
    "refresh": "OAuth2 with a refresh token",
}


def _options(provider: Provider) -> list[Auth]:
    """Return the kinds of auth that are not in force."""
    now = provider.contract.auth.kind
    return [auth for auth in provider.other_auths if auth.kind != now]


OPERATOR = AuthSwap()

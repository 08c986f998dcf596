"""Drift: a vendor's key is revoked and a new one lies in the vault."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.api import ApiWorld, Secret
from owa_bench.worlds.api_edits import live_providers, locate_provider

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"


class KeyRotation:
    """Revoke a vendor's API key or client secret and put a new one in the vault.

    Changes: the old secret is revoked and stays in the vault; a new one is added under
        a new name.
    Leaves alone: client ids, the kind of auth, contract, documents, rows.
    Announcement: D2 (undocumented; a 401 shows it). Weight: 0.5.
    Errors: DriftError if `target` names no provider, or one without a valid secret.
    Source: `suites.md` section 1, operators (key rotation).
    """

    name = "key_rotation"
    version = 1
    announcement: Announcement = "D2"
    weight = 0.5

    def targets(self, world: ApiWorld) -> tuple[str, ...]:
        """Return every provider the task rests on whose calls need a secret."""
        return tuple(
            provider.key
            for provider in live_providers(world)
            if any(not secret.revoked for secret in provider.secrets)
        )

    def apply(
        self,
        world: ApiWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> ApiWorld:
        """Return `world` with the secret rotated; `intensity` has no part in it."""
        provider = locate_provider(world, target)
        valid = [secret for secret in provider.secrets if not secret.revoked]
        if not valid:
            raise DriftError(f"`{target}` must hold a valid secret, got none.")
        letters = rng.integers(len(_ALPHABET), size=28).tolist()
        client, colon, _ = valid[0].value.rpartition(":")
        fresh = Secret(
            name=f"{valid[0].name}_{len(provider.secrets) + 1}",
            value=client + colon + "".join(_ALPHABET[i] for i in letters),
            about=f"{valid[0].about} Issued later.",
        )
        revoked = tuple(
            msgspec.structs.replace(s, revoked=True) for s in provider.secrets
        )
        return world.with_provider(
            msgspec.structs.replace(provider, secrets=(*revoked, fresh))
        )


OPERATOR = KeyRotation()

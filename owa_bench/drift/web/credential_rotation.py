"""Drift: a password is replaced."""

import msgspec
import numpy as np

from owa_bench.errors import DriftError
from owa_bench.records.instance import Announcement
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE, whole


class CredentialRotation:
    """Replace the visitor's password; the old one is refused.

    Changes: the password that works; both stand among the credentials.
    Leaves alone: user name, code, kind of sign-in.
    Announcement: D2 (the refusal says so). Weight: 0.5.
    Errors: DriftError if `target` is not the site, or has no password to spare.
    Source: `changesurf.md` section 4.2, Auth operators.
    """

    name = "credential_rotation"
    version = 1
    announcement: Announcement = "D2"
    weight = 0.5
    group = "Auth"

    def targets(self, world: SiteWorld) -> tuple[str, ...]:
        """Return the site, where it has a sign-in and a password to spare."""
        auth = world.plan.auth
        spent = auth.kind == "none" or not auth.spares
        return () if spent else (SITE,)

    def apply(
        self,
        world: SiteWorld,
        target: str,
        intensity: float,
        *,
        rng: np.random.Generator,
    ) -> SiteWorld:
        """Return `world` with another password."""
        whole(target)
        auth = world.plan.auth
        if not auth.spares:
            raise DriftError(
                f"`target` must have a password to spare, got {auth.spares!r}."
            )
        password = auth.spares[int(rng.integers(len(auth.spares)))]
        changed = msgspec.structs.replace(
            auth,
            password=password,
            former=(*auth.former, auth.password),
            spares=tuple(spare for spare in auth.spares if spare != password),
        )
        return world.with_plan(auth=changed)


OPERATOR = CredentialRotation()

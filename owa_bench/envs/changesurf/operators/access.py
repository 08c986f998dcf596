"""Operators on a site's sign-in, and on its friction: limits, delays, refusals."""

from numpy.random import Generator

from owa_bench.drift.operator import operator
from owa_bench.envs.changesurf.site_edits import SITE, another
from owa_bench.envs.changesurf.world import SiteWorld
from owa_bench.errors import DriftError

_MOST_REQUESTS, _LEAST_REQUESTS = 10, 5  # of a sign-in, at intensity 0 and 1


def _has_sign_in(world: SiteWorld) -> bool:
    """Return whether visitors sign in."""
    return world.plan.auth.kind != "none"


def _has_spare_password(world: SiteWorld) -> bool:
    """Return whether visitors sign in and another password is prepared."""
    return _has_sign_in(world) and bool(world.plan.auth.spares)


@operator(announcement="D1", weight=1.0, group="Auth", targets=SITE, where=_has_sign_in)
def auth_swap(world: SiteWorld, rng: Generator) -> SiteWorld:
    """Sign visitors in another way: a name first, a code by mail or panel, a partner.

    Changes: the kind of sign-in.
    Leaves alone: user name, password and code.
    Announcement: D1 (the page shows it). Weight: 1.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (Auth).
    """
    auth = world.plan.auth
    return world.with_auth(kind=another(auth.others, auth.kind, rng))


@operator(announcement="D2", weight=0.5, group="Auth", targets=SITE, where=_has_spare_password)
def credential_rotation(world: SiteWorld) -> SiteWorld:
    """Put the visitor's next password in force; the old one is refused.

    Changes: the password that works; both stand among the credentials, always.
    Leaves alone: user name, code, kind of sign-in.
    Announcement: D2 (the refusal says so). Weight: 0.5.
    Raises: DriftError if `target` is not the site, or has no password to spare.
    Source: docs/changesurf.md#operators (Auth).
    """
    auth = world.plan.auth
    if not auth.spares:
        raise DriftError(f"`target` must have a password to spare, got {auth.spares!r}.")
    return world.with_auth(
        password=auth.spares[0], former=(*auth.former, auth.password), spares=auth.spares[1:]
    )


@operator(announcement="D1", weight=0.4, group="Auth", targets=SITE, where=_has_sign_in)
def early_sign_in(world: SiteWorld) -> SiteWorld:
    """Ask for the sign-in before any list, or only before a form.

    Changes: when the sign-in is asked for.
    Leaves alone: how it works.
    Announcement: D1 (the page shows it). Weight: 0.4.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (Auth).
    """
    return world.with_auth(early=not world.plan.auth.early)


@operator(announcement="D2", weight=0.5, group="Auth", targets=SITE, where=_has_sign_in)
def session_expiry(world: SiteWorld, intensity: float) -> SiteWorld:
    """Let a sign-in lapse after a few requests; a form that was begun is kept.

    Changes: how long a sign-in lasts.
    Leaves alone: how it works, and what was entered on earlier pages.
    Announcement: D2 (the sign-in page comes back). Weight: 0.5.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (Auth).
    """
    fewer = round((_MOST_REQUESTS - _LEAST_REQUESTS) * intensity)
    return world.with_auth(expires=_MOST_REQUESTS - fewer)


# --- friction -------------------------------------------------------------------------


_FIELD_MS, _MORE_FIELD_MS = 1_500, 3_000  # of a text field; more at intensity 1
_MOST_IN_WINDOW, _LEAST_IN_WINDOW = 12, 6  # requests, at intensity 0 and 1
_WINDOW_MS = 20_000
_SLOW_MS = 3_000  # of every reply at intensity 1


@operator(announcement="D0", weight=0.3, group="Friction", targets=SITE)
def honeypot_input(world: SiteWorld) -> SiteWorld:
    """Put an input into every form that no person sees; who fills it in is refused.

    Changes: what a form holds out of sight.
    Leaves alone: what a person sees of it.
    Announcement: D0 (nothing a person does breaks). Weight: 0.3.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (Friction).
    """
    return world.with_friction(trap=True)


@operator(announcement="D2", weight=0.4, group="Friction", targets=SITE)
def least_time(world: SiteWorld, intensity: float) -> SiteWorld:
    """Refuse a form that comes back sooner than a person could type what it asks.

    Changes: how soon a form with text fields is taken.
    Leaves alone: pages, questions, sign-in.
    Announcement: D2 (the refusal says how long to wait). Weight: 0.4.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (Friction).
    """
    return world.with_friction(least_ms=_FIELD_MS + round(_MORE_FIELD_MS * intensity))


@operator(announcement="D0", weight=0.3, group="Friction", targets=SITE)
def once_only(world: SiteWorld) -> SiteWorld:
    """Refuse a form that was sent before, in place of doing it twice.

    Changes: what comes of a form sent twice.
    Leaves alone: what comes of it sent once.
    Announcement: D0 (nothing breaks). Weight: 0.3.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (Friction).
    """
    return world.with_friction(once=True)


@operator(announcement="D2", weight=0.4, group="Friction", targets=SITE)
def rate_limit(world: SiteWorld, intensity: float) -> SiteWorld:
    """Answer too many requests in a short time with 429 and Retry-After.

    Changes: how many requests a window takes.
    Leaves alone: pages, forms, sign-in.
    Announcement: D2 (the refusal says how long to wait). Weight: 0.4.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (Friction).
    """
    fewer = round((_MOST_IN_WINDOW - _LEAST_IN_WINDOW) * intensity)
    return world.with_friction(requests=_MOST_IN_WINDOW - fewer, window_ms=_WINDOW_MS)


@operator(announcement="D0", weight=0.3, group="Friction", targets=SITE)
def slow_replies(world: SiteWorld, intensity: float) -> SiteWorld:
    """Let every reply take longer, in simulated time.

    Changes: how long a reply takes.
    Leaves alone: pages, forms, sign-in.
    Announcement: D0 (nothing breaks). Weight: 0.3.
    Raises: DriftError if `target` is not the site.
    Source: docs/changesurf.md#operators (Friction).
    """
    return world.with_friction(slow_ms=max(1, round(_SLOW_MS * intensity)))

"""Operators on a site's friction: limits, delays and refused forms."""

from owa_bench.interfaces import operator
from owa_bench.worlds.site import SiteWorld
from owa_bench.worlds.site_edits import SITE

_FIELD_MS, _MORE_FIELD_MS = 1_500, 3_000  # of a text field; more at intensity 1
_MOST_REQUESTS, _LEAST_REQUESTS = 12, 6  # per window, at intensity 0 and 1
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
    fewer = round((_MOST_REQUESTS - _LEAST_REQUESTS) * intensity)
    return world.with_friction(requests=_MOST_REQUESTS - fewer, window_ms=_WINDOW_MS)


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

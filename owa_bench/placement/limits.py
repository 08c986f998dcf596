"""Limits of a placement: where it stops although its rule goes on."""

from typing import NamedTuple

from owa_bench.errors import FieldError

BATTERY = "place"


class PlacementLimits(NamedTuple):
    """Where a placement stops although its rule goes on; None: no limit.

    Attributes:
        usd: Agent's own cost by the price card, of all calls.
        hours: Of this call.
        episodes: Attempts of all calls.
    """

    usd: float | None = None
    hours: float | None = None
    episodes: int | None = None

    def check(self) -> None:
        """Raise FieldError for a limit that stops nothing or everything."""
        for name in self._fields:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise FieldError(f"--{name}", value, "must be above 0")

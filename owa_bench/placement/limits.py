"""Limits of a placement: where it stops although its rule goes on."""

from typing import NamedTuple

from owa_bench.errors import FieldError
from owa_bench.records.placement import LEVELS

BATTERY = "place"


class PlacementLimits(NamedTuple):
    """Where a placement stops although its rule goes on; None: no limit.

    Attributes:
        level: The level to decide; the rule goes on above it.
        usd: Agent's own cost by the price card, of all calls.
        hours: Of this call.
        episodes: Attempts of all calls.
    """

    level: int = 1
    usd: float | None = None
    hours: float | None = None
    episodes: int | None = None

    def check(self) -> None:
        """Raise FieldError for a limit that stops nothing or everything."""
        if self.level not in LEVELS:
            known = ", ".join(map(str, LEVELS))
            rule = f"must be one of {known}: no rule decides another yet"
            raise FieldError("--level", self.level, rule)
        for name in ("usd", "hours", "episodes"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise FieldError(f"--{name}", value, "must be above 0")

"""The dates of a placement: what a level needs where an agent can change from day to day.

The date is the unit there: one batch a date, which all gates read. A gate passes where the evidence
of all worlds passes and the dates agree; docs/placement.md#dates says why.
"""

from typing import Final, NamedTuple

from owa_bench.records.placement import DECIMALS, DateMean, GateLine
from owa_bench.scoring.statistics.betting import Bets, weighted_mean

WAIT: Final = "wait"  # decision of a look after which another date must come


class BatchDate(NamedTuple):
    """When a batch was played, as a verifier says (ISO 8601, UTC); "" where nobody does.

    It was not known before `begin`, and all of it was on record at `end`.
    """

    begin: str
    end: str

    @property
    def words(self) -> str:
        """The day, or both days; an end that nobody says is named.

        >>> BatchDate("2026-11-27T10:00:00Z", "").words
        '2026-11-27 (no verifier says until when)'
        """
        first, last = self.begin[:10], self.end[:10]
        if not first or not last:
            return f"{first or last} (no verifier says {'since' if last else 'until'} when)"
        return " to ".join(dict.fromkeys((first, last)))


def date_mean(bets: Bets, required: float) -> DateMean:
    """Return what a gate's worlds of one date earned over what is required.

    Args:
        bets: The gate's worlds of that date.
        required: The mean that is required.
    """
    least = weighted_mean(bets)
    most = weighted_mean(Bets(bets.high, bets.high, bets.slope, bets.share))
    return DateMean(
        worlds=len(bets),
        least=0.0 if least is None else round(least - required, DECIMALS),
        most=0.0 if most is None else round(most - required, DECIMALS),
    )


def passes(line: GateLine, needed: int) -> bool:
    """Return whether a gate passes: by its evidence, and by its dates.

    Formula:
        evidence and (needed = 1 or dates >= needed (1 + dates under what is required))
    Shapes: scalars. Units: dates.
    Missing: a date on which the gate had no bet is on neither side. Errors: none.
    Source: [D] docs/placement.md#dates; docs/tables/placement.md, *Days differ*.

    Args:
        line: The gate's line, `dates` of which are the means by date.
        needed: Dates that a level needs; 1 for an agent that does not change.
    """
    return line.status == "PASS" and _agree(_against(line), needed)


def is_below(line: GateLine, needed: int) -> bool:
    """Return whether a gate is below what is required: by its evidence, and by its dates.

    Args:
        line: The gate's line.
        needed: Dates that a level needs.
    """
    return line.status == "BELOW" and _agree(_against(line), needed)


def dates_words(line: GateLine, needed: int) -> str:
    """Return how many dates a gate has of those that it needs.

    Args:
        line: The gate's line; BELOW counts the dates on the other side.
        needed: Dates that a level needs.
    """
    against = sum(_against(line))
    words = f", {against} of them against it" if against else ""
    return f"{len(line.dates)} of {needed * (1 + against)} dates{words}"


def _against(line: GateLine) -> list[bool]:
    """Return which dates stand against what a gate's evidence says."""
    if line.status == "BELOW":
        return [date.most >= 0 and date.worlds > 0 for date in line.dates]
    return [date.least < 0 for date in line.dates]


def _agree(against: list[bool], needed: int) -> bool:
    return needed == 1 or len(against) >= needed * (1 + sum(against))

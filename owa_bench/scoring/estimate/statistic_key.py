"""Keys: the address of every statistic of an agent."""

from typing import Literal, NamedTuple

StatisticKind = Literal[
    "value",  # of an axis, an index, an area; the mean of a cell
    "raw",
    "low",
    "high",
    "factor",
    "beside",  # a secondary statistic of an axis, by name
    "seen",  # a frontier at a budget, by place
    "fit",
    "curve",  # success or quality at a drift magnitude, by place
    "gate",  # what gates read and no axis, by name
    "first",  # a measure of the first agent of two, by place of the group
    "second",
    "gap",
]


class StatisticKey(NamedTuple):
    """The address of one statistic.

    Attributes:
        of: Symbol of the axis, or name of the index, frontier, curve or measure.
        kind: Which of its statistics.
        name: Name among those of the kind, where they have names.
        place: Place among those of the kind, where they are in order.
    """

    of: str
    kind: StatisticKind = "value"
    name: str = ""
    place: int = 0

    @property
    def column(self) -> str:
        """Name of the column whose mean the statistic is, where it is one.

        >>> StatisticKey("success", "curve", place=2).column
        'success/curve//2'
        """
        return "/".join(map(str, self))

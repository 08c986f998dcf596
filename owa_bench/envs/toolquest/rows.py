"""Rows as a family's rule reads them: role to value, money in cents."""

from collections.abc import Mapping, Sequence

from owa_bench.worlds.api import Value

Row = Mapping[str, Value]
Sources = Mapping[str, Sequence[Row]]
Rule = Mapping[str, Value]
Cells = tuple[Value, ...]


def distinct(rows: Sequence[Row]) -> list[Row]:
    """Return the rows without repeated postings: equal in all but the id."""
    kept: dict[tuple[tuple[str, Value], ...], Row] = {}
    for row in rows:
        kept.setdefault(tuple(cell for cell in row.items() if cell[0] != "id"), row)
    return list(kept.values())


def linked(
    sources: Sources, own: Sequence[Row], key: str, value: str
) -> dict[Value, Value]:
    """Return key -> value from `links`, or from the rows themselves without it."""
    return {row[key]: row[value] for row in sources.get("links", own)}

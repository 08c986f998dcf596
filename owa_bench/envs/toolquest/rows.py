"""Rows as a family's rule reads them: role to value, money in cents."""

from collections.abc import Mapping, Sequence

from owa_bench.worlds.api import Value

SourceRow = Mapping[str, Value]
Sources = Mapping[str, Sequence[SourceRow]]
RuleParameters = Mapping[str, Value]
AnswerRow = tuple[Value, ...]


def distinct(rows: Sequence[SourceRow]) -> list[SourceRow]:
    """Return the rows without repeated postings: equal in all but the id."""
    kept: dict[tuple[tuple[str, Value], ...], SourceRow] = {}
    for row in rows:
        kept.setdefault(tuple(cell for cell in row.items() if cell[0] != "id"), row)
    return list(kept.values())


def linked(
    sources: Sources, own: Sequence[SourceRow], key: str, value: str
) -> dict[Value, Value]:
    """Return key -> value from `links`, or from the rows themselves without it."""
    return {row[key]: row[value] for row in sources.get("links", own)}

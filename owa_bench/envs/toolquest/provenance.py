"""Which right rows of an answer cannot follow from the rows that were served.

Each collection is looked at alone, with every other one taken as read in full: what
filters left out on purpose, and what an agent overlooked, is no evidence against it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from owa_bench.envs.toolquest.families import solve
from owa_bench.envs.toolquest.state import ApiState, CollectionKey, missing_rows
from owa_bench.worlds.api import ApiWorld, Value

AnswerCells = tuple[Value, ...]
TableRows = Sequence[Mapping[str, Value]]
SMALL = 100  # whole numbers below it may be right by luck


def unsupported(
    state: ApiState, right: Sequence[AnswerCells]
) -> Iterator[tuple[CollectionKey, AnswerCells]]:
    """Yield the right rows that do not follow from what was served of a collection."""
    world = state.world
    whole = _sources(world)
    places = [place for place in whole if missing_rows(state, place)]
    for place in places:
        shown = _served(state, place, whole[place][1])
        if shown or not _may_be_guessed(world, place):
            made = _made(world, {**whole, place: (whole[place][0], shown)})
            if made is None and shown:
                continue  # the rule needs rows that a filter may have left out
            known = {_telling(row) for row in made or ()}
            yield from ((place, row) for row in right if _telling(row) not in known)


def _sources(world: ApiWorld) -> dict[CollectionKey, tuple[str, TableRows]]:
    """Return the source's id and all rows of every collection that is needed."""
    spec: dict[str, Any] = json.loads(world.goal.spec)
    given = spec.get("sources", ())  # a world made by hand may have no rule
    ids = [source["id"] for source in given if not source["optional"]]
    found: dict[CollectionKey, tuple[str, TableRows]] = {}
    for name, place in zip(ids, world.needed, strict=bool(ids)):
        table = world.provider(place[0]).table(place[1])
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        found[place] = (name, rows)
    return found


def _served(state: ApiState, place: CollectionKey, rows: TableRows) -> TableRows:
    bits = state.fetched.get(place, 0)
    return [row for i, row in enumerate(rows) if bits >> i & 1]


def _made(
    world: ApiWorld, sources: Mapping[CollectionKey, tuple[str, TableRows]]
) -> tuple[AnswerCells, ...] | None:
    """Return what the rule makes of the rows, None where it misses some of them."""
    rule = json.loads(world.goal.spec)["rule"]
    try:
        return solve(world.goal.family, dict(sources.values()), rule).rows
    except (LookupError, StopIteration):
        return None


def _may_be_guessed(world: ApiWorld, place: CollectionKey) -> bool:
    """Return whether a collection holds only names and days, as a calendar does."""
    fields = world.provider(place[0]).contract.resource(place[1]).fields
    kinds = {field.kind for field in fields}
    keyed = any(field.identifier for field in fields)
    return "date" in kinds and "money" not in kinds and not keyed


def _telling(row: AnswerCells) -> AnswerCells:
    """Return the cells of a row that nobody gets right by luck."""
    return tuple(cell for cell in row if isinstance(cell, str) or cell >= SMALL)

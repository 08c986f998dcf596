"""Answers: the forms in which one may be handed in, and the scores of the judged one.

Numbers may be text, instants any ISO 8601 form with its offset, column names may have other letter
case, and columns beyond those asked for are left out. What cannot be read as the goal asks is
refused in words, at once. The score is F1 over cells, beside it the severity of writes outside the
goal; the oracle turns them into q_state.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from owa_bench.envs.toolquest.state import ApiState, Artefact, CollectionKey, PostedRecord
from owa_bench.envs.toolquest.table import DataTable, TableError
from owa_bench.envs.toolquest.world import ApiWorld, Value

ANSWER = "answer"  # the name of the artefact that is judged
_MOST_DIGITS = 40


class JudgedAnswer(NamedTuple):
    """An answer in the columns asked for, and the columns that were left out."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    ignored: tuple[str, ...]


def judged_answer(world: ApiWorld, table: DataTable) -> JudgedAnswer:
    """Return an answer as it is judged.

    Args:
        world: The world with the expected columns; what it expects says which hold numbers and
            which instants.
        table: The answer as it was handed in.
    Returns: Its columns by their names in the goal, its cells as the goal has them.
    Raises: TableError: A column is missing or named twice, or a cell is of another kind.
    """
    asked = world.expected_columns
    given = [name.strip().casefold() for name in table.columns]
    wanted = {name.casefold(): name for name in asked}
    twice = sorted({wanted[n] for n in given if n in wanted and given.count(n) > 1})
    missing = [name for key, name in wanted.items() if key not in given]
    if twice or missing:
        fault = f"lacks {', '.join(missing)}" if missing else f"has {twice[0]} twice"
        raise TableError(f"The answer needs the columns {', '.join(asked)}; this one {fault}.")
    places = [given.index(name) for name in wanted]
    kinds = [_kind(column) for column in zip(*world.expected_rows, strict=True)]
    kinds = kinds or ["text"] * len(asked)
    rows = tuple(
        tuple(
            _cell(row[place], kind, f"rows[{i}].{name}")
            for place, kind, name in zip(places, kinds, asked, strict=True)
        )
        for i, row in enumerate(table.rows)
    )
    names = zip(table.columns, given, strict=True)
    ignored = tuple(name for name, key in names if key not in wanted)
    return JudgedAnswer(asked, rows, ignored)


def _kind(column: Sequence[Value]) -> str:
    """Return whether the cells expected in a column are numbers, instants or text."""
    if all(isinstance(value, int) and not isinstance(value, bool) for value in column):
        return "number"
    is_instant = all("T" in str(v) and _instant(str(v)) is not None for v in column)
    return "instant" if is_instant else "text"


def _cell(value: Any, kind: str, place: str) -> Value:
    """Return a cell in the form that is judged.

    Args:
        value: The cell as it was handed in.
        kind: "number", "instant" or "text".
        place: Its place, for words.
    Returns: The value; numbers that are whole are integers, instants are UTC.
    Raises: TableError: The cell is not of this kind.
    """
    if kind == "number":
        if (amount := _number(value)) is not None:
            return amount
        raise TableError(f"`{place}` must be a number, got {value!r}.")
    if kind == "instant":
        if (at := _instant(str(value))) is not None:
            return at
        raise TableError(
            f"`{place}` must be a time with its offset, such as 2031-01-31T23:59Z, got {value!r}."
        )
    if value is None or isinstance(value, bool):
        raise TableError(f"`{place}` must be text, got {value!r}.")
    return str(value).strip()


def _number(value: Any) -> Value | None:
    """Return a number, or the number that a text is; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip()
    try:
        amount = Decimal(text)
    except InvalidOperation:
        return None
    if not amount.is_finite() or len(text) > _MOST_DIGITS:
        return None
    if abs(amount.adjusted()) > _MOST_DIGITS:  # 1e1000000 would take minutes to write
        return None
    whole = amount == amount.to_integral_value()
    return int(amount) if whole else float(amount)  # type: ignore[return-value]


def _instant(text: str) -> str | None:
    """Return an instant in UTC, None for a text that is no time with an offset."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if at.tzinfo is None:
        return None
    try:
        at = at.astimezone(UTC)
    except OverflowError:
        return None
    whole = not at.second and not at.microsecond
    return f"{at:%Y-%m-%dT%H:%M}Z" if whole else f"{at:%Y-%m-%dT%H:%M:%S.%f}Z"


CellRow = Sequence[Value]
CellCounts = Counter[tuple[object, ...]]

# Severity of a write outside the allowed set [D].
UNWANTED_RECORD = 1.0
DELETED_ROW = 2.0


class RequiredWrites(NamedTuple):
    """Records that must exist at a place in the end."""

    place: CollectionKey
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


def plain(value: object) -> object:
    """Return a cell as it is compared: 3.0 is 3, text without outer blanks."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value.strip() if isinstance(value, str) else value


def key_width(rows: Sequence[CellRow]) -> int:
    """Return how many leading cells tell the rows apart."""
    width = len(rows[0]) if rows else 1
    for k in range(1, width):
        if len({tuple(row[:k]) for row in rows}) == len(rows):
            return k
    return width


def cells(columns: Sequence[str], rows: Sequence[CellRow], keys: Sequence[str]) -> CellCounts:
    """Return the cells of a table, each named by its row's key and its column.

    A table that lacks a key column has no cells but as many unmatched cells as values.

    Args:
        columns: Names of the columns.
        rows: Rows in the order of the columns.
        keys: Columns that tell the rows apart.
    Returns: How often each cell occurs.
    """
    if not set(keys) <= set(columns):
        return Counter({("unmatched",): len(rows) * len(columns)})
    places = [columns.index(key) for key in keys]
    others = [i for i in range(len(columns)) if i not in places]
    found: CellCounts = Counter()
    for row in rows:
        key = tuple(plain(row[i]) for i in places)
        if not others:
            found[key] += 1
        for i in others:
            found[(key, columns[i], plain(row[i]))] += 1
    return found


def f1(wanted: CellCounts, given: CellCounts) -> float:
    """Return 2 x hits / (wanted + given); 1 when both are empty.

    Args:
        wanted: Expected cells.
        given: Cells that were handed in.
    Returns: A share in [0, 1].
    """
    total = wanted.total() + given.total()
    return 2 * (wanted & given).total() / total if total else 1.0


def artefact_score(world: ApiWorld, artefact: Artefact | None) -> float:
    """Return the F1 of the artefact's cells against the expected ones.

    Args:
        world: The world with the expected rows.
        artefact: The answer, None if there is none yet.
    Returns: A share in [0, 1].
    """
    if artefact is None:
        return 0.0
    keys = world.expected_columns[: key_width(world.expected_rows)]
    wanted = cells(world.expected_columns, world.expected_rows, keys)
    return f1(wanted, cells(artefact.columns, artefact.rows, keys))


def required_writes(world: ApiWorld) -> tuple[RequiredWrites, ...]:
    """Return the records that must exist in the end."""
    return tuple(RequiredWrites((p, r), columns, rows) for p, r, columns, rows in world.writes)


def standing_records(state: ApiState) -> tuple[PostedRecord, ...]:
    """Return the posted records that were not taken back."""
    gone = {(deletion.place, deletion.ident) for deletion in state.deletions}
    return tuple(r for r in state.records if (r.place, r.ident) not in gone)


def _posted(wanted: RequiredWrites, state: ApiState) -> list[tuple[Value, ...]]:
    """Return the standing records at a place, in the wanted columns."""
    return [
        tuple(dict(record.values).get(column, "") for column in wanted.columns)
        for record in standing_records(state)
        if record.place == wanted.place
    ]


def write_score(wanted: RequiredWrites, state: ApiState) -> float:
    """Return the F1 of the posted cells at one place against the wanted ones.

    Args:
        wanted: The records that must exist.
        state: The state with the posted records.
    Returns: A share in [0, 1].
    """
    keys = wanted.columns[: key_width(wanted.rows)]
    target = cells(wanted.columns, wanted.rows, keys)
    return f1(target, cells(wanted.columns, _posted(wanted, state), keys))


def open_writes(wanted: RequiredWrites, state: ApiState) -> list[tuple[Value, ...]]:
    """Return the wanted rows that do not stand yet.

    Args:
        wanted: The records that must exist.
        state: The state with the posted records.
    Returns: Rows in the order wanted.
    """
    left = Counter(wanted.rows) - Counter(_posted(wanted, state))
    return [row for row in wanted.rows if left[row]]


def severity(state: ApiState) -> float:
    """Return the severity-weighted number of writes outside the allowed set."""
    unwanted = len(standing_records(state))
    for wanted in required_writes(state.world):
        unwanted -= (Counter(wanted.rows) & Counter(_posted(wanted, state))).total()
    lost = sum(1 for deletion in state.deletions if deletion.number >= 0)
    return UNWANTED_RECORD * unwanted + DELETED_ROW * lost

"""Forms in which an answer may be handed in, brought to the one that is judged.

Numbers may be text, instants any ISO 8601 form with its offset, column names may have
other letter case, and columns beyond those asked for are left out. What cannot be read
as the goal asks is refused in words, at once.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from owa_bench.envs.toolquest.table import DataTable, TableError
from owa_bench.worlds.api import ApiWorld, Value

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
        world: The world with the expected columns; what it expects says which hold
            numbers and which instants.
        table: The answer as it was handed in.

    Returns:
        Its columns by their names in the goal, its cells as the goal has them.

    Raises:
        TableError: A column is missing or named twice, or a cell is of another kind.
    """
    asked = world.expected_columns
    given = [name.strip().casefold() for name in table.columns]
    wanted = {name.casefold(): name for name in asked}
    twice = sorted({wanted[n] for n in given if n in wanted and given.count(n) > 1})
    missing = [name for key, name in wanted.items() if key not in given]
    if twice or missing:
        fault = f"lacks {', '.join(missing)}" if missing else f"has {twice[0]} twice"
        raise TableError(
            f"The answer needs the columns {', '.join(asked)}; this one {fault}."
        )
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

    Returns:
        The value; numbers that are whole are integers, instants are UTC.

    Raises:
        TableError: The cell is not of this kind.
    """
    if kind == "number":
        if (amount := _number(value)) is not None:
            return amount
        raise TableError(f"`{place}` must be a number, got {value!r}.")
    if kind == "instant":
        if (at := _instant(str(value))) is not None:
            return at
        raise TableError(
            f"`{place}` must be a time with its offset, such as 2031-01-31T23:59Z, got "
            f"{value!r}."
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

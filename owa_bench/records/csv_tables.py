"""CSV tables whose text no spreadsheet takes for a formula, or for several cells.

Names of arms, actions, reasons and paths are other people's text. Spreadsheets run a cell that
begins with one of `=+-@`. So an apostrophe is written before such a sign where it begins the text,
or stands behind a semicolon, a tab or a line end, and every text is quoted. `text_of_cell` takes
the apostrophes off again.

Source: docs/read-a-run.md#tables; OWASP, "CSV Injection".
"""

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

# The full-width forms are the same signs where the language of a spreadsheet has them.
_SIGNS = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
# What may stand before the sign; a semicolon, a tab or a line end begins another cell
# where the spreadsheet splits by other marks than a comma.
_BEFORE = re.compile("[\\s\0\ufeff';]*")
_SPLITS = re.compile("[;\t\r\n]")
_UNSEEN = re.compile("'*[\t\r\n]")


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table as CSV in UTF-8 with a header line; None is an empty cell.

    Args:
        path: the file; an old one is replaced.
        columns: the header.
        rows: cells of each row.
    """
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        for row in (columns, *rows):
            writer.writerow([_cell(value) for value in row])


def text_of_cell(cell: str) -> str:
    """Return the text that was written as a cell.

    >>> text_of_cell("'=1+1"), text_of_cell("'tis"), text_of_cell("-1x")
    ('=1+1', "'tis", '-1x')
    """
    if cell.startswith("'") and _UNSEEN.match(cell):
        cell = cell[1:]
    marked = [place - 1 for place in _formulas(cell) if cell[:place].endswith("'")]
    starts, ends = [0, *(place + 1 for place in marked)], [*marked, len(cell)]
    return "".join(cell[i:j] for i, j in zip(starts, ends, strict=True))


def _cell(value: Any) -> Any:
    """Return a value as it is written: text that could be a formula marked as text."""
    if not isinstance(value, str):
        return value
    places = _formulas(value)
    starts, ends = [0, *places], [*places, len(value)]
    text = "'".join(value[i:j] for i, j in zip(starts, ends, strict=True))
    return "'" + text if _UNSEEN.match(text) else text


def _formulas(text: str) -> list[int]:
    """Return the places of signs that could begin a formula."""
    return [
        run.end()
        for run in _BEFORE.finditer(text)
        if text[run.end() : run.end() + 1] in _SIGNS
        and (run.start() == 0 or _SPLITS.search(run.group()))
    ]

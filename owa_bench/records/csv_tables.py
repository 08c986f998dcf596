"""CSV tables whose text no spreadsheet takes for a formula, or for several cells.

Names of arms, actions, reasons and paths are other people's text. Spreadsheets run a
cell that begins with one of `=+-@`, so such text gets an apostrophe before it, and
every text is quoted. `text_of_cell` takes the apostrophe off again.

Source: docs/read-a-run.md#tables; OWASP, "CSV Injection".
"""

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

# The full-width forms are the same signs where the language of a spreadsheet has them.
_FORMULA = re.compile("'*[\\s\\0\ufeff]*[=+\\-@\uff1d\uff0b\uff0d\uff20\t\r\n]")


def write_csv(
    path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
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

    >>> text_of_cell("'=1+1"), text_of_cell("'tis"), text_of_cell("-1")
    ('=1+1', "'tis", '-1')
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def _cell(value: Any) -> Any:
    """Return a value as it is written: text that could be a formula marked as text."""
    return "'" + value if isinstance(value, str) and _FORMULA.match(value) else value

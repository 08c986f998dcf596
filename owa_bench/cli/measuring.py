"""Input tables, options, notes and figures of the `measure` commands."""

import csv
import functools
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec

import numpy as np
import typer

from owa_bench.cli.console import ERR, note
from owa_bench.cli.options import option
from owa_bench.errors import FieldError, ScoringError, UsageError, extra, needs
from owa_bench.measures.generality.difficulty import SmallSampleWarning
from owa_bench.records.csv_tables import text_of_cell
from owa_bench.records.observables import Flags, Floats
from owa_bench.scoring.statistics.arrays import IntervalEstimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ".csv, .tsv, .parquet, .npz or .npy"
_TRUE = {"1", "true", "yes", "1.0"}
_FALSE = {"0", "false", "no", "0.0"}
DataPath: Any = typer.Argument(help=f"A table: {FORMATS}.")


def figure_path(path: Path | None) -> Path | None:
    """Return where to write a figure; bad places are refused before any measuring."""
    if path is None:
        return None
    if path.suffix.lower() not in {".svg", ".png", ".pdf"}:
        raise FieldError("--figure", str(path), "must end in .svg, .png or .pdf")
    if not path.parent.is_dir():
        rule = f"must lie in a folder that is there (mkdir -p {path.parent})"
        raise FieldError("--figure", str(path), rule)
    return path


FigurePath: Any = option(
    None, "Write the figure: .svg, .png or .pdf.", "--figure", callback=figure_path
)
Seed: Any = option(0, "Seed of the resamples.", "--seed")


def resamples_option(default: int) -> Any:
    """Return the option `--resamples` with a command's own default."""
    return option(default, "Bootstrap resamples.", "--resamples", min=0)


_Options = ParamSpec("_Options")


def blames(*options: str) -> Callable[[Callable[_Options, None]], Callable[_Options, None]]:
    """Return a decorator: errors of a measure name the files of these options."""

    def decorate(command: Callable[_Options, None]) -> Callable[_Options, None]:
        @functools.wraps(command)
        def run(*arguments: _Options.args, **named: _Options.kwargs) -> None:
            try:
                command(*arguments, **named)
            except ScoringError as error:
                files = [str(named[option]) for option in options if named.get(option)]
                raise UsageError(f"{', '.join(files)}: {error}") from error

        return run

    return decorate


def with_notes(compute: Any, *arguments: Any, **more: Any) -> Any:
    """Return a measure's result; its warnings of small samples are printed as notes.

    Args:
        compute: the measure.
        arguments: its arguments.
        more: those by name.
    Returns: What `compute` returns.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SmallSampleWarning)
        result = compute(*arguments, **more)
    for warning in caught:
        note(str(warning.message))
    return result


def save(figure: "Figure", path: Path) -> None:
    """Write a figure; equal data give equal files.

    Args:
        figure: the figure.
        path: .svg, .png or .pdf; its folder is made.
    """
    import matplotlib as mpl

    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    path.parent.mkdir(exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "owa-bench"}):
        figure.savefig(path, metadata=metadata.get(path.suffix.lower(), {}), dpi=150)
    ERR.print(f"figure: {path}")


def number(value: float) -> str:
    """Return a number as it is shown, nothing for NaN."""
    return "" if math.isnan(value) else f"{value:.4g}"


def interval(span: IntervalEstimate) -> str:
    """Return an interval as it is shown, nothing for NaN."""
    if math.isnan(span.low):
        return ""
    return f"[{span.low:.3g}, {span.high:.3g}]"


# --- input tables ---------------------------------------------------------------------


class DataFile:
    """Named columns of one file; every fault names file, column, row and fix."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns = _read(path)

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def numbers(self, name: str, *, missing: bool = False, flat: bool = True) -> Floats:
        """Return a column of numbers.

        Args:
            name: the column.
            missing: empty cells are NaN; False: they are refused.
            flat: False: each row may hold several numbers.
        Returns: (rows,) or (rows, numbers a row).
        Raises: UsageError: there is no such column, or a cell is no number.
        """
        cells = self._column(name)
        if flat and isinstance(cells, np.ndarray) and cells.ndim > 1:
            raise UsageError(
                f"{self.path}: column `{name}` must hold one number a row, got an "
                f"array of shape {cells.shape}."
            )
        if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiub":
            values = cells.astype(np.float64)
        else:
            values = np.array([self._number(name, i, c) for i, c in enumerate(cells)])
        bad = np.argwhere(np.isnan(values))
        if len(bad) and not missing:
            row = int(bad[0][0]) + 1
            raise UsageError(
                f"{self.path}: column `{name}`, row {row} is empty or NaN. "
                "Fill it in, or leave the row out."
            )
        return values

    def names(self, name: str) -> tuple[str, ...]:
        """Return a column of names."""
        return tuple(str(cell) for cell in self._column(name))

    def flags(self, name: str) -> Flags:
        """Return a column of yes and no."""
        found = [str(cell).strip().lower() for cell in self._column(name)]
        for i, cell in enumerate(found):
            if cell not in _TRUE | _FALSE:
                self._refuse(name, i, cell, "true or false (1 or 0)")
        return np.array([cell in _TRUE for cell in found], dtype=np.bool_)

    def groups(self, name: str) -> dict[str, "np.typing.NDArray[np.int64]"]:
        """Return the rows of each value of a column, in order of appearance."""
        rows: dict[str, list[int]] = {}
        for i, value in enumerate(self.names(name)):
            rows.setdefault(value, []).append(i)
        return {value: np.array(at, dtype=np.int64) for value, at in rows.items()}

    def pivot(self, row: str, column: str, value: str) -> "Pivot":
        """Return a long table as a matrix.

        Args:
            row: the column that names rows.
            column: the column that names columns.
            value: the column of numbers.
        Returns: The matrix, NaN for pairs that are not there.
        Raises: UsageError: a pair is there twice.
        """
        first, second = self.names(row), self.names(column)
        rows, columns = tuple(dict.fromkeys(first)), tuple(dict.fromkeys(second))
        table = np.full((len(rows), len(columns)), np.nan)
        at_row = {name: i for i, name in enumerate(rows)}
        at_column = {name: i for i, name in enumerate(columns)}
        seen: set[tuple[str, str]] = set()
        cells = zip(first, second, self.numbers(value, missing=True), strict=True)
        for i, (one, other, number) in enumerate(cells):
            if (one, other) in seen:
                self._refuse(f"{row}`, `{column}", i, (one, other), "named once")
            seen.add((one, other))
            table[at_row[one], at_column[other]] = number
        return Pivot(rows, columns, table)

    def _column(self, name: str) -> Any:
        if name not in self._columns:
            held = ", ".join(f"`{known}`" for known in self._columns) or "none"
            raise UsageError(
                f"{self.path}: there is no column `{name}`; it holds {held}. Rename "
                "one, or see the command's --help for the columns it reads."
            )
        return self._columns[name]

    def _number(self, name: str, i: int, cell: object) -> float:
        text = "" if cell is None else str(cell).strip()
        if text == "":
            return math.nan
        try:
            return float(text)
        except ValueError:
            self._refuse(name, i, cell, "a number (write 0.5, not 0,5)")
            return math.nan

    def _refuse(self, name: str, i: int, cell: object, rule: str) -> None:
        raise UsageError(f"{self.path}: column `{name}`, row {i + 1} must be {rule}, got {cell!r}.")


class Pivot(NamedTuple):
    """A matrix with the names of its rows and columns."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    table: Floats


def _read(path: Path) -> dict[str, Any]:
    """Return the columns of a file by its ending."""
    if not path.is_file():
        what = "this is a folder" if path.is_dir() else "there is no such file"
        raise UsageError(f"{path}: {what}.")
    readers = {
        ".csv": _read_csv,
        ".tsv": _read_csv,
        ".parquet": _read_parquet,
        ".npz": _read_numpy,
        ".npy": _read_numpy,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UsageError(f"{path}: the file must be {FORMATS}, got {path.suffix or 'no ending'!r}.")
    columns = reader(path)
    if not columns or not all(len(cells) for cells in columns.values()):
        raise UsageError(f"{path}: the file holds no rows. It needs a header line and data below.")
    if len({len(cells) for cells in columns.values()}) > 1:
        held = ", ".join(f"`{name}` {len(cells)}" for name, cells in columns.items())
        raise UsageError(f"{path}: every column must have as many rows, got {held}.")
    return columns


def _read_csv(path: Path) -> dict[str, Any]:
    """Return the columns of a CSV file with a header line."""
    mark = "\t" if path.suffix.lower() == ".tsv" else ","
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file, delimiter=mark) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: this is not a table in UTF-8: {error}.") from error
    if not rows:
        return {}
    header = [text_of_cell(name).strip() for name in rows[0]]
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise UsageError(f"{path}: the header names column `{twice[0]}` twice. Rename one.")
    for i, row in enumerate(rows[1:]):
        if len(row) != len(header):
            sign = "commas" if mark == "," else "tabs"
            raise UsageError(
                f"{path}: row {i + 1} must have {len(header)} cells as the header, got "
                f"{len(row)}. Separate cells with {sign}."
            )
    return {name: [text_of_cell(row[j]) for row in rows[1:]] for j, name in enumerate(header)}


def _read_parquet(path: Path) -> dict[str, Any]:
    """Return the columns of a Parquet file."""
    with needs("pyarrow (reads Parquet)", extra("export")):
        from pyarrow import ArrowInvalid, parquet
    try:
        table = parquet.read_table(path)
    except ArrowInvalid as error:
        raise UsageError(f"{path}: this is not a Parquet file: {error}.") from error
    return {name: table.column(name).to_pylist() for name in table.column_names}


def _read_numpy(path: Path) -> dict[str, Any]:
    """Return the arrays of a NumPy file by name; a bare array is called `values`."""
    try:
        found = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise UsageError(
            f"{path}: this is not a NumPy file of plain arrays (no objects)."
        ) from error
    if isinstance(found, np.ndarray):
        return {"values": np.atleast_1d(found)}
    with found:
        return {name: np.atleast_1d(found[name]) for name in found.files}

"""Tables of structs of one kind, as pandas, Arrow, CSV and Parquet."""

import csv
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from owa_bench.errors import MissingPartError

INSTALL = 'pip install "owa_bench[export]"'
RowT = TypeVar("RowT", bound=msgspec.Struct)


class RowTable(Sequence[RowT], Generic[RowT]):
    """Rows of one kind: a sequence of structs that knows its columns."""

    def __init__(self, kind: type[RowT], rows: Sequence[RowT]) -> None:
        self.kind: type[RowT] = kind
        self._rows: tuple[RowT, ...] = tuple(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        return self._rows[place]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(field.name for field in msgspec.structs.fields(self.kind))

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a dictionary a row."""
        return [msgspec.structs.asdict(row) for row in self._rows]

    def to_arrow(self) -> Any:
        """Return a `pyarrow.Table`; its types do not depend on the rows.

        Raises:
            MissingPartError: pyarrow is not installed.
        """
        try:
            import pyarrow
        except ImportError as error:
            raise MissingPartError("pyarrow", INSTALL) from error
        names = {
            bool: pyarrow.bool_(),
            int: pyarrow.int64(),
            float: pyarrow.float64(),
            str: pyarrow.string(),
        }
        hints = typing.get_type_hints(self.kind)
        fields = [(name, names[_plain_type(hints[name])]) for name in self.columns]
        return pyarrow.Table.from_pylist(self.to_dicts(), schema=pyarrow.schema(fields))

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame`.

        Raises:
            MissingPartError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise MissingPartError("pandas", INSTALL) from error
        return pandas.DataFrame(self.to_dicts(), columns=list(self.columns))

    def write_parquet(self, path: Path) -> None:
        """Write a Parquet file; MissingPartError without pyarrow."""
        table = self.to_arrow()
        from pyarrow import parquet

        parquet.write_table(table, path, compression="zstd")

    def write_csv(self, path: Path) -> None:
        """Write a CSV file in UTF-8 with a line of names; None is an empty field."""
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.columns)
            writer.writerows(msgspec.structs.astuple(row) for row in self._rows)


def _plain_type(hint: Any) -> Any:
    """Return the type of a column, without None."""
    return next((t for t in typing.get_args(hint) if t is not type(None)), hint)

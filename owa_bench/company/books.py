"""The books of a company: its tables, by key and by what a row belongs to."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from owa_bench.company import tables
from owa_bench.company.tables import Row

R = TypeVar("R", bound=Row)


class BookTable(Mapping[str, R]):
    """Rows by key, in the order in which they were put."""

    def __init__(self) -> None:
        self._rows: dict[str, R] = {}
        self._by: dict[str, dict[object, dict[str, None]]] = {}

    def __getitem__(self, key: str) -> R:
        return self._rows[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, row: R) -> R:
        """Add a row, or replace the one of its key."""
        old = self._rows.get(row.id)
        self._rows[row.id] = row
        for field, index in self._by.items():
            if old is not None:
                index[getattr(old, field)].pop(old.id, None)
            index.setdefault(getattr(row, field), {})[row.id] = None
        return row

    def remove(self, key: str) -> None:
        """Remove a row.

        Args:
            key: Of the row.
        """
        row = self._rows.pop(key)
        for field, index in self._by.items():
            index[getattr(row, field)].pop(key, None)

    def extend(self, rows: Iterable[R]) -> None:
        """Add rows.

        Args:
            rows: Each with a key of its own.
        """
        for row in rows:
            self.put(row)

    def of(self, field: str, value: object) -> tuple[R, ...]:
        """Return the rows of which a field has a value.

        Args:
            field: Of the rows; it is indexed from the first question on.
            value: What it is to be.
        """
        if field not in self._by:
            index: dict[object, dict[str, None]] = {}
            for row in self._rows.values():
                index.setdefault(getattr(row, field), {})[row.id] = None
            self._by[field] = index
        return tuple(self._rows[key] for key in self._by[field].get(value, ()))


class Books:
    """All tables of a company; a case arranges its facts in them."""

    people: BookTable[tables.Employee]
    customers: BookTable[tables.Customer]
    contacts: BookTable[tables.Contact]
    products: BookTable[tables.Product]
    prices: BookTable[tables.ListPrice]
    orders: BookTable[tables.Order]
    order_lines: BookTable[tables.OrderLine]
    shipments: BookTable[tables.Shipment]
    proofs: BookTable[tables.ProofOfDelivery]
    delays: BookTable[tables.Delay]
    invoices: BookTable[tables.Invoice]
    credit_notes: BookTable[tables.CreditNote]
    contracts: BookTable[tables.CustomerContract]

    def __init__(self) -> None:
        for name in table_names():
            setattr(self, name, BookTable())

    def digest(self) -> str:
        """Return the SHA-256 of every row in order."""
        found = hashlib.sha256()
        for name in table_names():
            found.update(msgspec.json.encode([name, *getattr(self, name).values()]))
        return found.hexdigest()


@cache
def _hints() -> Mapping[str, Any]:
    return get_type_hints(Books)


def table_names() -> tuple[str, ...]:
    """Return the names of the tables, in order."""
    return tuple(_hints())


def row_type(name: str) -> type[Row]:
    """Return the type of a table's rows.

    Args:
        name: Of the table.
    """
    kind: type[Row] = get_args(_hints()[name])[0]
    return kind

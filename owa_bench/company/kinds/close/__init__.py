"""The kind `close`: bank lines of a month are applied to invoices by a written policy."""

from owa_bench.company.kinds.close.case import CloseKind

KIND = CloseKind()

__all__ = ["KIND", "CloseKind"]

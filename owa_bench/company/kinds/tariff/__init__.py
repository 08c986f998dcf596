"""The kind `tariff`: a rating engine departs from the published tariff; find how, and forecast."""

from owa_bench.company.kinds.tariff.kind import KIND

__all__ = ["KIND"]

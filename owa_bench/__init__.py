"""OWA-Bench: changing environments, hash-chained evidence, signed level reports."""

from owa_bench.registration import register_ids

__version__ = "0.1.0"

register_ids()

"""OWA-Bench: changing environments, hash-chained evidence, signed level reports."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from owa_bench.registration import register_ids

if TYPE_CHECKING:
    from owa_bench.report.read.run_tables import OpenRun

__version__ = "0.1.0"

register_ids()


def open_run(path: str | Path) -> "OpenRun":
    """Return a run directory as tables: `open_run("runs/first").episodes()`.

    Raises:
        RunDirectoryError: it is no run directory.

    Source: docs/read-a-run.md#tables
    """
    # By name: modules of the acting half import this one, and judging brings SciPy.
    found: OpenRun = import_module("owa_bench.report.read.run_tables").open_run(path)
    return found

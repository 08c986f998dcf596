"""`owa-bench measure`: the companion measures on a user's own tables."""

import typer

from owa_bench.cli.measuring_aiq import measure_aiq
from owa_bench.cli.measuring_cartpole3d import measure_cartpole3d
from owa_bench.cli.measuring_entropy import measure_entropy
from owa_bench.cli.measuring_failures import measure_failures
from owa_bench.cli.measuring_generality import measure_generality
from owa_bench.cli.measuring_novelty import measure_novelty

HELP = """Measures beside the AAI axes, on a table of your own or a run of trials.

Every file may be CSV, TSV, Parquet (extra tables) or NumPy; each command names the
columns it reads; `novelty` reads a run. The formulas and their limits:
docs/companions.md.
"""


def attach(app: typer.Typer) -> None:
    """Add the group of commands to the application."""
    group = typer.Typer(help=HELP, no_args_is_help=True)
    group.command("aiq")(measure_aiq)
    group.command("cartpole3d")(measure_cartpole3d)
    group.command("intelligence-test")(measure_failures)
    group.command("generality")(measure_generality)
    group.command("entropy")(measure_entropy)
    group.command("novelty")(measure_novelty)
    app.add_typer(group, name="measure")

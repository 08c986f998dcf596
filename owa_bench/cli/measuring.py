"""`owa-bench measure`: the companion measures on a user's own tables."""

from typing import Any

import typer
from typer.core import TyperGroup

HELP = """Measures beside the AAI axes, on a table of your own or a run of trials.

Every file may be CSV, TSV, Parquet (extra tables) or NumPy; each command names the
columns it reads; `novelty` reads a run. The formulas and their limits:
docs/companions.md.
"""


class OnDemand(TyperGroup):
    """The commands of `measure`, imported when one is asked for: SciPy takes long."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        self._fill()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by name."""
        self._fill()
        return super().get_command(ctx, cmd_name)

    def _fill(self) -> None:
        if self.commands:
            return
        from owa_bench.cli.measuring_aiq import measure_aiq
        from owa_bench.cli.measuring_cartpole3d import measure_cartpole3d
        from owa_bench.cli.measuring_entropy import measure_entropy
        from owa_bench.cli.measuring_failures import measure_failures
        from owa_bench.cli.measuring_generality import measure_generality
        from owa_bench.cli.measuring_novelty import measure_novelty

        group = typer.Typer()
        group.command("aiq")(measure_aiq)
        group.command("cartpole3d")(measure_cartpole3d)
        group.command("intelligence-test")(measure_failures)
        group.command("generality")(measure_generality)
        group.command("entropy")(measure_entropy)
        group.command("novelty")(measure_novelty)
        self.commands.update(typer.main.get_group(group).commands)


def attach(app: typer.Typer) -> None:
    """Add the group of commands to the application."""
    group = typer.Typer(help=HELP, no_args_is_help=True, cls=OnDemand)
    app.add_typer(group, name="measure")

"""`owa-bench export`: recorded episodes in the forms that others read."""

from pathlib import Path
from typing import Annotated

import typer

from owa_bench.cli.console import OUT, as_json
from owa_bench.cli.evidence import AsJson, RunDir


def attach(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(export)


def export(
    run_dir: RunDir,
    minari: Annotated[
        Path, typer.Option("--minari", help="Folder for Minari datasets, one an arm.")
    ],
    json: AsJson = False,
) -> None:
    r"""Write the recorded episodes of a native suite as Minari datasets.

    Observations are those of the trace, each held to the digest of its step. Needs the
    extra: pip install "owa_bench\[minari]".

      owa-bench export runs/level0 --minari datasets

      MINARI_DATASETS_PATH=datasets minari list local
    """
    from owa_bench.bridges import minari as bridge

    made = bridge.export(run_dir, minari)
    if json:
        as_json(made)
        return
    for one in made:
        OUT.print(
            f"{one.dataset}: {one.episodes} episodes, {one.steps} steps in {one.folder}"
        )

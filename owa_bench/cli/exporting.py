"""`owa-bench export`: a run in the formats of other tools."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from owa_bench.cli.console import OUT, as_json
from owa_bench.cli.options import AsJson, RunDir, option

if TYPE_CHECKING:
    from owa_bench.bridges.minari import ExportedDataset


def export(
    run_dir: Path = RunDir,
    to: Literal["parquet", "csv", "inspect", "minari"] = option(..., "The format."),
    out: Path = option(..., "Folder to write to."),
    json: bool = AsJson,
) -> None:
    r"""Write the counted episodes of a run for other tools; the run stays as it is.

    parquet, csv: tables of episodes, steps and costs. inspect: logs of Inspect AI, one
    an agent (pip install inspect-ai). minari: datasets of views of numbers, one an
    agent: CartPole3D, and tool suites where every action was a macro of the vector view
    (a trained policy's are); those must be revealed, for they are played again.
    Extras: "owa_bench\[export]" for parquet, "owa_bench\[minari]" for minari.

      owa-bench export runs/first --to parquet --out tables

      owa-bench export runs/first --to inspect --out logs

      owa-bench export runs/level0 --to minari --out datasets
    """
    if to == "inspect":
        from owa_bench.bridges.inspect_log import export_logs

        logs = export_logs(run_dir, out)
        _print(logs, [f"{x.arm}: {x.samples} samples in {x.path}" for x in logs], json)
    elif to == "minari":
        from owa_bench.bridges import minari

        sets = minari.export(run_dir, out)
        _print(sets, [_line(each) for each in sets], json)
    else:
        from owa_bench.report.run_tables import open_run

        tables = open_run(run_dir).write_tables(out, to)
        _print(tables, [f"{x.name}: {x.rows} rows in {x.path}" for x in tables], json)


def _line(made: "ExportedDataset") -> str:
    """Return what came of an arm's dataset in one line."""
    if not made.dataset:
        return f"{made.arm}: no dataset, {made.refused}"
    line = f"{made.dataset}: {made.episodes} episodes, {made.steps} steps"
    left = f", {made.left_out} left out (no step, or ended by a clock)"
    return f"{line} in {made.folder}{left if made.left_out else ''}"


def _print(written: Sequence[object], lines: list[str], json: bool) -> None:
    """Print what was written, as JSON or a line each."""
    if json:
        as_json(written)
    for line in () if json else lines:
        OUT.print(line)

"""`owa-bench readers`: the table of what readers did."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from owa_bench.cli.console import OUT, as_json, figure_text, note, table
from owa_bench.cli.options import AsJson, option
from owa_bench.errors import CheckFailure

if TYPE_CHECKING:
    from owa_bench.reports.export.readers import ReaderRow

_COLUMNS = (
    *("run", "reader", "suite", "tier", "episodes", "attempts", "tasks", "success"),
    *("95 % over tasks", "quality", "acts", "characters in", "out", "USD, at least"),
    *("mean p", "Brier"),
)


def readers(
    run_dirs: list[Path] = typer.Argument(help="Runs of `owa-bench play --folder`."),
    markdown: bool = option(False, "Print a table in Markdown."),
    json: bool = AsJson,
) -> None:
    """Print what readers did: success, quality, acts, characters, p and Brier score.

    One row for each reader, suite and tier of a run that verifies. A run without readers is named
    and left out. Exits 1 if a run does not verify.

      owa-bench readers runs/mine runs/yours --markdown
    """
    from owa_bench.reports.export.readers import reader_table

    found = reader_table(run_dirs)
    if json:
        as_json(msgspec.to_builtins([*found.rows]))
    elif markdown:
        OUT.print("\n".join(_markdown([_cells(row) for row in found.rows])))
    else:
        table("Readers", _COLUMNS, [_cells(row) for row in found.rows])
    for words in found.skipped:
        note(words)
    if found.refused:
        raise CheckFailure(" ".join(found.refused))


def _cells(row: "ReaderRow") -> tuple[str, ...]:
    """Return the cells of a row, in the order of the columns."""
    interval = ""
    if row.low is not None and row.high is not None:
        interval = f"{row.low:.2f} to {row.high:.2f}"
    some = "" if row.stated == row.episodes else f" (of {row.stated})"
    p = "" if row.p is None else f"{row.p:.2f}{some}"
    episodes = str(row.episodes)
    if row.episodes < row.planned:
        episodes += f" of {row.planned}"
    return (
        *(row.run, row.reader, row.suite, str(row.tier), episodes, str(row.attempts)),
        *(str(row.tasks), f"{row.successes}/{row.episodes}", interval),
        *(figure_text(row.quality), str(row.acts)),
        *(str(row.characters_in), str(row.characters_out), figure_text(row.usd)),
        *(p, figure_text(row.brier)),
    )


def _markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    body = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [_COLUMNS, ["---"] * len(_COLUMNS), *body]
    return [f"| {' | '.join(line)} |" for line in lines]

"""What the `measure` commands share: their options, and how a result is shown."""

import functools
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import numpy as np
import typer

from owa_bench.cli.console import ERR, note
from owa_bench.cli.datafile import FORMATS
from owa_bench.errors import FieldError, ScoringError, UsageError
from owa_bench.scoring.companions.arrays import IntervalEstimate
from owa_bench.scoring.companions.generality.difficulty import SmallSampleWarning

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DataPath = Annotated[Path, typer.Argument(help=f"A table: {FORMATS}.")]


def drawable(path: Path | None) -> Path | None:
    """Return where a figure is to be written; refuse it before anything is measured."""
    if path is None:
        return None
    if path.suffix.lower() not in {".svg", ".png", ".pdf"}:
        raise FieldError("--figure", str(path), "must end in .svg, .png or .pdf")
    if not path.parent.is_dir():
        raise FieldError(
            "--figure",
            str(path),
            f"must lie in a folder that is there (mkdir -p {path.parent})",
        )
    return path


FigurePath = Annotated[
    Path | None,
    typer.Option(
        "--figure", callback=drawable, help="Write the figure: .svg, .png or .pdf."
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the resamples.")]
Resamples = Annotated[
    int, typer.Option("--resamples", help="Bootstrap resamples.", min=0)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_Options = ParamSpec("_Options")


def blames(
    *options: str,
) -> Callable[[Callable[_Options, None]], Callable[_Options, None]]:
    """Return a decorator: what a measure says of its arrays names the user's files."""

    def decorate(command: Callable[_Options, None]) -> Callable[_Options, None]:
        @functools.wraps(command)
        def run(*arguments: _Options.args, **named: _Options.kwargs) -> None:
            try:
                command(*arguments, **named)
            except ScoringError as error:
                files = [str(named[option]) for option in options if named.get(option)]
                raise UsageError(f"{', '.join(files)}: {error}") from error

        return run

    return decorate


def noted(compute: Any, *arguments: Any, **options: Any) -> Any:
    """Return what `compute` returns; its warnings are printed as notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SmallSampleWarning)
        found = compute(*arguments, **options)
    for warning in caught:
        note(str(warning.message))
    return found


def save(figure: "Figure", path: Path) -> None:
    """Write a figure; equal data give equal files."""
    import matplotlib as mpl

    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with mpl.rc_context({"svg.hashsalt": "owa-bench"}):
        figure.savefig(path, metadata=metadata.get(path.suffix.lower(), {}), dpi=150)
    ERR.print(f"figure: {path}")


def plain(value: Any) -> Any:
    """Return a result as JSON data: no NaN, no infinity, names kept."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items()}
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


def number(value: float) -> str:
    """Return a number as it is shown, nothing for NaN."""
    return "" if math.isnan(value) else f"{value:.4g}"


def interval(span: IntervalEstimate) -> str:
    """Return an interval as it is shown, nothing for NaN."""
    if math.isnan(span.low):
        return ""
    return f"[{span.low:.3g}, {span.high:.3g}]"

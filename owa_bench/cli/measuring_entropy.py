"""`owa-bench measure entropy`."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from owa_bench.cli import measured
from owa_bench.cli.console import OUT, as_json, table
from owa_bench.cli.datafile import FORMATS, DataFile
from owa_bench.errors import FieldError, UsageError
from owa_bench.scoring.companions.entropy_decay import measure, texts


@measured.blames("file")
def measure_entropy(
    file: Annotated[Path, typer.Argument(help=f"A table ({FORMATS}), or a .txt text.")],
    train: Annotated[
        Path | None,
        typer.Option("--train", help="Text the n-gram model learns (default: FILE)."),
    ] = None,
    order: Annotated[
        int, typer.Option("--order", help="Characters an n-gram spans.", min=1, max=32)
    ] = 4,
    windows: Annotated[
        int, typer.Option("--windows", help="Windows per context length.", min=2)
    ] = 1000,
    begins_with: Annotated[
        str | None, typer.Option("--begins-with", help="First words of the main text.")
    ] = None,
    figure: measured.FigurePath = None,
    json: measured.AsJson = False,
) -> None:
    """Entropy decay curve and information gain span.

    Reads a table with columns `length` (context, tokens), `conditional` (H_k, bits),
    `marginal` (H*_k, bits) and, for several, `model`. A .txt file is measured with a
    character n-gram model that needs nothing; a Project Gutenberg header is stripped.
    A language model of yours: `owa_bench.subjects.language_models`.

      owa-bench measure entropy book.txt --begins-with "Call me"

      owa-bench measure entropy entropies.csv --figure decay.svg
    """
    if file.suffix.lower() == ".txt":
        curves = {"n-gram": _text_curve(file, train, order, windows, begins_with)}
    else:
        if train:
            raise FieldError("--train", str(train), "goes with a .txt text alone")
        curves = _table_curves(DataFile(file))
    if figure:
        from owa_bench.scoring.companions.figures import entropy_decay_figure

        measured.save(
            entropy_decay_figure({name: one.points for name, one in curves.items()}),
            figure,
        )
    if json:
        as_json(measured.plain(curves))
        return
    for name, one in curves.items():
        _print(name, one)


def _print(name: str, one: measure.EntropyDecayResult) -> None:
    """Print a model's curve and its summary."""
    rows = [
        (
            p.length,
            f"{p.conditional:.4f}",
            f"{p.marginal:.4f}",
            f"{p.uncertainty:.4f}",
            measured.interval(p.span),
            p.windows or "",
        )
        for p in one.points
    ]
    table(name, ("k", "H bits", "H* bits", "U", "95% interval", "windows"), rows)
    gain = one.reason or f"{one.gain:.4f} {measured.interval(one.gain_span)}"
    OUT.print(f"information gain span: {gain}")
    if one.collapsed:
        OUT.print(
            f"U at the longest context is below {measure.COLLAPSE}: the model has "
            "likely memorised this text."
        )


def _text_curve(
    file: Path, train: Path | None, order: int, windows: int, begins_with: str | None
) -> measure.EntropyDecayResult:
    """Return the curve of a character n-gram model on a text."""
    text = texts.strip_gutenberg(_text(file), begins_with=begins_with)
    learnt = texts.strip_gutenberg(_text(train)) if train else text
    tokens, alphabet = texts.character_tokens(learnt + text)
    model = texts.NGramModel(
        tokens[: len(learnt)], order=order, vocabulary=len(alphabet)
    )
    return measure.measure(model, tokens[len(learnt) :], windows=windows)


def _text(file: Path) -> str:
    if not file.is_file():
        raise UsageError(f"{file}: there is no such file.")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: the text must be UTF-8: {error}.") from error


def _table_curves(data: DataFile) -> dict[str, measure.EntropyDecayResult]:
    """Return curves from a table of entropies."""
    lengths = data.numbers("length")
    inner, outer = data.numbers("conditional"), data.numbers("marginal")
    everything = {data.path.stem: np.arange(lengths.size)}
    groups = data.groups("model") if "model" in data else everything
    return {
        name: measure.from_entropies(lengths[rows], inner[rows], outer[rows])
        for name, rows in groups.items()
    }

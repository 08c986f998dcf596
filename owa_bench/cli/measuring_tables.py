"""`owa-bench measure entropy` and `measure intelligence-test`: measures on tables."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import typer

from owa_bench import seeding
from owa_bench.cli import measuring
from owa_bench.cli.console import OUT, as_json, note, table
from owa_bench.cli.measuring import DataFile
from owa_bench.cli.options import AsJson, option
from owa_bench.errors import FieldError, UsageError
from owa_bench.measures.entropy_decay import measure as entropy
from owa_bench.measures.entropy_decay import texts
from owa_bench.measures.intelligence_test import failures
from owa_bench.measures.intelligence_test import measure as decay


@measuring.blames("file")
def measure_entropy(
    file: Path = typer.Argument(help=f"A table ({measuring.FORMATS}), or a .txt text."),
    train: Path | None = option(None, "Text the n-gram model learns (default: FILE)."),
    order: int = option(4, "Characters an n-gram spans.", min=1, max=32),
    windows: int = option(1000, "Windows per context length.", min=2),
    begins_with: str | None = option(None, "First words of the main text."),
    figure: Path | None = measuring.FigurePath,
    json: bool = AsJson,
) -> None:
    """Entropy decay curve and information gain span.

    Reads a table with columns `length` (context, tokens), `conditional` (H_k, bits), `marginal`
    (H*_k, bits) and, for several, `model`. A .txt file is measured with a character n-gram model
    that needs nothing; a Project Gutenberg header is stripped. A language model of yours:
    `owa_bench.subjects.language_models`.

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
        from owa_bench.measures.figures import entropy_decay_figure

        measuring.save(
            entropy_decay_figure({name: one.points for name, one in curves.items()}), figure
        )
    if json:
        as_json(curves)
        return
    for name, one in curves.items():
        _print_entropy(name, one)


def _print_entropy(name: str, one: entropy.EntropyDecayResult) -> None:
    """Print a model's curve and its summary."""
    rows = [
        (
            p.length,
            f"{p.conditional:.4f}",
            f"{p.marginal:.4f}",
            f"{p.uncertainty:.4f}",
            measuring.interval(p.span),
            p.windows or "",
        )
        for p in one.points
    ]
    table(name, ("k", "H bits", "H* bits", "U", "95% interval", "windows"), rows)
    gain = one.reason or f"{one.gain:.4f} {measuring.interval(one.gain_span)}"
    OUT.print(f"information gain span: {gain}")
    if one.collapsed:
        OUT.print(
            f"U at the longest context is below {entropy.COLLAPSE}: the model has "
            "likely memorised this text."
        )


def _text_curve(
    file: Path, train: Path | None, order: int, windows: int, begins_with: str | None
) -> entropy.EntropyDecayResult:
    """Return the curve of a character n-gram model on a text."""
    text = texts.strip_gutenberg(_text(file), begins_with=begins_with)
    learnt = texts.strip_gutenberg(_text(train)) if train else text
    tokens, alphabet = texts.character_tokens(learnt + text)
    model = texts.NGramModel(tokens[: len(learnt)], order=order, vocabulary=len(alphabet))
    return entropy.measure(model, tokens[len(learnt) :], windows=windows)


def _text(file: Path) -> str:
    if not file.is_file():
        raise UsageError(f"{file}: there is no such file.")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: the text must be UTF-8: {error}.") from error


def _table_curves(data: DataFile) -> dict[str, entropy.EntropyDecayResult]:
    """Return curves from a table of entropies."""
    lengths = data.numbers("length")
    inner, outer = data.numbers("conditional"), data.numbers("marginal")
    everything = {data.path.stem: np.arange(lengths.size)}
    groups = data.groups("model") if "model" in data else everything
    return {
        name: entropy.from_entropies(lengths[rows], inner[rows], outer[rows])
        for name, rows in groups.items()
    }


# --- Intelligence Test ----------------------------------------------------------------


@measuring.blames("file")
def measure_failures(
    file: Path = measuring.DataPath,
    column: str = option("failures", "Column of failure counts."),
    by: str | None = option(None, "Column that names the subjects."),
    candidates: int | None = option(None, "Answers there are to try; counts end at K-1.", min=2),
    figure: Path | None = measuring.FigurePath,
    resamples: int = measuring.resamples_option(200),
    seed: int = measuring.Seed,
    json: bool = AsJson,
) -> None:
    """Level of a subject by how its failure counts decay.

    Reads a column `failures`: wrong attempts before the right one. With a column
    `solved` (true or false), unsolved rows are right-censored at their count. With
    --by, one result a subject; with a column `size` (parameters) too, the size at which
    the exponent would reach 3. Or a .npz file with `scores` (items, candidates) and
    `reference` (the right candidate's column).

    The level is read from the likelihood, and named only where its interval lies in one region:
    alpha up to 2 Limited, up to 3 Capable, above Autonomous.

      owa-bench measure intelligence-test attempts.csv

      owa-bench measure intelligence-test attempts.csv --by agent --json
    """
    data = DataFile(file)
    subjects = _subjects(data, column, by, candidates)
    stream = seeding.stream(seed, "measure", "intelligence-test")
    results = {
        name: decay.measure(counts, resamples=resamples, rng=stream)
        for name, counts in subjects.items()
    }
    line = _projection(data, by, results)
    if figure:
        from owa_bench.measures.figures import intelligence_test_figure

        name = next(iter(subjects))
        if len(subjects) > 1:
            note(f"the figure shows the first subject, {name}")
        found = results[name].likelihood
        drawn = intelligence_test_figure(subjects[name], found, title=name)
        measuring.save(drawn, figure)
    if json:
        as_json({"subjects": results, "projection": line})
        return
    table(
        "Intelligence Test",
        ("subject", "level", "alpha", "95% interval", "from", "least squares", "note"),
        [_failure_row(name, one) for name, one in results.items()],
    )
    if line is not None:
        OUT.print(
            f"alpha = 3 at {line.size:.3g} parameters {measuring.interval(line.span)}, "
            f"in {measuring.number(line.years)} years by Moore's law"
            + (f" ({line.span.reason})" if line.span.reason else "")
        )


def _subjects(
    data: DataFile, column: str, by: str | None, candidates: int | None
) -> dict[str, failures.Failures]:
    """Return the failure counts of each subject in the file."""
    if "scores" in data:
        scores = data.numbers("scores", flat=False)
        found = failures.from_scores(scores, data.numbers("reference"))
        return {data.path.stem: found}
    name = "values" if column == "failures" and "values" in data else column
    counts = data.numbers(name)
    solved = data.flags("solved") if "solved" in data else np.ones(counts.size, bool)
    groups = data.groups(by) if by else {data.path.stem: np.arange(counts.size)}
    top = math.inf if candidates is None else float(candidates - 1)
    made = {}
    for subject, rows in groups.items():
        if candidates is not None:
            failures.from_counts(counts[rows], candidates=candidates)
        made[subject] = failures.from_attempts(counts[rows], solved[rows])._replace(top=top)
    return made


def _failure_row(name: str, one: decay.IntelligenceTestResult) -> tuple[Any, ...]:
    found, line = one.likelihood, one.least_squares
    favoured = [c.other for c in one.comparisons if c.favours == c.other]
    note = found.reason or (f"{' and '.join(favoured)} fits better" if favoured else "")
    return (
        name,
        one.level.name or "undetermined",
        measuring.number(found.alpha),
        measuring.interval(found.span),
        f"{found.start:g}",
        line.reason.partition(":")[0] if line.reason else measuring.number(line.alpha),
        note,
    )


def _projection(
    data: DataFile, by: str | None, results: dict[str, decay.IntelligenceTestResult]
) -> decay.Projection | None:
    """Return the projection where the file gives a size per subject."""
    if by is None or "size" not in data:
        return None
    sizes = data.numbers("size")
    groups = data.groups(by)
    pairs = [
        (sizes[groups[name][0]], one.likelihood.alpha)
        for name, one in results.items()
        if math.isfinite(one.likelihood.alpha)
    ]
    if not pairs:
        return None
    return decay.projection([size for size, _ in pairs], [a for _, a in pairs])

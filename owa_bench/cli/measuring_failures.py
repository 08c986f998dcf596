"""`owa-bench measure intelligence-test`."""

import math
from typing import Annotated, Any

import numpy as np
import typer

from owa_bench import seeding
from owa_bench.cli import measured
from owa_bench.cli.console import OUT, as_json, note, table
from owa_bench.cli.datafile import DataFile
from owa_bench.scoring.companions.intelligence_test import failures, measure


@measured.blames("file")
def measure_failures(
    file: measured.DataPath,
    column: Annotated[
        str, typer.Option("--column", help="Column of failure counts.")
    ] = "failures",
    by: Annotated[
        str | None, typer.Option("--by", help="Column that names the subjects.")
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(
            "--candidates", min=2, help="Answers there are to try; counts end at K-1."
        ),
    ] = None,
    figure: measured.FigurePath = None,
    resamples: measured.Resamples = 200,
    seed: measured.Seed = 0,
    json: measured.AsJson = False,
) -> None:
    """Level of a subject by how its failure counts decay.

    Reads a column `failures`: wrong attempts before the right one. With a column
    `solved` (true or false), unsolved rows are right-censored at their count. With
    --by, one result a subject; with a column `size` (parameters) too, the size at which
    the exponent would reach 3. Or a .npz file with `scores` (items, candidates) and
    `reference` (the right candidate's column).

    The level is read from the likelihood, and named only where its interval lies in one
    region: alpha up to 2 Limited, up to 3 Capable, above Autonomous.

      owa-bench measure intelligence-test attempts.csv

      owa-bench measure intelligence-test attempts.csv --by agent --json
    """
    data = DataFile(file)
    subjects = _subjects(data, column, by, candidates)
    stream = seeding.stream(seed, "measure", "intelligence-test")
    results = {
        name: measure.measure(counts, resamples=resamples, rng=stream)
        for name, counts in subjects.items()
    }
    line = _projection(data, by, results)
    if figure:
        from owa_bench.scoring.companions.figures import intelligence_test_figure

        name = next(iter(subjects))
        if len(subjects) > 1:
            note(f"the figure shows the first subject, {name}")
        found = results[name].likelihood
        drawn = intelligence_test_figure(subjects[name], found, title=name)
        measured.save(drawn, figure)
    if json:
        as_json(measured.plain({"subjects": results, "projection": line}))
        return
    table(
        "Intelligence Test",
        ("subject", "level", "alpha", "95% interval", "from", "least squares", "note"),
        [_failure_row(name, one) for name, one in results.items()],
    )
    if line is not None:
        OUT.print(
            f"alpha = 3 at {line.size:.3g} parameters {measured.interval(line.span)}, "
            f"in {measured.number(line.years)} years by Moore's law"
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
        made[subject] = failures.from_attempts(counts[rows], solved[rows])._replace(
            top=top
        )
    return made


def _failure_row(name: str, one: measure.IntelligenceTestResult) -> tuple[Any, ...]:
    found, line = one.likelihood, one.least_squares
    favoured = [c.other for c in one.comparisons if c.favours == c.other]
    note = found.reason or (f"{' and '.join(favoured)} fits better" if favoured else "")
    return (
        name,
        one.level.name or "undetermined",
        measured.number(found.alpha),
        measured.interval(found.span),
        f"{found.start:g}",
        line.reason.partition(":")[0] if line.reason else measured.number(line.alpha),
        note,
    )


def _projection(
    data: DataFile, by: str | None, results: dict[str, measure.IntelligenceTestResult]
) -> measure.Projection | None:
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
    return measure.projection([size for size, _ in pairs], [a for _, a in pairs])

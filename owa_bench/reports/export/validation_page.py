"""Page of a validation: the matrix, its figures and its numbers, and the JSON beside.

A pure function of the run directory and the sign file.
"""

from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

import msgspec
from jinja2 import Template
from markupsafe import Markup

from owa_bench.canonical import sha256
from owa_bench.errors import FieldError
from owa_bench.records.validation import AXES, load_signs
from owa_bench.records.validation_result import AxisCorrelation, Bounded, KnobResponse, Validation
from owa_bench.reports.export import validation_figures
from owa_bench.reports.page.templates import format_share, format_value, page_template
from owa_bench.reports.read.bundle import read
from owa_bench.reports.statement import write_atomically
from owa_bench.scoring.axis import AXIS_NAMES
from owa_bench.scoring.observe.inner_attempts import read_campaign
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.validation.summary import validate

PAGE, RESULT = "validation.html", "validation.json"
CLASSES = {"as declared": "pass", "contrary": "fail"}


def write_validation(run_dir: Path, signs: bytes, name: str) -> Validation:
    """Judge the run of a validation; write its page and its numbers beside the run.

    Args:
        run_dir: a run directory that `owa-bench validate` made.
        signs: the sign file's bytes.
        name: its name, for messages.
    Returns: What was found.
    Raises:
        FieldError: no episode of the run counts.
        RunDirectoryError: there is no run.
    """
    design, bundle = load_signs(signs, name), read(run_dir)
    table = observe(bundle.traces(), bundle.prices)
    campaigns = [c for c in map(read_campaign, bundle.traces()) if c is not None]
    if not len(table):
        raise FieldError("run", str(run_dir), "must hold at least one counted episode")
    validation = msgspec.structs.replace(
        validate(bundle.plan, table, bundle.protocol, bundle.prices, design, campaigns),
        version=metadata.version("owa_bench"),
        plan_digest=bundle.plan_digest,
        signs_digest=sha256(signs),
    )
    page = render_validation(validation, design.agents.names).encode()
    write_atomically(run_dir / PAGE, page)
    data = msgspec.json.format(msgspec.json.encode(validation), indent=1) + b"\n"
    write_atomically(run_dir / RESULT, data)
    return validation


def render_validation(validation: Validation, named: Sequence[str]) -> str:
    """Return the page as text.

    Args:
        validation: what was found.
        named: the unhandicapped agents.
    Returns: The page, self-contained.
    """
    played = [row for row in validation.knobs if row.tasks]
    drawings = [
        (
            validation_figures.matrix_figure(validation),
            "Change of each axis from the first to the last dose. Framed: the knob's "
            "own axis. “?”: the declared sign was not shown. “!”: the contrary.",
        )
    ]
    if played:
        drawings.append(
            (
                validation_figures.dose_figure(played),
                "Every axis over the doses of each knob. Green: its own axis, with the "
                "95 percent interval over tasks like these. Grey: the other axes.",
            )
        )
    return _template().render(
        validation=validation,
        axes=AXES,
        names=AXIS_NAMES,
        drawings=[(Markup(svg), text) for svg, text in drawings],  # noqa: S704 - ours
        scatter=Markup(validation_figures.agents_figure(validation.arms, named)),  # noqa: S704 - ours
        pair=autonomy_planning(validation.unhandicapped),
        every=autonomy_planning(validation.correlations),
    )


def autonomy_planning(correlations: Sequence[AxisCorrelation]) -> AxisCorrelation:
    """Return the correlation of A and P."""
    return next(correlation for correlation in correlations if correlation.axes == ("A", "P"))


def counts(rows: Sequence[KnobResponse], sign: str) -> tuple[int, int]:
    """Return how many cells of a sign are as declared, and how many have evidence.

    Args:
        rows: rows of the matrix.
        sign: "-" or "0".
    Returns: Two counts.
    """
    cells = [cell for row in rows for cell in row.cells if cell.sign == sign]
    known = [cell for cell in cells if cell.verdict != "NO EVIDENCE"]
    return sum(cell.verdict == "as declared" for cell in known), len(known)


def format_bounded(number: Bounded) -> str:
    """Return a number with its interval in one line, a dash when it is missing."""
    if number.value is None:
        return "–"
    if number.low is None or number.high is None:
        return f"{number.value:.3f} (no interval)"
    return f"{number.value:.3f} ({number.low:.3f} to {number.high:.3f})"


@cache
def _template() -> Template:
    """Return the page's template with its number formats."""
    formats = (format_bounded, format_share, format_value, counts)
    names = {function.__name__: function for function in formats}
    return page_template("validation.html.j2", {**names, "classes": CLASSES})

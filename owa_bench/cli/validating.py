"""`owa-bench validate`: does each axis move with its own handicap, and no other?"""

import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from owa_bench.cli import options, play_options
from owa_bench.cli.console import ERR, OUT, as_json, table
from owa_bench.cli.options import Fields, Panel
from owa_bench.cli.run_output import Outcomes, print_estimate, run_progress
from owa_bench.errors import FieldError, one_of
from owa_bench.records import validation as designs
from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan import request as requests
from owa_bench.runs.plan import validation as plans
from owa_bench.runs.play import batch
from owa_bench.runs.store import keys

if TYPE_CHECKING:
    from owa_bench.records.validation_result import Bounded, MatrixCell, Validation

WHAT = Panel("What is played")
_SHAPING = (
    *("battery", "suite", "knob", "ends", "knobs_only", "episodes", "price_card"),
    "dry_run",
)
_MARKS = {"as declared": "", "not shown": "?", "contrary": "!", "NO EVIDENCE": ""}


def validate(
    context: typer.Context,
    out: Path = WHAT(..., play_options.OUT_TEXT),
    battery: str = WHAT(plans.BATTERY, "Name or TOML file; gives no level."),
    suite: str | None = WHAT(None, "Suites of the battery, such as toolquest."),
    knob: str | None = WHAT(None, "Knobs, such as depth,asks; all if left out."),
    ends: bool = WHAT(False, "First and last dose only: quick, no trend test."),
    knobs_only: bool = WHAT(False, "No crossed pairs, no other agents; so with --knob and --ends."),
    episodes: int = WHAT(1, "Factor on the battery's instances per family and tier."),
    signs: str = WHAT("validate_signs", "Name or TOML file of the declared signs."),
    price_card: str = WHAT(plans.PRICES, play_options.FILE_TEXT),
    how: Fields = play_options.how("workers", "in_process", "key"),
    resume: bool = play_options.Resume,
    dry_run: bool = play_options.DryRun,
    json: bool = play_options.Json,
) -> None:
    """Handicap the reference agents knob by knob; print how each axis answers.

    A row of the matrix is a knob, a column an axis, a cell the change of the axis from the first
    dose to the last. Signs were declared beforehand: an axis falls (Page's trend test, Holm) or
    stays (two one-sided tests). In a cell ? is not shown, ! the contrary, -- no evidence. How to
    read the rest: docs/validate.md.

    A smoke run, about a minute:

      owa-bench validate --suite toolquest --knob asks,calibration --ends
      --in-process --out runs/smoke

    The whole, an hour or more; a run that was stopped goes on with --resume, and
    one that is complete is judged again:

      owa-bench validate --workers 2 --out runs/validation
    """
    given = options.given_names(context)
    if resume:
        why = "shapes a plan, and --resume goes on with the plan that is there."
        options.refuse_together(given, _SHAPING, why)
    data, name = _signs(signs)
    design = designs.load_signs(data, name)
    run_options = requests.RunOptions(home=keys.data_folder(), folder=Path.cwd(), **how)
    if not resume:
        drawn = plans.validation_draws(battery, options.split(suite), episodes)
        arms = plans.validation_arms(
            design, options.split(knob), ends=ends, whole=not (knobs_only or knob or ends)
        )
        request = requests.Request(
            agents=tuple(plans.agent_spec(arm, drawn) for arm in arms),
            draws=drawn,
            name=out.name,
            price_card=price_card,
            transcripts=False,
        )
        if dry_run:
            print_estimate(request, run_options, json=json)
            return
        _play(out, request, run_options)
    else:
        _play(out, None, run_options)
    from owa_bench.reports.export import validation_page  # brings SciPy and the figures

    found = validation_page.write_validation(out, data, name)
    if json:
        as_json(found)
    else:
        _print(found)
        OUT.print(f"\nMatrix: {(out / validation_page.PAGE).resolve()}")


def _signs(name: str) -> tuple[bytes, str]:
    """Return the sign file's bytes and its name."""
    if not name.endswith(".toml"):
        if name not in designs.sign_names():
            raise FieldError("--signs", name, one_of(name, designs.sign_names()))
        return designs.default_signs(f"{name}.toml"), f"{name}.toml"
    path = Path(name)
    if not path.is_file():
        raise FieldError("--signs", name, "must be a file")
    return path.read_bytes(), path.name


def _play(out: Path, request: requests.Request | None, run_options: requests.RunOptions) -> None:
    """Play behind a progress bar; None goes on with the run that is there."""
    outcomes = Outcomes()
    with run_progress(outcomes) as report:
        told = dataclasses.replace(run_options, progress=report)
        try:
            if request is None:  # noqa: SIM108  two verbs
                summary = batch.resume(out, told)
            else:
                summary = batch.play(request, out, told)
        except KeyboardInterrupt:
            if RunLayout(out).plan.exists():
                ERR.print(f"{_resume(out)} goes on from here.")
            raise
    ERR.print(f"{summary.complete} of {summary.entries} episodes complete")
    if summary.missing:
        ERR.print(f"{summary.missing} are not played yet: {_resume(out)}")


def _resume(out: Path) -> str:
    return f"owa-bench validate --out {shlex.quote(str(out))} --resume"


# --- printing -------------------------------------------------------------------------


def _print(found: "Validation") -> None:
    """Print the matrix, the leads, the crossed effects and r(A, P)."""
    from owa_bench.reports.export.validation_page import autonomy_planning

    axes = designs.AXES
    table(
        f"effect of each knob on each axis ({found.tasks} tasks)",
        ("knob", *axes),
        [(f"{row.name} ({row.axis})", *map(_cell, row.cells)) for row in found.knobs],
    )
    for axis, reason in found.missing:
        OUT.print(f"{axis}: NO EVIDENCE: {reason}")
    table(
        "each knob against the second axis",
        ("knob", "own effect", "second", "lead over the second", "verdict"),
        [
            (
                f"{row.name} ({row.axis})",
                *(_number(c.effect) for c in row.cells if c.axis == row.axis),
                row.second,
                _number(row.lead),
                row.verdict,
            )
            for row in found.knobs
        ],
    )
    if found.crossed:
        table(
            f"crossed over {found.variants} variants, own less {found.ratio:g} x other",
            ("knob", "own effect", "other effect", "difference", "verdict"),
            [
                (
                    f"{each.knob} ({each.axis})",
                    *map(_number, (each.own, each.other, each.excess)),
                    each.verdict,
                )
                for each in found.crossed
            ],
        )
    for label, pairs in (
        ("unhandicapped agents", found.unhandicapped),
        ("all agents", found.correlations),
    ):
        pair = autonomy_planning(pairs)
        OUT.print(f"r(A, P) over {len(pair.agents)} {label}: {_number(pair.r)}")
    cells = [cell for row in found.knobs for cell in row.cells]
    for sign, word in (("-", "fall"), ("0", "stay")):
        known = [c for c in cells if c.sign == sign and c.verdict != "NO EVIDENCE"]
        shown = sum(cell.verdict == "as declared" for cell in known)
        OUT.print(f"declared to {word}: {shown} of {len(known)} shown")


def _cell(cell: "MatrixCell") -> str:
    """Return a cell: the effect and the mark of its verdict."""
    value = cell.effect.value
    return "--" if value is None else f"{value:+.2f}{_MARKS[cell.verdict]}"


def _number(number: "Bounded") -> str:
    """Return a number with its interval."""
    if number.value is None:
        return ""
    if number.low is None or number.high is None:
        return f"{number.value:+.3f}"
    return f"{number.value:+.3f} [{number.low:+.3f}, {number.high:+.3f}]"

"""The HTML page of a report: self-contained, and a pure function of the report.

The same report gives the same bytes, so a page can be made again and compared.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from owa_bench.records import score
from owa_bench.records.layout import STATEMENT_TYPE
from owa_bench.report import figures
from owa_bench.report.bundle import Bundle
from owa_bench.report.composition import Report, RunFacts
from owa_bench.report.dose_figures import dose_panels, paired_differences
from owa_bench.report.figures import ArmSeries
from owa_bench.report.pictures import PageImage, caption, page_images
from owa_bench.scoring.drift_response import GAPS

# DER head of an Ed25519 public key (RFC 8410): 32 raw bytes follow.
_DER_HEAD = bytes.fromhex("302a300506032b6570032100")
_MISSING = "–"
_OPENSSL_LINES = """\
T=$(mktemp -d)
sed -n 's/^ "payload": "\\(.*\\)",$/\\1/p' report.dsse.json | base64 -d > "$T/payload"
sed -n 's/^ *"sig": "\\(.*\\)"$/\\1/p' report.dsse.json | base64 -d > "$T/sig"
{ printf 'DSSE-HEAD %d ' $(wc -c < "$T/payload"); cat "$T/payload"; } > "$T/signed"
printf '%s\\n' '-----BEGIN PUBLIC KEY-----' 'PUBLIC-KEY' '-----END PUBLIC KEY-----' \
> "$T/key.pem"
openssl pkeyutl -verify -pubin -inkey "$T/key.pem" -rawin \
-in "$T/signed" -sigfile "$T/sig"
for f in report.html trace/*.zst; do grep -q "$(sha256sum < "$f" | cut -c1-64)" \
"$T/payload" && echo "$f: as signed" || echo "$f: NOT AS SIGNED"; done"""
_DOSE_CAPTION = (
    "Band: tasks like these, 95 percent. Alone: nothing else drifted. Among others: the"
    " episodes of the run's own calendar in which it struck, so the rest drifted too."
)
_GAPS_CAPTION = (
    "Each kind of drift at its largest magnitude; line: tasks like these, 95 percent."
)
_AXES_CAPTION = (
    "Axes, normalised. Thick line: same tasks, new seeds. Thin line: tasks like these"
    " (gates read this one). Both 95 percent."
)
_FRONTIER_CAPTION = (
    "Delegability frontier: quality at each autonomy demand, fitted so that it never"
    " rises; dots are the observed means. The dashed line is the quality asked for."
)
_COST_CAPTION = "Cost of the whole run by stream, priced with the run's price card."


class FigureBlock(NamedTuple):
    """A drawing and its caption."""

    svg: Markup
    caption: str


def render_page(bundle: Bundle, report: Report) -> bytes:
    """Return the HTML page of a report.

    Args:
        bundle: the run directory, for protocol, price card and pictures.
        report: its report.

    Returns:
        The page in UTF-8.
    """
    page = render(
        report,
        protocol_text=bundle.protocol_bytes.decode(),
        price_text=bundle.price_bytes.decode(),
        images=page_images(bundle.layout, report.failures),
    )
    return page.encode()


def render(
    report: Report,
    *,
    protocol_text: str,
    price_text: str,
    images: Sequence[PageImage] = (),
) -> str:
    """Return the page as text.

    Args:
        report: the report.
        protocol_text: the protocol file as the run used it.
        price_text: the price card as the run used it.
        images: the report's pictures of failures with their pixels.

    Returns:
        The page.
    """
    verdicts = report.judgement.verdicts
    return _template().render(
        report=report,
        run=report.run,
        judgement=report.judgement,
        verdicts=verdicts,
        assurance=report.assurance,
        figures=_figures(verdicts),
        doses=_dose_figures(verdicts),
        terms=_terms(report.run),
        images=images,
        openssl=openssl_lines(report.run.public_key),
        protocol_text=protocol_text,
        price_text=price_text,
    )


def openssl_lines(public_key: str) -> str:
    """Return the shell lines that check the signature with openssl alone."""
    if not public_key:
        return "# This is an unsigned draft: there is no signature to check."
    der = base64.b64encode(_DER_HEAD + bytes.fromhex(public_key)).decode()
    head = f"DSSEv1 {len(STATEMENT_TYPE)} {STATEMENT_TYPE}"
    return _OPENSSL_LINES.replace("DSSE-HEAD", head).replace("PUBLIC-KEY", der)


@cache
def _template() -> Template:
    """Return the page's template with its number formats."""
    folder = files("owa_bench.report")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    formats: tuple[Callable[..., Any], ...] = (
        format_value,
        format_share,
        format_interval,
        format_range,
        format_anchors,
        format_details,
        format_dollars,
        index_headline,
        missing_reason,
        is_number_column,
        caption,
    )
    environment.globals.update({one.__name__: one for one in formats})
    environment.globals["css"] = Markup(folder.joinpath("page.css").read_text("utf-8"))  # noqa: S704 - our own file
    return environment.from_string(folder.joinpath("page.html.j2").read_text("utf-8"))


def _figures(verdicts: Sequence[score.AgentVerdict]) -> list[FigureBlock]:
    """Return every figure for which there is something to draw."""
    blocks: list[FigureBlock] = []
    if any(v.axes for v in verdicts):
        axes = [ArmSeries(v.arm, i, v.axes) for i, v in enumerate(verdicts)]
        blocks.append(_block(figures.axis_figure(axes), _AXES_CAPTION))
    drawn = (curve.name for v in verdicts for curve in v.curves if not curve.panel)
    for name in dict.fromkeys(drawn):
        curves = _series(verdicts, "", name)
        note = curves[0].data.note or "Band: tasks like these."
        text = f"{name[:1].upper()}{name[1:]}. {note[:1].upper()}{note[1:]}"
        blocks.append(_block(figures.curve_figure(curves), text))
    placed = list(enumerate(verdicts))
    frontiers = [
        ArmSeries(v.arm, i, v.frontier) for i, v in placed if v.frontier.demand
    ]
    if frontiers:
        blocks.append(_block(figures.frontier_figure(frontiers), _FRONTIER_CAPTION))
    if any(v.cost_micro_usd for v in verdicts):
        costs = [ArmSeries(v.arm, i, v.cost_micro_usd) for i, v in placed]
        blocks.append(_block(figures.cost_figure(costs), _COST_CAPTION))
    return blocks


def _series(
    verdicts: Sequence[score.AgentVerdict], panel: str, name: str
) -> list[ArmSeries]:
    """Return every agent's curve of a name in a panel."""
    return [
        ArmSeries(v.arm, place, curve)
        for place, v in enumerate(verdicts)
        for curve in v.curves
        if (curve.panel, curve.name) == (panel, name)
    ]


def _dose_figures(verdicts: Sequence[score.AgentVerdict]) -> list[FigureBlock]:
    """Return the dose-response figures: curves in panels, then paired differences."""
    curves = [curve for v in verdicts for curve in v.curves if curve.panel]
    blocks: list[FigureBlock] = []
    for panel in dict.fromkeys(curve.panel for curve in curves):
        own = [curve for curve in curves if curve.panel == panel]
        if panel == GAPS:
            arms = [
                ArmSeries(v.arm, i, tuple(c for c in v.curves if c.panel == GAPS))
                for i, v in enumerate(verdicts)
            ]
            svg, text = paired_differences(panel, arms), _GAPS_CAPTION
        else:
            names = dict.fromkeys(curve.name for curve in own)
            svg = dose_panels(panel, [_series(verdicts, panel, name) for name in names])
            text = f"Dotted: {own[0].beside_label}. {_DOSE_CAPTION}"
        blocks.append(_block(svg, f"{panel}. {text}"))
    return blocks


def _block(svg: str, caption: str) -> FigureBlock:
    """Return a figure; matplotlib escaped its text."""
    return FigureBlock(Markup(svg), caption.strip())  # noqa: S704 - drawn by figures.py


def _terms(run: RunFacts) -> list[tuple[str, str]]:
    """Return the terms of the run as lines for reading."""
    arms = "; ".join(
        f"{arm} = {agent} ({print_[:12]})" for arm, agent, print_ in run.arms
    )
    nonce = run.verifier_nonce or "none: seed grinding is not excluded"
    transcripts = "kept" if run.transcripts else "not kept: blobs are digests only"
    return [
        ("Battery", run.battery or "none that gives a level"),
        ("Suites", ", ".join(run.suites)),
        ("Agents", arms),
        ("Plan made", run.created or "not said"),
        ("Planned episodes", str(run.planned)),
        ("Attempts", f"{run.attempts}, of which {run.counted} count"),
        ("Which attempt counts", run.attempt_rule),
        ("Intervals", f"{run.resamples} resamples, seeded by the replay root"),
        ("Seed commitment", run.commitment),
        ("Verifier's nonce", nonce),
        ("Transcripts", transcripts),
    ]


def format_value(value: object) -> str:
    """Return a cell for reading: six significant digits, a dash for nothing."""
    if value is None:
        return _MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def format_share(value: float | None) -> str:
    """Return a share with three decimals, a dash when it is missing."""
    return _MISSING if value is None else f"{value:.3f}"


def format_interval(interval: score.Interval) -> str:
    """Return an interval, or why there is none."""
    if interval.low is None or interval.high is None:
        return interval.reason or _MISSING
    return f"{interval.low:.3f} to {interval.high:.3f}"


def format_range(bounds: tuple[float, float] | None) -> str:
    """Return two bounds, a dash when they are missing."""
    return _MISSING if bounds is None else f"{bounds[0]:.3f} to {bounds[1]:.3f}"


def format_anchors(axis: score.AxisScore) -> str:
    """Return an axis' calibration bounds."""
    if axis.low_anchor is None or axis.high_anchor is None:
        return _MISSING
    return f"{axis.low_anchor:.4g} to {axis.high_anchor:.4g}"


def format_dollars(amount: int | None) -> str:
    """Return integer micro-USD as USD."""
    return "unknown" if amount is None else f"{amount / 1e6:,.4f} USD"


def index_headline(verdict: score.AgentVerdict) -> str:
    """Return the index in one line, or which axes keep it from being computed."""
    if not verdict.indices:
        return "no index"
    index = verdict.indices[0]
    if index.value is None:
        return f"{index.name} {missing_reason(index)}"
    return f"{index.name} {index.value:.3f} ({format_interval(index.tasks_like_these)})"


def missing_reason(index: score.IndexScore) -> str:
    """Return why a composite has no value; empty when it has one."""
    if index.value is not None:
        return index.reason or ""
    if index.missing:
        return f"not computable: missing {', '.join(index.missing)}"
    return f"not computable: {index.reason or 'no reason given'}"


def format_details(value: object) -> str:
    """Return nested details in one line of plain words."""
    if isinstance(value, Mapping):
        return "; ".join(
            f"{key}: {format_details(part)}" for key, part in value.items()
        )
    if isinstance(value, list | tuple):
        return ", ".join(format_details(part) for part in value)
    return format_value(value)


def is_number_column(table: score.CellTable, place: int) -> bool:
    """Return whether the cells of a column are numbers, apart from empty ones.

    Args:
        table: the table.
        place: index of the column.

    Returns:
        False for a column of empty cells.
    """
    cells = [row[place] for row in table.rows if row[place] is not None]
    return bool(cells) and all(isinstance(cell, int | float) for cell in cells)

"""The HTML page of a report: self-contained, and a pure function of the report.

The same report gives the same bytes, so a page can be made again and compared.
"""

import base64
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from jinja2 import Template
from markupsafe import Markup

from owa_bench.records import score
from owa_bench.records.layout import STATEMENT_TYPE
from owa_bench.reports.composition import Report, RunFacts
from owa_bench.reports.page import figures, templates
from owa_bench.reports.page.figures import ArmSeries, dose_panels, paired_differences
from owa_bench.reports.page.site import evidence_links
from owa_bench.reports.page.templates import page_template
from owa_bench.reports.read.bundle import Bundle
from owa_bench.reports.read.delegation import (
    CLASS_WORDS,
    NO_DRIFT,
    SuccessCount,
    frontier_words,
    next_command,
)
from owa_bench.reports.read.failures import KINDS, FailureSummary
from owa_bench.reports.read.next_plays import next_play
from owa_bench.reports.read.outcomes import ArmOutcomes
from owa_bench.reports.read.pictures import PageImage, caption, page_images
from owa_bench.scoring.estimate.drift_response import GAPS
from owa_bench.scoring.placement.verdict import BOUNDS_PANEL

# DER head of an Ed25519 public key (RFC 8410): 32 raw bytes follow.
_DER_HEAD = bytes.fromhex("302a300506032b6570032100")
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
_BOUNDS_CAPTION = (
    "Each gate of the level: mean so far, and bounds that hold at all looks at once, 95 percent "
    "each. Dotted: what it requires."
)
_GAPS_CAPTION = "Each kind of drift at its largest magnitude; line: tasks like these, 95 percent."
_AXES_CAPTION = (
    "Axes, normalised. Thick line: same tasks, new seeds. Thin line: tasks like these"
    " (gates read this one). Both 95 percent."
)
_SUCCESS_CAPTION = (
    "Success over drift magnitude: 0 changes nothing, 1 is the most that the suite changes. Solid, "
    "with its band: alone. Dashed: with a supervisor to ask."
    " 95 percent over tasks."
)
_FRONTIER_CAPTION = (
    "Delegability frontier: share of successful episodes at each autonomy demand,"
    " fitted so that it never rises; dots are the observed shares. The dashed line is"
    " the share that the protocol asks for."
)
_MOST_GROUPS = 10  # of like failures
_COST_CAPTION = "Cost of the whole run by stream, priced with the run's price card."


_FORMATS: tuple[Callable[..., Any], ...] = (
    templates.format_value,
    templates.format_share,
    templates.format_interval,
    templates.format_range,
    templates.format_anchors,
    templates.format_details,
    templates.format_dollars,
    templates.format_figure,
    templates.format_ends,
    templates.answer_counts,
    frontier_words,
    templates.cost_lines,
    next_command,
    next_play,
    templates.reading_columns,
    templates.gate_levels,
    templates.axis_names,
    templates.index_headline,
    templates.missing_reason,
    templates.is_number_column,
    caption,
    evidence_links,
)


class FigureBlock(NamedTuple):
    """A drawing, its name and its caption."""

    name: str
    svg: Markup
    caption: str


def render_page(bundle: Bundle, report: Report) -> bytes:
    """Return the HTML page of a report.

    Args:
        bundle: the run directory, for protocol, price card and pictures.
        report: its report.
    Returns: The page in UTF-8.
    """
    page = render(
        report,
        protocol_text=bundle.protocol_bytes.decode(),
        price_text=bundle.price_bytes.decode(),
        images=page_images(bundle.layout, report.failures),
    )
    return page.encode()


def render(
    report: Report, *, protocol_text: str, price_text: str, images: Sequence[PageImage] = ()
) -> str:
    """Return the page as text.

    Args:
        report: the report.
        protocol_text: the protocol file as the run used it.
        price_text: the price card as the run used it.
        images: the report's pictures of failures with their pixels.
    """
    verdicts = report.judgement.verdicts
    return _template().render(
        report=report,
        run=report.run,
        judgement=report.judgement,
        verdicts=verdicts,
        assurance=report.assurance,
        figures=_figures(verdicts),
        answered=_answer_figures(report),
        by_class=_class_table(report.outcomes),
        went_wrong=failures_part(report.failed),
        doses=_dose_figures(verdicts),
        terms=_terms(report.run),
        images=images,
        openssl=openssl_lines(report.run.public_key),
        protocol_text=protocol_text,
        price_text=price_text,
    )


def failures_part(failed: FailureSummary) -> Markup:
    """Return the part of the page that says what went wrong."""
    names = {"evidence_links": evidence_links, "with_code": templates.with_code, "dict": dict}
    part = page_template("failures.html.j2", names)
    text = part.render(failed=failed, kinds=KINDS, groups=failed.groups[:_MOST_GROUPS])
    return Markup(text)  # noqa: S704 - the template escaped it


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
    return page_template("page.html.j2", {one.__name__: one for one in _FORMATS})


def _figures(verdicts: Sequence[score.AgentVerdict]) -> list[FigureBlock]:
    """Return every figure for which there is something to draw."""
    blocks: list[FigureBlock] = []
    if any(v.axes for v in verdicts):
        axes = [ArmSeries(v.arm, i, v.axes) for i, v in enumerate(verdicts)]
        blocks.append(_block("axes", figures.axis_figure(axes), _AXES_CAPTION))
    bounds = [c.name for v in verdicts for c in v.curves if c.panel == BOUNDS_PANEL]
    if bounds:
        rows = [_series(verdicts, BOUNDS_PANEL, name) for name in dict.fromkeys(bounds)]
        svg = figures.bound_panels(BOUNDS_PANEL, rows)
        blocks.append(_block(BOUNDS_PANEL, svg, _BOUNDS_CAPTION))
    drawn = (curve.name for v in verdicts for curve in v.curves if not curve.panel)
    for name in dict.fromkeys(drawn):
        curves = _series(verdicts, "", name)
        note = curves[0].data.note or "Band: tasks like these."
        text = f"{name[:1].upper()}{name[1:]}. {note[:1].upper()}{note[1:]}"
        blocks.append(_block(name, figures.curve_figure(curves), text))
    placed = list(enumerate(verdicts))
    if any(v.cost_micro_usd for v in verdicts):
        costs = [ArmSeries(v.arm, i, v.cost_micro_usd) for i, v in placed]
        blocks.append(_block("cost", figures.cost_figure(costs), _COST_CAPTION))
    return blocks


def _answer_figures(report: Report) -> list[FigureBlock]:
    """Return success over drift, alone and with help, and the delegability frontier."""
    answers = [
        ArmSeries(one.arm, place, one.answer)
        for place, one in enumerate(_in_order(report))
        if one is not None and one.answer is not None
    ]
    blocks = []
    if any(len(one.data.magnitudes) > 1 for one in answers):
        svg = figures.success_figure(answers)
        blocks.append(_block("success over drift", svg, _SUCCESS_CAPTION))
    frontiers = [
        ArmSeries(v.arm, i, v.frontier)
        for i, v in enumerate(report.judgement.verdicts)
        if v.frontier.demand
    ]
    if frontiers:
        svg = figures.frontier_figure(frontiers)
        blocks.append(_block("delegability frontier", svg, _FRONTIER_CAPTION))
    return blocks


def _in_order(report: Report) -> list[ArmOutcomes | None]:
    """Return the outcomes of each verdict's arm, in the order of the verdicts."""
    known = {one.arm: one for one in report.outcomes}
    return [known.get(verdict.arm) for verdict in report.judgement.verdicts]


def _class_table(outcomes: Sequence[ArmOutcomes]) -> score.CellTable | None:
    """Return success alone by the hardest class of drift, None where nothing drifted."""
    answers = [(one.arm, one.answer) for one in outcomes if one.answer is not None]
    rows = tuple(
        (arm, _class_words(name), *_figures_of(count), count.episodes, count.tasks)
        for arm, answer in answers
        for name, count in answer.classes
    )
    if not any(row[1] != _class_words(NO_DRIFT) for row in rows):
        return None
    columns = ("agent", "change", "success", "success low", "success high", "episodes", "tasks")
    note = (
        "Alone: an episode stands under the hardest class of change that struck. In brackets 95 "
        "percent over tasks."
    )
    return score.CellTable("by class", columns, rows, note)


def _class_words(name: str) -> str:
    """Return a class of drift with how one learns of it."""
    words = CLASS_WORDS[name]
    return words if name == NO_DRIFT else f"{name}: {words}"


def _figures_of(count: SuccessCount) -> tuple[float | None, ...]:
    return round(count.share, 3), count.interval.low, count.interval.high


def _series(verdicts: Sequence[score.AgentVerdict], panel: str, name: str) -> list[ArmSeries]:
    """Return every agent's curve of a name in a panel."""
    return [
        ArmSeries(v.arm, place, curve)
        for place, v in enumerate(verdicts)
        for curve in v.curves
        if (curve.panel, curve.name) == (panel, name)
    ]


def _dose_figures(verdicts: Sequence[score.AgentVerdict]) -> list[FigureBlock]:
    """Return the dose-response figures: curves in panels, then paired differences."""
    curves = [c for v in verdicts for c in v.curves if c.panel not in ("", BOUNDS_PANEL)]
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
        blocks.append(_block(panel, svg, f"{panel}. {text}"))
    return blocks


def _block(name: str, svg: str, caption: str) -> FigureBlock:
    """Return a figure; matplotlib escaped its text."""
    return FigureBlock(name, Markup(svg), caption.strip())  # noqa: S704 - drawn by figures.py


def _terms(run: RunFacts) -> list[tuple[str, str]]:
    """Return the terms of the run as lines for reading."""
    arms = "; ".join(f"{arm} = {agent} ({print_[:12]})" for arm, agent, print_ in run.arms)
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
        ("Intervals", "jackknife over days, tasks or repeats: nothing is drawn"),
        ("Seed commitment", run.commitment),
        ("Verifier's nonce", nonce),
        ("Transcripts", transcripts),
    ]

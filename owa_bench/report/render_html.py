"""The report for people: one self-contained page that loads nothing.

A pure function of the report: the same report gives the same bytes, so a page can be
made again and compared.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from owa_bench.records.layout import STATEMENT_TYPE
from owa_bench.records.score import (
    AgentVerdict,
    AxisScore,
    CellTable,
    IndexScore,
    Interval,
)
from owa_bench.report import dose_figures, figures
from owa_bench.report.contents import Report, RunFacts
from owa_bench.report.pictures import Shown, caption
from owa_bench.scoring.response import GAPS

# DER head of an Ed25519 public key (RFC 8410): 32 raw bytes follow.
_DER_HEAD = bytes.fromhex("302a300506032b6570032100")
_NOTHING = "–"


class FigureBlock(NamedTuple):
    """A drawing and what stands below it."""

    svg: Markup
    caption: str


def render(
    report: Report, *, protocol_text: str, price_text: str, shown: Sequence[Shown] = ()
) -> str:
    """Return the page; the two files are printed as the run used them.

    `shown` are the report's pictures of failures with their pixels.
    """
    verdicts = report.judgement.verdicts
    return _template().render(
        report=report,
        run=report.run,
        judgement=report.judgement,
        verdicts=verdicts,
        assurance=report.assurance,
        figures=_figures(verdicts),
        doses=_doses(verdicts),
        terms=_terms(report.run),
        shown=shown,
        openssl=openssl_lines(report.run.public_key),
        protocol_text=protocol_text,
        price_text=price_text,
    )


def openssl_lines(public_key: str) -> str:
    """Return the shell lines that check the signature with openssl alone."""
    if not public_key:
        return "# This is an unsigned draft: there is no signature to check."
    der = base64.b64encode(_DER_HEAD + bytes.fromhex(public_key)).decode()
    return "\n".join(
        (
            "T=$(mktemp -d)",
            """sed -n 's/^ "payload": "\\(.*\\)",$/\\1/p' report.dsse.json"""
            """ | base64 -d > "$T/payload\"""",
            """sed -n 's/^ *"sig": "\\(.*\\)"$/\\1/p' report.dsse.json"""
            """ | base64 -d > "$T/sig\"""",
            f"""{{ printf 'DSSEv1 {len(STATEMENT_TYPE)} {STATEMENT_TYPE} %d ' """
            """$(wc -c < "$T/payload"); cat "$T/payload"; } > "$T/signed\"""",
            "printf '%s\\n' '-----BEGIN PUBLIC KEY-----' "
            f"""'{der}' '-----END PUBLIC KEY-----' > "$T/key.pem\"""",
            """openssl pkeyutl -verify -pubin -inkey "$T/key.pem" -rawin """
            """-in "$T/signed" -sigfile "$T/sig\"""",
            """for f in report.html trace/*.zst; do grep -q """
            """"$(sha256sum < "$f" | cut -c1-64)" "$T/payload" """
            """&& echo "$f: as signed" || echo "$f: NOT AS SIGNED"; done""",
        )
    )


@cache
def _template() -> Template:
    """Return the page's template with its number formats."""
    folder = files("owa_bench.report")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    shown: tuple[Callable[..., Any], ...] = (
        plain,
        short,
        span,
        pair,
        anchors,
        details,
        dollars,
        headline,
        why_missing,
        column_is_number,
        caption,
    )
    environment.globals.update({one.__name__: one for one in shown})
    environment.globals["css"] = Markup(folder.joinpath("page.css").read_text("utf-8"))  # noqa: S704 - our own file
    return environment.from_string(folder.joinpath("page.html.j2").read_text("utf-8"))


def _figures(verdicts: Sequence[AgentVerdict]) -> list[FigureBlock]:
    """Return every figure for which there is something to draw."""
    blocks: list[FigureBlock] = []
    arms = [(v.arm, place, v) for place, v in enumerate(verdicts)]
    if any(v.axes for v in verdicts):
        rows = [figures.Series(arm, place, v.axes) for arm, place, v in arms]
        blocks.append(_block(figures.axes(rows), _AXES_CAPTION))
    names = dict.fromkeys(c.name for v in verdicts for c in v.curves if not c.panel)
    for name in names:
        lines = _series(verdicts, "", name)
        note = lines[0].data.note or "Band: tasks like these."
        caption = f"{name[:1].upper()}{name[1:]}. {note[:1].upper()}{note[1:]}"
        blocks.append(_block(figures.curve(lines), caption))
    fronts = [
        figures.Series(arm, place, v.frontier)
        for arm, place, v in arms
        if v.frontier.demand
    ]
    if fronts:
        blocks.append(_block(figures.frontier(fronts), _FRONTIER_CAPTION))
    if any(v.cost_micro_usd for v in verdicts):
        bars = [figures.Series(arm, place, v.cost_micro_usd) for arm, place, v in arms]
        blocks.append(_block(figures.cost(bars), _COST_CAPTION))
    return blocks


def _series(
    verdicts: Sequence[AgentVerdict], panel: str, name: str
) -> list[figures.Series]:
    """Return every agent's curve of a name in a panel."""
    return [
        figures.Series(v.arm, place, curve)
        for place, v in enumerate(verdicts)
        for curve in v.curves
        if (curve.panel, curve.name) == (panel, name)
    ]


def _doses(verdicts: Sequence[AgentVerdict]) -> list[FigureBlock]:
    """Return the figures of what drifted: curves in panels, then paired gaps."""
    curves = [curve for v in verdicts for curve in v.curves if curve.panel]
    blocks: list[FigureBlock] = []
    for panel in dict.fromkeys(curve.panel for curve in curves):
        if panel == GAPS:
            kept = [
                figures.Series(v.arm, i, tuple(c for c in v.curves if c.panel == GAPS))
                for i, v in enumerate(verdicts)
            ]
            blocks.append(
                _block(dose_figures.gaps(panel, kept), f"{panel}. {_GAPS_CAPTION}")
            )
            continue
        own = [curve for curve in curves if curve.panel == panel]
        names = dict.fromkeys(curve.name for curve in own)
        rows = [_series(verdicts, panel, name) for name in names]
        caption = f"{panel}. Dotted: {own[0].beside_label}. {_DOSE_CAPTION}"
        blocks.append(_block(dose_figures.panels(panel, rows), caption))
    return blocks


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


def _block(svg: str, caption: str) -> FigureBlock:
    """Return a figure; matplotlib escaped its text."""
    return FigureBlock(Markup(svg), caption.strip())  # noqa: S704 - drawn by figures.py


def _terms(run: RunFacts) -> list[tuple[str, str]]:
    """Return the terms of the run as lines for reading."""
    arms = "; ".join(
        f"{arm} = {agent} ({print_[:12]})" for arm, agent, print_ in run.arms
    )
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
        (
            "Verifier's nonce",
            run.verifier_nonce or "none: seed grinding is not excluded",
        ),
        (
            "Transcripts",
            "kept" if run.transcripts else "not kept: blobs are digests only",
        ),
    ]


def plain(value: object) -> str:
    """Return a cell for reading: six significant digits, a dash for nothing."""
    if value is None:
        return _NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def short(value: float | None) -> str:
    """Return a share with three decimals, a dash when it is missing."""
    return _NOTHING if value is None else f"{value:.3f}"


def span(interval: Interval) -> str:
    """Return an interval, or why there is none."""
    if interval.low is None or interval.high is None:
        return interval.reason or _NOTHING
    return f"{interval.low:.3f} to {interval.high:.3f}"


def pair(bounds: tuple[float, float] | None) -> str:
    """Return two bounds, a dash when they are missing."""
    return _NOTHING if bounds is None else f"{bounds[0]:.3f} to {bounds[1]:.3f}"


def anchors(axis: AxisScore) -> str:
    """Return an axis' calibration bounds."""
    if axis.low_anchor is None or axis.high_anchor is None:
        return _NOTHING
    return f"{axis.low_anchor:.4g} to {axis.high_anchor:.4g}"


def dollars(amount: int | None) -> str:
    """Return integer micro-USD as USD."""
    return "unknown" if amount is None else f"{amount / 1e6:,.4f} USD"


def headline(verdict: AgentVerdict) -> str:
    """Return the index in one line, or which axes keep it from being computed."""
    if not verdict.indices:
        return "no index"
    index = verdict.indices[0]
    if index.value is None:
        return f"{index.name} {why_missing(index)}"
    return f"{index.name} {index.value:.3f} ({span(index.tasks_like_these)})"


def why_missing(index: IndexScore) -> str:
    """Return why a composite has no value; empty when it has one."""
    if index.value is not None:
        return index.reason or ""
    if index.missing:
        return f"not computable: missing {', '.join(index.missing)}"
    return f"not computable: {index.reason or 'no reason given'}"


def details(value: object) -> str:
    """Return nested details in one line of plain words."""
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {details(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(details(part) for part in value)
    return plain(value)


def column_is_number(table: CellTable, place: int) -> bool:
    """Return whether every cell of a column that holds something is a number."""
    held = [row[place] for row in table.rows if row[place] is not None]
    return bool(held) and all(isinstance(cell, int | float) for cell in held)

"""The page of a line-up: one file that loads nothing, and a pure function of the runs."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Template
from markupsafe import Markup

from owa_bench.records.score import Interval
from owa_bench.reports.export import lineup_figures
from owa_bench.reports.export.lineup import Lineup, LineupAgent, TermsGroup, lineup
from owa_bench.reports.export.lineup_figures import Placed, priced
from owa_bench.reports.page import templates
from owa_bench.reports.page.render_html import FigureBlock
from owa_bench.reports.page.templates import page_template
from owa_bench.reports.read.delegation import frontier_words
from owa_bench.reports.statement import write_atomically

_COST_CAPTION = (
    "Success alone against what the agent itself cost in the same episodes, at all drift"
    " magnitudes. Bars: 95 percent over tasks. Ringed and joined: no other agent here costs less"
    " and does as much. That reads the points alone, so agents whose bars overlap may change"
    " places."
)
_DRIFT_CAPTION = "Success alone over drift magnitude. Bars: 95 percent over tasks."
_FRONTIER_CAPTION = (
    "Delegability frontiers: share of successful episodes at each autonomy demand, fitted so that"
    " it never rises. The dashed line is the share asked for."
)
_PLACEMENT = "A placement stops when it is decided, so that its episodes tell no success."


def write_lineup(sides: Sequence[str], page: Path) -> Lineup:
    """Write the page of agents of any number of runs.

    Args:
        sides: "RUN" or "RUN:ARM" each, as `lineup` takes them.
        page: The file to write.
    Returns: What it shows.
    """
    found = lineup(sides)
    write_atomically(page, render_lineup(found).encode())
    return found


def render_lineup(found: Lineup) -> str:
    """Return the page as text: equal runs give equal bytes."""
    return _template().render(
        lineup=found,
        figures={group.name: _figures(found.of(i)) for i, group in enumerate(found.groups)},
    )


def _figures(agents: Sequence[Placed]) -> list[FigureBlock]:
    """Return the figures of the agents of one group, of those who have what is drawn."""
    drawn: list[tuple[str, list[Placed], Callable[[Sequence[Placed]], str], str]] = [
        (
            "success against own cost",
            priced(agents),
            lineup_figures.cost_success_figure,
            _COST_CAPTION,
        ),
        (
            "success over drift",
            [(i, one) for i, one in agents if one.answer and len(one.answer.magnitudes) > 1],
            lineup_figures.drift_figure,
            _DRIFT_CAPTION,
        ),
        (
            "delegability frontiers",
            [(i, one) for i, one in agents if one.verdict.frontier.demand],
            lineup_figures.frontiers_figure,
            _FRONTIER_CAPTION,
        ),
    ]
    blocks = []
    for name, shown, draw, caption in drawn:
        if shown:
            missing = [one.label for _, one in agents if one not in [each for _, each in shown]]
            without = f" Without evidence for it: {', '.join(missing)}." if missing else ""
            svg = Markup(draw(shown))  # noqa: S704 - drawn by lineup_figures.py
            blocks.append(FigureBlock(name, svg, caption + without))
    return blocks


def group_words(group: TermsGroup, found: Lineup) -> str:
    """Return how the agents of a group compare, in words.

    Args:
        group: The group.
        found: The line-up that it stands in.
    """
    count = sum(found.groups[one.group] is group for one in found.agents)
    if count == 1:
        return "One agent."
    if group.masters == 1:
        return f"{count} agents on the same terms and the same worlds."
    return (
        f"{count} agents on the same terms, pooled as comparable; their worlds were drawn from "
        f"{group.masters} secrets, so differences between runs hold the luck of the draw too."
    )


def usd(value: float) -> str:
    """Return USD with two digits behind the point, below 1 with two significant ones."""
    return f"{value:,.2f}" if value >= 1 else f"{Decimal(f'{value:.2g}'):f}"


def usd_ends(interval: Interval) -> str:
    """Return the ends of an interval of USD, "" where it has none."""
    if interval.low is None or interval.high is None:
        return ""
    return f"{usd(max(interval.low, 0.0))} to {usd(interval.high)}"


def supervisor_words(one: LineupAgent) -> str:
    """Return what the simulated supervisor of an agent cost, "" where none helped."""
    lines = dict(templates.cost_lines(one.verdict, one.outcomes))
    return lines.get("Supervisor", "").partition(";")[0].replace(" (", ", ")


def own_cost_words(one: LineupAgent) -> str:
    """Return an agent's own cost an episode, as its report has it."""
    if one.own_cost is None:
        return "unknown"
    return templates.format_dollars(round(one.own_cost.usd * 1e6))


@cache
def _template() -> Template:
    functions: tuple[Callable[..., Any], ...] = (
        templates.answer_counts,
        templates.format_ends,
        frontier_words,
        group_words,
        own_cost_words,
        supervisor_words,
        usd,
        usd_ends,
        templates.with_code,
    )
    names = {function.__name__: function for function in functions}
    return page_template("lineup.html.j2", {**names, "placement": _PLACEMENT})

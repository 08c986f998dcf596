"""Templates of the report's pages, and the words and numbers that stand in them."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from owa_bench.records import score
from owa_bench.reports.read.delegation import Delegation, SuccessCount
from owa_bench.reports.read.outcomes import ArmOutcomes

# --- templates ------------------------------------------------------------------------


_FOLDER = files("owa_bench.reports.page")


def page_template(name: str, names: Mapping[str, Any] = {}) -> Template:
    """Return a template of this folder, with the style of all pages as `css`.

    Args:
        name: Its file.
        names: What it can call, by name.
    Returns: The template; whatever it is given is escaped.
    """
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(names, css=own_file("page.css"))
    return environment.from_string(_FOLDER.joinpath(name).read_text("utf-8"))


def own_file(name: str) -> Markup:
    """Return a style or script of this folder, which is not escaped."""
    return Markup(_FOLDER.joinpath(name).read_text("utf-8"))  # noqa: S704 - our own file


# --- words and numbers ----------------------------------------------------------------


_MISSING = "–"
_SMALL, _LARGE = 0.0005, 1000.0  # between them amounts have three decimals
_WHOLE = 10**6  # micro-USD from which on an amount has two decimals


class GateLevel(NamedTuple):
    """The gates of a level; `beyond`: a lower level is not reached yet."""

    level: int
    beyond: bool
    gates: tuple[score.GateResult, ...]


class ReadingColumn(NamedTuple):
    """A column of a table; `ends` are the columns of the interval of its figures."""

    name: str
    place: int
    ends: tuple[int, int] | None


def format_value(value: object) -> str:
    """Return a cell for reading: three decimals, a dash for nothing.

    Amounts that three decimals would make 0 have two significant digits, amounts from a thousand on
    none behind the point.
    """
    if value is None:
        return _MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if value and abs(value) < _SMALL:
            return f"{value:.2g}"
        return f"{value:,.0f}" if abs(value) >= _LARGE else f"{value:.3f}"
    return str(value)


def with_code(text: str) -> Markup:
    """Return a text, escaped, with what stands between two backticks as code."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if i % 2 else escape(part)
        for i, part in enumerate(parts)
    )


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
    if amount is None:
        return "unknown"
    return f"{amount / 1e6:,.{2 if amount >= _WHOLE else 4}f} USD"


def format_ends(interval: score.Interval) -> str:
    """Return the two ends of an interval with two decimals, "" where it has none."""
    if interval.low is None or interval.high is None:
        return ""
    return f"{interval.low:.2f} to {interval.high:.2f}"


def answer_counts(answer: Delegation) -> list[tuple[str, SuccessCount | None, str]]:
    """Return the three numbers of the first screen, each with what it rests on."""
    still, drifted, helped = answer.still, answer.drifted, answer.helped
    under = sum(one.alone is not None and one.delta > 0 for one in answer.magnitudes)
    levels = f", {under} magnitudes" if under > 1 else ""
    return [
        ("alone, no drift", still, still.words if still else ""),
        ("alone, under drift", drifted, f"{drifted.words}{levels}" if drifted else ""),
        ("with help", helped, f"{helped.brief}; help in {answer.asked}" if helped else ""),
    ]


def cost_lines(verdict: score.AgentVerdict, one: ArmOutcomes | None) -> list[tuple[str, str]]:
    """Return what the agent itself cost, and what others did, in USD.

    Args:
        verdict: Of the agent; its cost is by stream.
        one: Its outcomes, None where they are not known.
    """
    costs, lines = verdict.cost_micro_usd, []
    counted = one.counted if one else verdict.counted
    answer = one.answer if one else None
    helped = answer.helped.episodes if answer and answer.helped else 0
    for stream, name, episodes, per in (
        ("agent", "Its own cost", counted, "an episode"),
        ("human", "Supervisor", helped, "an episode with a supervisor; simulated, paid by nobody"),
        ("evaluation", "Evaluation", counted, "an episode"),
    ):
        amount = costs.get(stream, 0)
        if amount == 0 and stream != "agent":
            continue
        each = f" ({format_dollars(round(amount / episodes))} {per})" if amount and episodes else ""
        lines.append((name, f"{format_dollars(amount)}{each}"))
    return lines


def axis_names(verdict: score.AgentVerdict, symbols: Sequence[str]) -> str:
    """Return axes by letter and name, such as `M memory, T tool economy`.

    Args:
        verdict: whose axes have the names.
        symbols: letters; other words stand as they are.
    """
    names = {axis.symbol: axis.name for axis in verdict.axes}
    return ", ".join(f"{one} {names.get(one, '')}".strip() for one in symbols)


def gate_levels(verdict: score.AgentVerdict) -> list[GateLevel]:
    """Return the gates by level, each with whether it is beyond the next one."""
    levels: dict[int, list[score.GateResult]] = {}
    for gate in verdict.gates:
        levels.setdefault(gate.level, []).append(gate)
    due = (verdict.level or 0) + 1
    return [GateLevel(n, n > due, tuple(levels[n])) for n in sorted(levels)]


def reading_columns(table: score.CellTable) -> list[ReadingColumn]:
    """Return a table's columns as they are read: a figure and its interval are one."""
    columns: list[ReadingColumn] = []
    names = table.columns
    for place, name in enumerate(names):
        head = columns[-1] if columns else None
        if head and name in ("low", f"{head.name} low"):
            columns[-1] = head._replace(ends=(place, place + 1))
        elif head is None or head.ends != (place - 1, place):
            columns.append(ReadingColumn(name, place, None))
    return columns


def format_figure(row: Sequence[object], column: ReadingColumn) -> str:
    """Return a cell, with its interval in brackets where it has one.

    Args:
        row: the cells of a row.
        column: the column as it is read.
    Returns: Such as `0.750 (0.512 to 0.899)`.
    """
    text = format_value(row[column.place])
    if column.ends is None or row[column.place] is None:
        return text
    low, high = (row[end] for end in column.ends)
    if low is None or high is None:
        return text
    return f"{text} ({format_value(low)} to {format_value(high)})"


def index_headline(verdict: score.AgentVerdict) -> str:
    """Return the index in one line, or which axes keep it from being computed."""
    if not verdict.indices:
        return "no index"
    index = verdict.indices[0]
    if index.value is None:
        return f"{index.name} {missing_reason(index, verdict)}"
    return f"{index.name} {index.value:.3f} ({format_interval(index.tasks_like_these)})"


def missing_reason(index: score.IndexScore, verdict: score.AgentVerdict) -> str:
    """Return why a composite has no value; empty when it has one.

    Args:
        index: the composite.
        verdict: its agent, whose axes have names.
    """
    if index.value is not None:
        return index.reason or ""
    if index.missing:
        return f"not computable: missing {axis_names(verdict, index.missing)}"
    return f"not computable: {index.reason or 'no reason given'}"


def format_details(value: object) -> str:
    """Return nested details in one line of plain words."""
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {format_details(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(format_details(part) for part in value)
    return format_value(value)


def is_number_column(table: score.CellTable, place: int) -> bool:
    """Return whether the cells of a column are numbers, apart from empty ones.

    Args:
        table: the table.
        place: index of the column.
    Returns: False for a column of empty cells.
    """
    cells = [row[place] for row in table.rows if row[place] is not None]
    return bool(cells) and all(isinstance(cell, int | float) for cell in cells)

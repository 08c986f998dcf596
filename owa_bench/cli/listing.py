"""`owa-bench list`: what there is to play, to be played by, and to be judged on."""

from typing import Annotated, Any

import typer

from owa_bench import discovery
from owa_bench.cli.console import as_json, table
from owa_bench.errors import UnknownNameError
from owa_bench.interfaces import HasAbout
from owa_bench.run.plan import batteries, draws
from owa_bench.run.plan.batteries import Battery

_COLUMNS = {
    "suites": ("suite", "version", "families", "tiers", "about", "from"),
    "batteries": ("battery", "episodes an agent", "may give a level", "about"),
    "agents": ("agent", "about", "from"),
    "operators": ("operator", "class", "weight", "about", "from"),
    "axes": ("axis", "symbol", "about", "from"),
    "gates": ("gate", "about"),
}


def attach(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("list")(list_plugins)


def list_plugins(
    kind: Annotated[
        str, typer.Argument(help="suites, batteries, agents, operators, axes or gates")
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List suites, batteries, agents, drift operators, axes and gates.

    Those of other packages are marked with the package they come from.

      owa-bench list

      owa-bench list agents --json
    """
    if kind and kind not in _COLUMNS:
        raise UnknownNameError("kind of plug-in", kind, _COLUMNS)
    found = {each: _rows(each) for each in ([kind] if kind else _COLUMNS)}
    if json:
        as_json(
            {
                each: [dict(zip(_keys(each), row, strict=True)) for row in rows]
                for each, rows in found.items()
            }
        )
        return
    for each, rows in found.items():
        shown = [[_shown(cell) for cell in row] for row in rows]
        table(each, _COLUMNS[each], shown)


def _keys(kind: str) -> list[str]:
    return [column.replace(" ", "_") for column in _COLUMNS[kind]]


def _rows(kind: str) -> list[tuple[Any, ...]]:
    if kind == "batteries":
        return [_of_battery(batteries.load(name)) for name in batteries.battery_names()]
    return [_row(kind, found) for found in discovery.find(kind).values()]


def _of_battery(battery: Battery) -> tuple[Any, ...]:
    cells = {
        cell
        for draw in battery.suite
        for cell in draws.cells(draw, discovery.get("suites", draw.name).card)
    }
    return battery.name, len(cells), battery.gives_level, battery.about


def _row(kind: str, found: discovery.PluginEntry) -> tuple[Any, ...]:
    plugin, package = found.plugin, found.package or "owa_bench"
    if kind == "suites":
        card = plugin.card
        return card.name, card.version, card.families, card.tiers, card.about, package
    if kind == "agents":
        return plugin.name, plugin.about, package
    if kind == "operators":
        about = _first_line(plugin)
        return found.name, plugin.announcement, plugin.weight, about, package
    if kind == "axes":
        return plugin.name, plugin.symbol, _first_line(plugin), package
    return plugin.name, _first_line(plugin)


def _shown(cell: Any) -> str:
    """Return a cell as people read it."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, tuple):
        return ", ".join(map(str, cell))
    return str(cell)


def _first_line(plugin: Any) -> str:
    about = plugin.about if isinstance(plugin, HasAbout) else ""
    text = about or plugin.__doc__ or ""
    return str(text).strip().splitlines()[0] if text else ""

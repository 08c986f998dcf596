"""`power`: how many instances each gate of a protocol needs."""

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from owa_bench.cli.console import OUT, as_json, table
from owa_bench.errors import FieldError
from owa_bench.records import protocol as protocols
from owa_bench.records.toml import in_file

if TYPE_CHECKING:
    from owa_bench.scoring.power import Need

_UNITS = (1e-6, 1e6)  # of kappa a day: beyond, a slope is nothing or everything


def attach(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(power)


def power(
    protocol: Annotated[
        str, typer.Argument(help="A protocol file, or `default`.")
    ] = "default",
    units: Annotated[
        float, typer.Option("--units", help="Kappa units an agent spends a day.")
    ] = 1.0,
    tasks: Annotated[
        int, typer.Option("--tasks", help="Tasks at which whole levels are shown.")
    ] = 200,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print how many instances each gate needs for an able agent to pass it.

    owa-bench power

    owa-bench power mine.toml --tasks 400
    """
    from owa_bench.scoring.power import level_power, needs  # brings SciPy

    if not _UNITS[0] <= units <= _UNITS[1]:
        raise FieldError(
            "--units", units, f"must lie in {_UNITS[0]:g} .. {_UNITS[1]:g}"
        )
    if tasks < 1:
        raise FieldError("--tasks", tasks, "must be at least 1")
    pages = _read(protocol)
    with in_file(protocol):
        numbers = protocols.load(pages)
    found = needs(numbers, units_a_day=units)
    if json:
        as_json([need._asdict() for need in found])
        return
    rules = numbers.statistics
    table(
        f"instances for {rules.power:.0%} power at required + {rules.power_margin:g}",
        ("level", "gate", "required", "true", "n", "counts"),
        [_row(need) for need in found],
    )
    OUT.print(
        "\nA level is an intersection of gates, and power falls with every gate. "
        f"All share gates, independent, {tasks} tasks each:"
    )
    for level in sorted({need.level for need in found}):
        OUT.print(f"  AAI-{level}: {level_power(numbers, level, tasks):.2f}")


def _read(name: str) -> bytes:
    """Return the bytes of a protocol file, or of the package's own."""
    if name == "default":
        return (files("owa_bench.protocols") / "default.toml").read_bytes()
    path = Path(name)
    if not path.is_file():
        raise FieldError("PROTOCOL", name, "must be a file, or `default`")
    return path.read_bytes()


def _row(need: "Need") -> tuple[str, ...]:
    return (
        f"AAI-{need.level}",
        need.gate,
        _number(need.required),
        _number(need.true),
        "" if need.instances is None else str(need.instances),
        need.note,
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"

"""`owa-bench robot check`: whether a driver of a robot keeps the rules."""

import importlib
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from owa_bench.cli.console import OUT, as_json
from owa_bench.errors import UsageError, error_line

MOCK = "mock"


def check(
    driver: str = typer.Argument(
        ..., metavar="DRIVER", help="mock, FILE.py:NAME or MODULE:NAME of a class or a factory."
    ),
    seconds: float = typer.Option(60.0, "--seconds", help="Of motion to and fro."),
    answer_s: float = typer.Option(
        0.0, "--answer-seconds", help="Most time that a member may take; 0: .1 s, of the mock 30 s."
    ),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Move a robot a little and say which rules of a driver it keeps.

    The arm moves to and fro above the middle of the table, is stopped in motion and made ready
    again. **A person stands by the emergency stop: no code here is a safety function.** Exits with
    1 where a rule does not hold.

    owa-bench robot check mock --seconds 4

    owa-bench robot check my_arm.py:MyArm
    """
    from owa_bench.envs.robosim2real.driver import ANSWER_S
    from owa_bench.envs.robosim2real.driver_check import check_driver

    if not seconds > 0 or answer_s < 0:
        raise UsageError("--seconds must be above 0, and --answer-seconds at least 0.")
    made = _driver_of(driver)
    limit = answer_s or (30.0 if driver == MOCK else ANSWER_S)
    found = []
    for finding in check_driver(made, dry_s=seconds, answer_s=limit):
        found.append(finding)
        if not json:
            mark = ("ok  ", "green") if finding.ok else ("NO  ", "red")
            OUT.print(Text.assemble(mark, f"{finding.rule}: {finding.seen}"))
    if json:
        as_json([one._asdict() for one in found])
    if not all(one.ok for one in found):
        raise typer.Exit(1)


def _driver_of(text: str) -> Any:
    """Return the driver that a text names.

    Raises: UsageError: there is none, or it cannot be made.
    """
    if text == MOCK:
        from owa_bench.envs.robosim2real.driver_mock import MockDriver

        return MockDriver()
    place, colon, name = text.rpartition(":")
    if not colon:
        raise UsageError(f"A driver is `mock`, FILE.py:NAME or MODULE:NAME, got `{text}`.")
    try:
        return getattr(_module_of(place), name)()
    except Exception as error:
        raise UsageError(f"The driver `{text}` cannot be made: {error_line(error)}.") from error


def _module_of(place: str) -> Any:
    from owa_bench.hosting.protocol import module_of_file

    is_file = place.endswith(".py")
    return module_of_file(Path(place).resolve()) if is_file else importlib.import_module(place)

"""The command line: one typer application, its exit codes and its errors.

Exit codes: 0 done; 1 a check failed; 2 wrong use, or a file that cannot be read or
written; 3 the machine lacks something.
"""

import errno
import sys

import typer
from rich.markup import escape

from owa_bench.cli import (
    evidence,
    exporting,
    judging,
    listing,
    machine,
    measuring,
    playing,
    power,
    serving,
    training,
    visiting,
)
from owa_bench.cli.console import ERR
from owa_bench.errors import (
    CheckFailure,
    MissingPartError,
    OwaError,
    RunDirectoryError,
    UsageError,
)

HELP = """Measure how much can be delegated to an agent, and prove it.

A run is played from a plan that is signed before the first episode. Its traces are
hash-chained; its report is signed and can be checked by anybody:

  owa-bench run --battery demo --agent agentic --agent fixed --out runs/first

  owa-bench report runs/first

  owa-bench verify runs/first      nothing was added, removed, edited or reordered

  owa-bench recompute runs/first   every figure follows from the raw events

  owa-bench escrow reveal runs/first && owa-bench replay runs/first

With --json standard output holds JSON and nothing else. Each command is one Python
call (docs/cli.md).

Exit codes: 0 done, 1 a check failed, 2 wrong use, 3 the machine lacks something.
"""

app = typer.Typer(
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (
    *(listing, playing, training, judging, power, evidence, machine, serving),
    *(measuring, exporting, visiting),
):
    module.attach(app)

# What the operating system has run out of: not wrong use, but a lack.
_SCARCE = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
_CTRL_C = 130
_CODES: tuple[tuple[type[OwaError], int], ...] = (
    (MissingPartError, 3),
    (UsageError, 2),
    (RunDirectoryError, 2),
    (CheckFailure, 1),
    (OwaError, 1),
)


def main() -> None:
    """Run the command line; deliberate errors print one message and set the code."""
    try:
        app()
    except OwaError as error:
        _say(str(error))
        sys.exit(next(code for kind, code in _CODES if isinstance(error, kind)))
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _say(f"{place}{error.strerror or error}.")
        sys.exit(3 if error.errno in _SCARCE else 2)
    except KeyboardInterrupt:
        _stopped()
    except SystemExit as left:
        # Typer takes Ctrl-C for itself and leaves without a word.
        if left.code != _CTRL_C:
            raise
        _stopped()


def _stopped() -> None:
    """Say how a stopped run goes on, and leave."""
    ERR.print("Stopped. `owa-bench run --resume --out DIR` goes on from here.")
    sys.exit(_CTRL_C)


def _say(message: str) -> None:
    """Print an error as one line, however wide the screen is."""
    ERR.print(f"[bold red]error:[/bold red] {escape(message)}", soft_wrap=True)

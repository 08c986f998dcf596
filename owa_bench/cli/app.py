"""The command line: one typer application, its exit codes and its errors.

Exit codes: 0 done; 1 a check failed; 2 wrong use, or a file that cannot be read or
written; 3 the machine lacks something; 130 stopped with Ctrl-C; 141 nobody reads on.
"""

import errno
import itertools
import sys
from typing import cast

import typer
from rich.text import Text

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
_WAYS_OUT = {
    errno.ENOENT: "Make it first, or name another.",
    errno.EEXIST: "Name another.",
    errno.EISDIR: "Name a file.",
    errno.ENOTDIR: "Name a place below a folder.",
    errno.EACCES: "Name another, or change its permissions.",
    errno.EROFS: "Name another.",
    errno.ENOSPC: "Free some, or name a place on another disk.",
    errno.EADDRINUSE: "Name another port.",
}
_CTRL_C = 130
_CODES: tuple[tuple[type[OwaError], int], ...] = (
    (MissingPartError, 3),
    (UsageError, 2),
    (RunDirectoryError, 2),
    (CheckFailure, 1),
    (OwaError, 1),
)
# All that the parser refuses; typer gives no name of its own to this parent.
_Refused = cast("type[typer.BadParameter]", typer.BadParameter.__mro__[1])


def main() -> None:
    """Run the command line; deliberate errors print one message and set the code."""
    try:
        code = app(prog_name="owa-bench", standalone_mode=False)
    except _Refused as error:
        _say(_refused(error))
        sys.exit(2)
    except OwaError as error:
        _say(str(error))
        sys.exit(next(code for kind, code in _CODES if isinstance(error, kind)))
    except OSError as error:
        _say(_of_system(error))
        sys.exit(3 if error.errno in _SCARCE else 2)
    except KeyboardInterrupt:
        code = _CTRL_C
    if code == _CTRL_C:
        ERR.print("Stopped.")
    sys.exit(code)


def _refused(error: typer.BadParameter) -> str:
    """Return one line for what the parser refuses, "" where it printed the help."""
    words = " ".join(error.format_message().split()).rstrip(".")
    if not words:
        return ""
    command = error.ctx.command_path if error.ctx else "owa-bench"
    end = "" if words.endswith("?") else "."
    return f"{words}{_given(error)}{end} See `{command} --help`."


def _given(error: typer.BadParameter) -> str:
    """Return the value that an option was given, as the parser does not say it."""
    names = getattr(getattr(error, "param", None), "opts", ())
    for word, value in itertools.pairwise(sys.argv):
        if word in names:
            return f", got {value!r}"
    return ""


def _of_system(error: OSError) -> str:
    """Return what the operating system refused, and the way out where one is known."""
    place = f"{error.filename}: " if error.filename else ""
    way_out = _WAYS_OUT.get(error.errno or 0, "")
    return f"{place}{error.strerror or error}. {way_out}".rstrip()


def _say(message: str) -> None:
    """Print an error as one line, however wide the screen is."""
    if message:
        ERR.print(Text.assemble(("error:", "bold red"), f" {message}"))

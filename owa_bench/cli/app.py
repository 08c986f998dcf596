"""The command line: one typer application, its exit codes and its errors.

Exit codes: 0 done; 1 a check failed; 2 wrong use, or a file that cannot be read or written; 3 the
machine lacks something; 4 a run stopped, too many attempts failed through harness or provider; 130
stopped with Ctrl-C; 141 nobody reads on.
"""

import contextlib
import errno
import itertools
import sys
from importlib import import_module
from typing import Any, cast

import typer
from rich.text import Text
from typer.core import TyperGroup

from owa_bench import __version__, errors
from owa_bench.cli.console import ERR, OUT, exit_code_of_signal, one_line
from owa_bench.cli.options import expand
from owa_bench.errors import FieldError, OwaError

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

Exit codes: 0 done, 1 a check failed, 2 wrong use, 3 the machine lacks something, 4 a
run stopped because too many attempts failed through the harness or a provider.
"""

MEASURE_HELP = """\
Measures beside the AAI axes, on a table of your own or a run of trials.

Every file may be CSV, TSV, Parquet (extra tables) or NumPy; each command names the
columns it reads; `novelty` reads a run. The formulas and their limits:
docs/companions.md.
"""
ESCROW_HELP = "Masters of runs: committed to in the plan, revealed when all is played."

VERIFIER_HELP = "What a verifier runs: who submits, and challenges of signed plans."


COMMANDS = {
    "list": "listing:list_plugins",
    "run": "playing:run",
    "place": "placing:place",
    "evaluate": "evaluating:evaluate",
    "train": "training:train",
    "report": "judging:report",
    "verify": "judging:verify",
    "recompute": "judging:recompute",
    "compare": "judging:compare",
    "power": "judging:power",
    "validate": "validating:validate",
    "revise": "evaluating:revise",
    "keygen": "evidence:keygen",
    "witness": "evidence:witness_plan",
    "challenge": "evidence:challenge_plan",
    "prune": "evidence:prune",
    "replay": "evidence:replay",
    "doctor": "listing:doctor",
    "play": "people:play",
    "readers": "reading:readers",
    "attend": "people:attend",
    "norms": "people:norms",
    "judge": "people:judge",
    "serve": "serving:serve",
    "export": "viewing:export",
    "visit": "serving:visit",
    "view": "viewing:view",
    "leaderboard": "viewing:leaderboard",
}
ESCROW = {"commit": "evidence:commit", "reveal": "evidence:reveal"}
VERIFIER = {"serve": "serving:serve_challenges", "register": "serving:register_submitter"}
MEASURE = {
    "aiq": "measuring_aiq:measure_aiq",
    "cartpole3d": "measuring_cartpole3d:measure_cartpole3d",
    "intelligence-test": "measuring_tables:measure_failures",
    "generality": "measuring_generality:measure_generality",
    "entropy": "measuring_tables:measure_entropy",
    "novelty": "measuring_trials:measure_novelty",
}


def _command(name: str, place: str) -> Any:
    """Return the command at "MODULE:FUNCTION" below `owa_bench.cli`."""
    module, _, function = place.partition(":")
    alone = typer.Typer(rich_markup_mode="rich")
    alone.command(name)(expand(getattr(import_module(f"owa_bench.cli.{module}"), function)))
    return typer.main.get_group(alone).commands[name]


def _group(places: dict[str, str]) -> type[TyperGroup]:
    """Return a group of commands, each imported when it is asked for.

    Args:
        places: "MODULE:FUNCTION" of each command, below `owa_bench.cli`.
    Returns: The class for typer; its commands come before those added to it.
    """

    class CommandGroup(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return list(dict.fromkeys((*places, *super().list_commands(ctx))))

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name not in self.commands:
                # All for an unknown name: the parser suggests those that it holds.
                for name in (cmd_name,) if cmd_name in places else places:
                    self.commands[name] = _command(name, places[name])
            return super().get_command(ctx, cmd_name)

    return CommandGroup


app = typer.Typer(
    cls=_group(COMMANDS),
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    """Print the version and stop, where it was asked for."""
    if asked:
        OUT.print(f"owa-bench {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: bool = typer.Option(
        False,
        "--version",
        help="Print the version and stop.",
        callback=_print_version,
        is_eager=True,
    ),
) -> None:
    """Take the options that stand before any command."""


for name, places, text in (
    ("escrow", ESCROW, ESCROW_HELP),
    ("verifier", VERIFIER, VERIFIER_HELP),
    ("measure", MEASURE, MEASURE_HELP),
):
    nested = typer.Typer(cls=_group(places), help=text, no_args_is_help=True)
    app.add_typer(nested, name=name)

# Errors of a machine that lacks something, not of wrong use.
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
    errno.ENOLCK: "This file system has no locks: name a folder on another disk.",
    errno.ENOTSUP: "This file system cannot do that: name a folder on another disk.",
    errno.ESTALE: "The network file system lost it: mount it again.",
}
_CTRL_C = 130
_CODES: tuple[tuple[type[OwaError], int], ...] = (
    (errors.MissingPartError, 3),
    (errors.UsageError, 2),
    (errors.RunDirectoryError, 2),
    (errors.CheckFailure, 1),
    (errors.FailureLimitError, 4),
    (errors.EntriesMissingError, 5),
    (OwaError, 1),
)
_FLAGS = {  # fields of a plan by the flag that sets them
    "budget.steps": "--steps",
    "budget.act_s": "--act-seconds",
    "budget.episode_meters": "--budget",
    "budget.run_meters": "--run-budget",
}
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
        _say(_as_given(error))
        sys.exit(next(code for kind, code in _CODES if isinstance(error, kind)))
    except OSError as error:
        _say(_of_system(error))
        sys.exit(3 if error.errno in _SCARCE else 2)
    except (MemoryError, RecursionError) as error:
        _say(f"The memory of this machine does not suffice ({type(error).__name__}).")
        sys.exit(3)
    except KeyboardInterrupt:
        code = _CTRL_C
    if code == _CTRL_C:
        with contextlib.suppress(OSError):  # of a terminal that is gone
            ERR.print("Stopped.")
        code = exit_code_of_signal(code)
    sys.exit(code)


def _as_given(error: OwaError) -> str:
    """Return an error's message, with the flag that set the field in its place."""
    words = {word.partition("=")[0] for word in sys.argv[1:]}
    if isinstance(error, FieldError) and _FLAGS.get(error.field) in words:
        return str(FieldError(_FLAGS[error.field], error.value, error.rule))
    return str(error)


def _refused(error: typer.BadParameter) -> str:
    """Return one line for what the parser refuses, "" where it printed the help."""
    words = " ".join(error.format_message().split()).rstrip(".")
    words = words.replace(": Value error, ", ": ")
    if not words:
        return ""
    command = error.ctx.command_path if error.ctx else "owa-bench"
    end = "" if words.endswith("?") else "."
    return f"{words}{_value_in(error)}{end} See `{command} --help`."


def _value_in(error: typer.BadParameter) -> str:
    """Return the value that an option was given: the parser leaves it out."""
    names = getattr(getattr(error, "param", None), "opts", ())
    for word, value in itertools.pairwise(sys.argv):
        if word in names:
            return f", got {value!r}"
    return ""


def _of_system(error: OSError) -> str:
    """Return the operating system's error, and the way out where one is known."""
    place = f"{error.filename}: " if error.filename else ""
    way_out = _WAYS_OUT.get(error.errno or 0, "")
    return f"{place}{error.strerror or error}. {way_out}".rstrip()


def _say(message: str) -> None:
    """Print an error as one line, however wide the screen is."""
    if message:
        ERR.print(Text.assemble(("error:", "bold red"), f" {one_line(message)}"))

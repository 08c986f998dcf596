"""The command line: one typer application, its exit codes and its errors.

Exit codes: 0 done; 1 a check failed; 2 wrong use, or a file that cannot be read or written; 3 the
machine lacks something; 4 a run stopped, too many attempts failed through harness or provider; 130
stopped with Ctrl-C; 141 nobody reads on.
"""

import contextlib
import errno
import itertools
import sys
from copy import copy
from importlib import import_module
from typing import Any, cast

import typer
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from owa_bench import __version__, errors
from owa_bench.cli.console import ERR, OUT, exit_code_of_signal, one_line
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

ROBOT_HELP = "Drivers of real robots (docs/add-a-robot.md)."

VERIFIER_HELP = "What a verifier runs: who submits, and challenges of signed plans."


# Of each command its "MODULE:FUNCTION" below `owa_bench.cli`, and the first line of its docstring:
# help that lists commands imports none of them.
Commands = dict[str, tuple[str, str]]
COMMANDS: Commands = {
    "list": (
        "listing:list_plugins",
        "List suites, batteries, agents, drift operators, axes and gates.",
    ),
    "run": ("playing:run", "Play agents on a battery or on suites, recorded as evidence."),
    "place": (
        "placing:place",
        "Place an agent on the scale: play until its level is decided, and not longer.",
    ),
    "evaluate": (
        "evaluating:evaluate",
        "Play a submitted agent under your seeds, your key and your sandbox (V5).",
    ),
    "train": (
        "training:train",
        "Train a policy; it then plays as any agent: `run --agent sb3:DIR/model.zip`.",
    ),
    "report": (
        "judging:report",
        "Judge a run; write report.json, report.dsse.json (signed) and report.html.",
    ),
    "verify": ("judging:verify", "Check that nothing was added, removed, edited or reordered."),
    "recompute": (
        "judging:recompute",
        "Judge the raw events again; every figure must equal the signed one.",
    ),
    "compare": (
        "judging:compare",
        "Compare two agents on the instances that both played, or any number on a page.",
    ),
    "power": (
        "judging:power",
        "Print how many instances each gate needs for an able agent, and each level's power.",
    ),
    "validate": (
        "validating:validate",
        "Handicap the reference agents knob by knob; print how each axis answers.",
    ),
    "revise": ("evaluating:revise", "Test versions of your own agent against the one you have."),
    "keygen": ("evidence:keygen", "Make an Ed25519 signing key in your data folder (mode 0600)."),
    "witness": (
        "evidence:witness_plan",
        "Get evidence that the plan existed before episode 0 (assurance V3).",
    ),
    "challenge": (
        "evidence:challenge_plan",
        "Give a plan the challenge that its seeds wait for, or ask a verifier for it.",
    ),
    "prune": ("evidence:prune", "Drop the transcripts of a run: every text and picture, for good."),
    "replay": (
        "evidence:replay",
        "Play recorded actions again from the revealed seeds and compare what happens.",
    ),
    "doctor": (
        "listing:doctor",
        "Say what this machine has, what it lacks, and the line that installs it.",
    ),
    "play": (
        "people:play",
        "Let a person play episodes, in this terminal, in a page, or through files.",
    ),
    "readers": (
        "reading:readers",
        "Print what readers did: success, quality, acts, characters, p and Brier score.",
    ),
    "attend": (
        "people:attend",
        "Sign that you watched the person of a run play it, alone, to its end.",
    ),
    "norms": ("people:norms", "Make norms of several people's runs; `report --norms` reads them."),
    "judge": (
        "people:judge",
        "Rate open texts by a rubric, blind; two raters, then their agreement.",
    ),
    "serve": (
        "serving:serve",
        "Serve an instance's tools over MCP; each call is one recorded step.",
    ),
    "export": (
        "viewing:export",
        "Write the counted episodes of a run for other tools; the run stays as it is.",
    ),
    "visit": (
        "serving:visit",
        "Serve a ChangeSurf site over loopback, for a person or another tool's browser.",
    ),
    "view": ("viewing:view", "Write a site of a run: its list of attempts, and a page of each."),
    "leaderboard": (
        "viewing:leaderboard",
        "Make a leaderboard from run directories, and say why others give no row.",
    ),
}
ESCROW: Commands = {
    "commit": ("evidence:commit", "Draw a master and keep it; prints the commitment to it."),
    "reveal": (
        "evidence:reveal",
        "Publish a run's master and nonce in reveal.json, so that others can replay it.",
    ),
}
VERIFIER: Commands = {
    "serve": (
        "serving:serve_challenges",
        "Serve a verifier: submitters ask it for the challenges of their plans.",
    ),
    "register": (
        "serving:register_submitter",
        "Put a submitter's key on your list, so that their plans are numbered.",
    ),
}
ROBOT: Commands = {
    "check": ("robots:check", "Move a robot a little and say which rules of a driver it keeps.")
}
MEASURE: Commands = {
    "aiq": (
        "measuring_aiq:measure_aiq",
        "Complexity of domains, their dissimilarity, and each agent's AIQ.",
    ),
    "cartpole3d": (
        "measuring_cartpole3d:measure_cartpole3d",
        "AIQ over CartPole3D's levels: pool, mixtures, agents, tables, figures.",
    ),
    "intelligence-test": (
        "measuring_tables:measure_failures",
        "Level of a subject by how its failure counts decay.",
    ),
    "generality": (
        "measuring_generality:measure_generality",
        "Capability, spread and generality of each agent.",
    ),
    "entropy": (
        "measuring_tables:measure_entropy",
        "Entropy decay curve and information gain span.",
    ),
    "novelty": (
        "measuring_trials:measure_novelty",
        "How agents detect novelty and take it: the SAIL-ON metrics of a run of trials.",
    ),
}


def _command(name: str, place: str) -> Any:
    """Return the command at "MODULE:FUNCTION" below `owa_bench.cli`."""
    from owa_bench.cli.options import expand

    module, _, function = place.partition(":")
    alone = typer.Typer(rich_markup_mode="rich")
    alone.command(name)(expand(getattr(import_module(f"owa_bench.cli.{module}"), function)))
    return typer.main.get_group(alone).commands[name]


def _group(commands: Commands) -> type[TyperGroup]:
    """Return a group of commands, each imported when it is asked for.

    Args:
        commands: place and first line of each.
    Returns: The class for typer; its commands come before those added to it.
    """
    lines = {name: TyperCommand(name, help=line) for name, (_, line) in commands.items()}

    class CommandGroup(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return list(dict.fromkeys((*commands, *super().list_commands(ctx))))

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name not in self.commands and cmd_name in commands:
                self.commands[cmd_name] = _command(cmd_name, commands[cmd_name][0])
            return super().get_command(ctx, cmd_name)

        def format_help(self, ctx: Any, formatter: Any) -> None:
            TyperGroup.format_help(self._of_lines(), ctx, formatter)

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            known = args[0] in self.list_commands(ctx)
            # The parser suggests names of those that it holds.
            return TyperGroup.resolve_command(self if known else self._of_lines(), ctx, args)

        def _of_lines(self) -> TyperGroup:
            """Return this group with the first lines of its commands in their places."""
            group = copy(self)
            group.commands = {**lines, **self.commands}
            return group

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
    ("robot", ROBOT, ROBOT_HELP),
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

"""Options of the commands: declared once, read as numbers, lists and draws.

A `Panel` declares the options of one panel of a command's help. Options that a record holds anyway
take name, type and default from it; `expand` puts them into the command's signature. Faults name
the flag, the value and the rule.
"""

import functools
import inspect
import shlex
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, get_type_hints

import typer

from owa_bench import discovery
from owa_bench.errors import FieldError, PlanError, UsageError, one_of
from owa_bench.runs.assembly import tool_names
from owa_bench.runs.plan import draws
from owa_bench.runs.plan.draws import Budgeted, Draw
from owa_bench.runs.plan.trials import Trials
from owa_bench.runs.store import keys

Fields = dict[str, Any]
_PORTS = 65_535
_DRAW_FLAGS = {
    "suite.name": "--suite",
    "suite.families": "--family",
    "suite.tiers": "--tier",
    "suite.deltas": "--delta",
}


# --- declarations ---------------------------------------------------------------------


class RecordOptions(NamedTuple):
    """Options that stand for fields of a record: help by field, and their panel."""

    record: Callable[..., Any]
    panel: "Panel"
    helps: dict[str, str]

    @property
    def repeated(self) -> tuple[str, ...]:
        """The fields that are tuples of texts."""
        types = get_type_hints(self.record)
        return tuple(name for name in self.helps if types[name] == tuple[str, ...])


class Panel:
    """A panel of a command's help; None: the one of all options without a panel."""

    def __init__(self, title: str | None = None) -> None:
        self.title = title

    def __call__(self, default: Any, text: str, *names: str, **rules: Any) -> Any:
        """Return an option, to stand as the default of a command's parameter.

        Args:
            default: its default; `...` for a required one.
            text: its help.
            names: the flags; none: the parameter's own name.
            rules: what else typer may be told, such as `min`.
        """
        title = self.title
        return typer.Option(default, *names, help=text, rich_help_panel=title, **rules)

    def fields(self, record: Callable[..., Any], **helps: str) -> Any:
        """Return one option for each named field of a record.

        The command's parameter gets a dict of their values, for the record's call. A field that
        is a tuple of texts is an option that may be given several times.

        Args:
            record: a dataclass, Struct or NamedTuple.
            helps: the help of each field.
        Returns: What `expand` puts into the signature.
        """
        return RecordOptions(record, self, helps)


option = Panel()
RunDir: Any = typer.Argument(help="A run directory.", show_default=False)
AsJson: Any = option(False, "Print JSON.", "--json")
KeyName: Any = option(keys.DEFAULT, "Name of the signing key.")


def expand(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose signature spells every option out.

    Args:
        command: its parameters' defaults are options, or stand for fields of a record.
    Returns: The same for typer: one parameter an option; a switch has no negative flag.
    """
    parameters: list[inspect.Parameter] = []
    records: dict[str, RecordOptions] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if isinstance(parameter.default, RecordOptions):
            records[parameter.name] = parameter.default
            parameters += _of_fields(parameter.default)
        else:
            parameters.append(parameter)

    @functools.wraps(command)
    def call(**values: Any) -> None:
        for name, made in records.items():
            values[name] = {field: values.pop(field) for field in made.helps}
            values[name] |= {field: tuple(values[name][field] or ()) for field in made.repeated}
        command(**values)

    parameters = [_named(each) for each in parameters]
    vars(call)["__signature__"] = inspect.Signature(parameters)
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call


def _of_fields(made: RecordOptions) -> list[inspect.Parameter]:
    """Return a parameter for each field, with the record's own type and default."""
    known = inspect.signature(made.record).parameters
    types = get_type_hints(made.record)
    repeated = made.repeated
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=made.panel(None if name in repeated else known[name].default, text),
            annotation=list[str] | None if name in repeated else types[name],
        )
        for name, text in made.helps.items()
    ]


def _named(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter of its own name; a switch gets its one flag."""
    default = parameter.default
    if parameter.annotation is bool and not default.param_decls:
        default.param_decls = (f"--{parameter.name.replace('_', '-')}",)
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)


# --- what was given -------------------------------------------------------------------


def given_names(context: typer.Context) -> frozenset[str]:
    """Return the names of the parameters that were given, not left to a default."""
    return frozenset(
        name
        for name in context.params
        if (source := context.get_parameter_source(name)) is not None and source.name != "DEFAULT"
    )


def flags(context: typer.Context, names: Collection[str]) -> str:
    """Return the flags that were given among some, as a shell takes them.

    Args:
        context: of the command.
        names: of its parameters.
    Returns: Each with a space before it; "" for none.
    """
    words: list[str] = []
    given = given_names(context)
    for name in names:
        value, flag = context.params.get(name), f"--{name.replace('_', '-')}"
        if name not in given:
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            words += [flag] if each is True else [flag, shlex.quote(str(each))]
    return "".join(f" {word}" for word in words)


def refuse_together(given: Collection[str], names: Collection[str], why: str) -> None:
    """Refuse options that make no sense beside others.

    Args:
        given: names of the parameters that were given.
        names: those that are refused.
        why: the rest of the sentence: the rule and the way out.
    Raises: UsageError: one of `names` was given.
    """
    wrong = sorted(set(given) & set(names))
    if wrong:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in wrong)
        raise UsageError(f"{flags} {why}")


# --- texts read as values -------------------------------------------------------------


def port(value: int) -> int:
    """Return a port; FieldError if there is no such one."""
    if not 0 <= value <= _PORTS:
        raise FieldError("--port", value, f"must lie in 0..{_PORTS} (0: any free one)")
    return value


def split(text: str | None) -> list[str]:
    """Return the parts of a comma-separated text."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def number(name: str, text: str, kind: type[Any]) -> Any:
    """Return a number.

    Args:
        name: the flag that holds it.
        text: its text.
        kind: int or float.
    Raises: FieldError: it is none; names the flag.
    """
    try:
        return kind(text)
    except ValueError as error:
        rule = f"must be {'whole numbers' if kind is int else 'numbers'}"
        raise FieldError(name, text, rule) from error


def meters(name: str, texts: list[str] | None) -> tuple[tuple[str, float], ...]:
    """Return ceilings of meters.

    Args:
        name: the flag that holds them.
        texts: such as api_calls=200.
    Returns: (meter, ceiling) pairs.
    Raises: FieldError: a text is no such pair.
    """
    pairs = []
    for text in texts or ():
        meter, sign, amount = text.partition("=")
        if not sign:
            rule = "must read METER=AMOUNT, such as api_calls=200"
            raise FieldError(name, text, rule)
        pairs.append((meter.strip(), float(number(name, amount, float))))
    return tuple(pairs)


def draws_of(
    *,
    suite: str | None,
    family: str | None = None,
    tier: str | None = None,
    delta: str | None = None,
    interventions: str | None = None,
    crews: str = draws.OPEN,
    tools_off: str | None = None,
    episodes: int = 1,
    repeats: int = 1,
) -> tuple[Draw, ...]:
    """Return the draws that options stand for, checked.

    Args:
        suite: suites; like all texts here, parts with commas between.
        family: families, none: all.
        tier: tiers, none: all.
        delta: drift magnitudes, none: the published ones.
        interventions: supervisor budgets, none: those that the axes read.
        crews: ceilings on an agent's roles.
        tools_off: tools taken from those on offer.
        episodes: instances per family and tier.
        repeats: noise seeds per instance.
    Returns: One draw a suite.
    Raises: FieldError: an option breaks a rule; names flag, value and rule.
    """
    deltas = tuple(number("--delta", part, float) for part in split(delta))
    made = tuple(
        Draw(
            name=name,
            families=tuple(split(family)),
            tiers=tuple(number("--tier", part, int) for part in split(tier)),
            deltas=deltas or draws.usual_magnitudes(name),
            interventions=tuple(_budget(part) for part in split(interventions))
            or draws.usual_budgets(name),
            crews=tuple(split(crews)),
            tools_off=tuple(split(tools_off)),
            episodes=episodes,
            repeats=repeats,
        )
        for name in split(suite)
    )
    for draw in made:
        try:
            draws.check(draw, PlanError)
        except PlanError as error:
            plain = f"--{error.field.removeprefix('suite.')}"
            flag = _DRAW_FLAGS.get(error.field, plain)
            raise FieldError(flag, error.value, error.rule) from error
        _check_tools_off(draw)
    return made


def trials_of(
    count: int | None, before: str, draws: tuple[Draw, ...], *, given: bool, hints: int
) -> Trials | None:
    """Return the trials that options stand for, None without any.

    Args:
        count: per family and tier.
        before: fewest and most plain episodes, with a comma between.
        draws: one.
        given: whether trials of Given Detection are added.
        hints: what is told in those.
    Raises:
        UsageError: there is not one draw.
        FieldError: `before` is no two counts.
    """
    if count is None:
        return None
    if len(draws) != 1:
        raise UsageError("Trials (--trials) need exactly one --suite.")
    ends = [number("--before", text, int) for text in split(before)]
    if len(ends) != 2:
        raise FieldError("--before", before, "must be two counts, such as 5,10")
    (draw,), (low, high) = draws, ends
    return Trials(draw=draw, count=count, before=(low, high), given=given, hints=hints)


def _check_tools_off(draw: Draw) -> None:
    """Refuse the name of a tool that the suite never offers: nothing would be off."""
    card = discovery.get("suites", draw.name).card
    if not draw.tools_off or card.native:
        return
    known = tool_names(draw.name, draw.families or card.families)
    for name in draw.tools_off:
        if known and name not in known:
            raise FieldError("--tools-off", name, one_of(name, sorted(known)))


def _budget(text: str) -> Budgeted:
    """Return a supervisor budget of `--interventions`."""
    if text == "protocol":
        return "protocol"
    if text == "unlimited":
        return "unlimited"
    try:
        return int(text)
    except ValueError as error:
        rule = "must be whole numbers, `protocol` or `unlimited`"
        raise FieldError("--interventions", text, rule) from error

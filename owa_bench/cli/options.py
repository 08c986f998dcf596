"""Options of the commands: declared once, read as numbers and lists.

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

from owa_bench.errors import FieldError, UsageError
from owa_bench.runs.store import keys

Fields = dict[str, Any]
_PORTS = 65_535


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

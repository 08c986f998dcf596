"""Texts from the command line as numbers, lists and draws; faults name the flag."""

from collections.abc import Collection
from typing import Any

import typer

from owa_bench import discovery
from owa_bench.errors import FieldError, PlanError, UsageError
from owa_bench.run.plan import draws
from owa_bench.run.plan.draws import MAGNITUDES, Budgeted, Draw

_PORTS = 65_535
_FLAGS = {
    "suite.name": "--suite",
    "suite.families": "--family",
    "suite.tiers": "--tier",
    "suite.deltas": "--delta",
    "suite.episodes": "--episodes",
    "suite.repeats": "--repeats",
    "suite.interventions": "--interventions",
    "suite.crews": "--crews",
}


def port(value: int) -> int:
    """Return a port; FieldError if there is no such one."""
    if not 0 <= value <= _PORTS:
        raise FieldError("--port", value, f"must lie in 0..{_PORTS} (0: any free one)")
    return value


def given(context: typer.Context) -> frozenset[str]:
    """Return the names of the parameters that were given, not left to a default."""
    return frozenset(
        name
        for name in context.params
        if (source := context.get_parameter_source(name)) is not None
        and source.name != "DEFAULT"
    )


def refuse_together(found: Collection[str], names: Collection[str], why: str) -> None:
    """Raise UsageError if any of `names` was given; `why` says what to do."""
    wrong = sorted(set(found) & set(names))
    if wrong:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in wrong)
        raise UsageError(f"{flags} {why}")


def drawn(
    suite: str | None,
    family: str | None,
    tier: str | None,
    delta: str | None,
    episodes: int,
    repeats: int,
    interventions: str,
    crews: str = draws.OPEN,
) -> tuple[Draw, ...]:
    """Return the draws that the flags stand for, checked.

    Errors: FieldError naming flag, value and rule.
    """
    made = tuple(
        Draw(
            name=name,
            families=tuple(split(family)),
            tiers=tuple(number("--tier", part, int) for part in split(tier)),
            deltas=tuple(number("--delta", part, float) for part in split(delta))
            or _magnitudes(name),
            episodes=episodes,
            repeats=repeats,
            interventions=tuple(_budgeted(part) for part in split(interventions)),
            crews=tuple(split(crews)),
        )
        for name in split(suite)
    )
    for draw in made:
        try:
            draws.check(draw, PlanError)
        except PlanError as error:
            flag = _FLAGS.get(error.field, error.field)
            raise FieldError(flag, error.value, error.rule) from error
    return made


def _magnitudes(suite: str) -> tuple[float, ...]:
    """Return the magnitudes drawn by default: a native suite has its novelty or not."""
    known = discovery.find("suites")
    native = suite in known and known[suite].plugin.card.native
    return (1.0,) if native else MAGNITUDES


def split(text: str | None) -> list[str]:
    """Return the parts of a comma-separated text."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def number(name: str, text: str, kind: type[Any]) -> Any:
    """Return a number; FieldError names the flag if it is none."""
    try:
        return kind(text)
    except ValueError as error:
        raise FieldError(
            name, text, f"must be {'whole numbers' if kind is int else 'numbers'}"
        ) from error


def meters(name: str, texts: list[str] | None) -> tuple[tuple[str, float], ...]:
    """Return (meter, ceiling) pairs from texts such as api_calls=200."""
    pairs = []
    for text in texts or ():
        meter, sign, amount = text.partition("=")
        if not sign:
            raise FieldError(
                name, text, "must read METER=AMOUNT, such as api_calls=200"
            )
        pairs.append((meter.strip(), float(number(name, amount, float))))
    return tuple(pairs)


def _budgeted(text: str) -> Budgeted:
    if text == "unlimited":
        return "unlimited"
    try:
        return int(text)
    except ValueError as error:
        raise FieldError(
            "--interventions", text, "must be whole numbers or `unlimited`"
        ) from error

"""A project's features in words, and the interpreter of what each must answer.

It knows no code: acceptance compares with it what the product's code answers.

Source: docs/projforge.md#worlds
"""

from collections.abc import Callable, Mapping
from typing import Any

from numpy.random import Generator

from owa_bench.envs.projforge.world import (
    Feature,
    FeatureStep,
    LibraryRule,
    ProductionIncident,
    ProjectWorld,
    Rounding,
)

RequestRows = Mapping[str, Any]
RuleShift = Callable[[str, str], int]  # of a library and a rule: what a canary adds
LEVELS = 4
_MOST = 2_000


def divide(number: int, by: int, rounding: Rounding) -> int:
    """Return a quotient of integers, rounded.

    Args:
        number: The dividend.
        by: The divisor, above 0.
        rounding: "down", "up", or "half_up".

    >>> [divide(-3, 2, how) for how in ("down", "up", "half_up")]
    [-2, -1, -1]
    """
    if rounding == "down":
        return number // by
    if rounding == "up":
        return -(-number // by)
    return (2 * number + by) // (2 * by)


def rule_value(rule: LibraryRule, amount: int, level: int, rounding: Rounding) -> int:
    """Return a rule's value.

    Args:
        rule: The rule.
        amount: An integer.
        level: A row of its table.
        rounding: Of its one division.
    """
    numbers = rule.table[level]
    match rule.kind:
        case "rate":
            return divide(amount * numbers[0], 1000, rounding)
        case "step":
            return divide(amount, numbers[0], rounding) * numbers[0]
        case "surcharge":
            return amount + numbers[0] + divide(amount * numbers[1], 1000, rounding)
        case "tiers":
            edge, low, high = numbers
            inside, beyond = min(amount, edge), max(amount - edge, 0)
            return divide(inside * low + beyond * high, 1000, rounding)


def answer(
    world: ProjectWorld, feature: Feature, request: RequestRows, shift: RuleShift | None = None
) -> int:
    """Return what a feature must answer.

    Args:
        world: Holds the rules and the other features.
        feature: One of its features.
        request: "rows", each a mapping of the vocabulary's fields.
        shift: Integer that each library rule adds to its value; None: nothing.
    """
    words = world.vocabulary
    rows: list[dict[str, Any]] = [dict(row) for row in request["rows"]]
    value = 0
    for step in feature.steps:
        match step.kind:
            case "word":
                rows = [r for r in rows if _passes(r[step.field], step.test, step.word)]
            case "number":
                rows = [r for r in rows if _passes(r[step.field], step.test, step.value)]
            case "apply":
                rule = _rule_of(world, step, shift)
                for row in rows:
                    row[words.amount] = rule(row[words.amount])
            case "reduce":
                value = _reduced(rows, words.amount, words.count, step.how)
            case "adjust":
                value = _rule_of(world, step, shift)(value)
            case "join":
                other = answer(world, world.feature(step.word), request, shift)
                value = _joined(value, other, step.how)
    return value


def _passes(value: Any, test: str, limit: Any) -> bool:
    match test:
        case "is":
            return bool(value == limit)
        case "is_not":
            return bool(value != limit)
        case "at_least":
            return bool(value >= limit)
    return bool(value < limit)


def _rule_of(
    world: ProjectWorld, step: FeatureStep, shift: RuleShift | None
) -> Callable[[int], int]:
    rules = world.library(step.library).rules
    rule = next(rule for rule in rules if rule.name == step.rule)
    extra = shift(step.library, step.rule) if shift else 0
    return lambda amount: rule_value(rule, amount, step.level, step.rounding) + extra


def _reduced(rows: list[dict[str, Any]], amount: str, count: str, how: str) -> int:
    match how:
        case "sum":
            return sum(row[amount] for row in rows)
        case "sum_product":
            return sum(row[amount] * row[count] for row in rows)
        case "largest":
            return max((row[amount] for row in rows), default=0)
    return sum(row[count] for row in rows)


def _joined(value: int, other: int, how: str) -> int:
    match how:
        case "plus":
            return value + other
        case "less":
            return other - value
    return max(value, other)


def draw_request(world: ProjectWorld, rng: Generator) -> dict[str, Any]:
    """Return a request of three to eight rows.

    Args:
        world: Names the fields.
        rng: Draws the values.
    """
    words, size = world.vocabulary, int(rng.integers(3, 9))
    kinds = rng.integers(len(words.kinds), size=size).tolist()
    amounts = rng.integers(1, _MOST, size=size).tolist()
    counts = rng.integers(1, 12, size=size).tolist()
    ages = rng.integers(0, 60, size=size).tolist()
    rows = [
        {
            "id": f"{words.row[0]}{number}",
            words.kind: words.kinds[kind],
            words.amount: amount,
            words.count: count,
            words.age: age,
        }
        for number, (kind, amount, count, age) in enumerate(
            zip(kinds, amounts, counts, ages, strict=True)
        )
    ]
    return {"rows": rows}


def requests_of(
    world: ProjectWorld, feature: Feature, rng: Generator, count: int
) -> list[tuple[str, dict[str, Any]]]:
    """Return cases for a feature: its endpoint, and a drawn request each.

    Args:
        world: Names the fields.
        feature: What is asked for.
        rng: Draws the requests.
        count: How many.
    Returns: (name of the feature, request).
    """
    return [(feature.name, draw_request(world, rng)) for _ in range(count)]


_OPENINGS = (
    "Take the {row}s of the request.",
    "The request lists {row}s.",
    "Start from all {row}s that come in.",
    "Look at every {row} in the request.",
)
_TESTS = {
    "is": ("Keep those whose {field} is {limit}.", "Only {field} {limit} counts."),
    "is_not": ("Leave out {field} {limit}.", "Those with {field} {limit} do not count."),
    "at_least": (
        "Keep those with a {field} of {limit} or more.",
        "Drop every one whose {field} is below {limit}.",
    ),
    "below": ("Keep those with a {field} under {limit}.", "A {field} of {limit} or more is out."),
}
_REDUCTIONS = {
    "sum": "Add up the {amount}s.",
    "sum_product": "Add up {amount} times {count}.",
    "largest": "Take the largest {amount}, 0 where none is left.",
    "count": "Add up the {count}s.",
}
_ROUNDINGS = {"half_up": "rounded half up", "down": "rounded down", "up": "rounded up"}
_JOINS = {
    "plus": "Add what `{word}` answers to the same request.",
    "less": "Subtract it from what `{word}` answers to the same request.",
    "greater": "If `{word}` answers more to the same request, answer that.",
}


def feature_prose(world: ProjectWorld, feature: Feature) -> str:
    """Return a feature in words, as its issue has it.

    Args:
        world: Gives the words.
        feature: The feature.
    """
    words, style = world.vocabulary, feature.style
    names = {"row": words.row, "amount": words.amount, "count": words.count}
    parts = [_OPENINGS[style % len(_OPENINGS)].format(**names)]
    for place, step in enumerate(feature.steps):
        parts.append(_step_prose(step, names, style >> place))
    return " ".join(parts)


def _step_prose(step: FeatureStep, names: Mapping[str, str], style: int) -> str:
    rule = (
        f"rule `{step.rule}` of `{step.library}` (level {step.level}, {_ROUNDINGS[step.rounding]})"
    )
    match step.kind:
        case "word" | "number":
            limit = step.word or step.value
            options = _TESTS[step.test]
            return options[style % len(options)].format(field=step.field, limit=limit)
        case "apply":
            return f"Replace each {names['amount']} by its {rule}."
        case "adjust":
            return f"Put the result through {rule}."
        case "join":
            return _JOINS[step.how].format(word=step.word)
    return _REDUCTIONS[step.how].format(**names)


_LOGS = {
    "memory": "worker 2 was killed by signal 9, its resident size was at the limit",
    "disk": "the journal could not be written, no space left on device",
    "certificate": "handshake refused by every client, not valid after midnight",
    "port": "bind failed at restart, address already in use",
}


def incident_text(incident: ProductionIncident) -> str:
    """Return what the tracker says of an incident: the log, not the cause."""
    log = _LOGS[incident.cause]
    return f"Production stopped in the night. Last line of its log: {log}."

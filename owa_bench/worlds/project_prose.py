"""Features of a project in words: what an issue of the tracker says.

Source: docs/projforge.md#worlds
"""

from collections.abc import Mapping

from owa_bench.worlds.project import (
    Feature,
    FeatureStep,
    ProductionIncident,
    ProjectWorld,
)

_OPENINGS = (
    "Take the {row}s of the request.",
    "The request lists {row}s.",
    "Start from all {row}s that come in.",
    "Look at every {row} in the request.",
)
_TESTS = {
    "is": ("Keep those whose {field} is {limit}.", "Only {field} {limit} counts."),
    "is_not": (
        "Leave out {field} {limit}.",
        "Those with {field} {limit} do not count.",
    ),
    "at_least": (
        "Keep those with a {field} of {limit} or more.",
        "Drop every one whose {field} is below {limit}.",
    ),
    "below": (
        "Keep those with a {field} under {limit}.",
        "A {field} of {limit} or more is out.",
    ),
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
    Returns: A paragraph.
    """
    words, style = world.vocabulary, feature.style
    names = {"row": words.row, "amount": words.amount, "count": words.count}
    parts = [_OPENINGS[style % len(_OPENINGS)].format(**names)]
    for place, step in enumerate(feature.steps):
        parts.append(_step_prose(step, names, style >> place))
    return " ".join(parts)


def _step_prose(step: FeatureStep, names: Mapping[str, str], style: int) -> str:
    rule = (
        f"rule `{step.rule}` of `{step.library}` (level {step.level}, "
        f"{_ROUNDINGS[step.rounding]})"
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

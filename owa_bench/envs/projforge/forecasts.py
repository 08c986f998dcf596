"""Propositions about a project's weeks, and the tool that states probabilities.

What is said of a week counts if it is said before the week begins, whatever becomes of
it: waiting for a change that does not come is no knowledge.

Source: docs/projforge.md#forecasts
"""

from collections.abc import Iterator, Mapping

from owa_bench.envs.projforge.marks import WEEK
from owa_bench.interfaces import PropositionTruth, ToolSpec
from owa_bench.records.events import Belief, fixed
from owa_bench.records.instance import Timeline
from owa_bench.worlds.project import DAY_MS, ProjectWorld

_ASKED = {
    "yank": (
        "a version of a library is withdrawn for a post release",
        ("project/yanked", "project/transitive_conflict"),
    ),
    "quota": ("the minutes of integration are cut", ("project/quota_cut",)),
    "image": ("the image of the pipeline is withdrawn", ("project/ci_image",)),
}
KINDS = tuple(_ASKED)
FORECAST = ToolSpec(
    name="forecast",
    about="State probabilities of propositions on weeks that have not begun.",
    parameters={
        "type": "object",
        "properties": {
            "beliefs": {
                "type": "object",
                "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
            }
        },
        "required": ["beliefs"],
        "additionalProperties": False,
    },
)


def _weeks(world: ProjectWorld) -> Iterator[tuple[str, int]]:
    """Yield the class and the first day of each proposition."""
    for first in range(WEEK, world.days - WEEK + 1, WEEK):
        for kind in KINDS:
            yield kind, first


def proposition_texts(world: ProjectWorld) -> dict[str, str]:
    """Return the propositions of a project, by id."""
    return {
        f"{kind}/{first}": f"{_ASKED[kind][0]} on day {first} to {first + WEEK - 1}; "
        f"what is said from day {first} on does not count"
        for kind, first in _weeks(world)
    }


def proposition_truths(timeline: Timeline) -> tuple[PropositionTruth, ...]:
    """Return which propositions are true, each with the morning it must be said by."""
    world: ProjectWorld = timeline.worlds[0]
    struck = {
        (change.operator, at // (WEEK * DAY_MS) * WEEK)
        for at, changes in zip(timeline.starts, timeline.changes, strict=True)
        for change in changes
    }
    return tuple(
        PropositionTruth(
            f"{kind}/{first}",
            kind,
            any((operator, first) in struck for operator in _ASKED[kind][1]),
            first * DAY_MS,
        )
        for kind, first in _weeks(world)
    )


def belief_events(
    world: ProjectWorld, beliefs: Mapping[str, float], *, step: int, now_ms: int
) -> tuple[Belief, ...] | str:
    """Return the events of a forecast, or what is wrong with it.

    Args:
        world: Its propositions.
        beliefs: Probability by id.
        step: Number of the action.
        now_ms: Simulated milliseconds since reset.
    Returns: A belief each, or text.
    """
    known = proposition_texts(world)
    other = sorted(beliefs.keys() - known.keys())
    if other:
        return f"`beliefs` may hold {', '.join(known)}, got {other[0]!r}."
    return tuple(
        Belief(
            step=step,
            at_ms=now_ms,
            proposition=name,
            kind=name.partition("/")[0],
            p=fixed(p),
        )
        for name, p in sorted(beliefs.items())
    )

"""Scores of a project: acceptance by day, service, releases, regressions, delivery.

Source: docs/projforge.md#scores
"""

import math
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from owa_bench.envs.projforge.world import DAY_MS, Feature, ProductionIncident, ProjectWorld
from owa_bench.interfaces import PropositionTruth
from owa_bench.records.events import Belief, ProjectDay, fixed
from owa_bench.records.instance import Timeline
from owa_bench.shells.standard_tools import tool_of

THETA = 0.8
WEEK = 7
POSTMORTEM_DAYS = 3  # within which an incident has its postmortem
_ACCEPTANCE, _SERVICE, _RELEASES = 0.7, 0.15, 0.15
_COLLATERAL = 0.02  # k of exp(-k regressions)
_DELIVERED, _LAST_DAYS = 0.8, 10  # acceptance asked of the last days
_UNDELIVERED = THETA - 0.01  # most that a project which is not delivered may reach


class ProjectScores(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of the days that are over.

    `acceptance` and `service` have a share a day, NaN where nothing was due; `releases` a share a
    week; `postmortems` have the score of each that was filed, by incident; `green` is whether the
    last run of integration on the last day was; `accepted` are the features of the last day, `ever`
    those of any.
    """

    acceptance: tuple[float, ...] = ()
    service: tuple[float, ...] = ()
    releases: tuple[float, ...] = ()
    postmortems: Mapping[str, float] = {}
    accepted: frozenset[str] = frozenset()
    ever: frozenset[str] = frozenset()
    regressions: int = 0
    green: bool = False


def day_closed(
    scores: ProjectScores,
    world: ProjectWorld,
    day: int,
    *,
    accepted: frozenset[str],
    served: frozenset[str],
    green: bool,
) -> ProjectScores:
    """Return the scores after a day.

    Args:
        scores: Those before.
        world: The world of that day.
        day: Its number, from 0.
        accepted: The features that the main branch answers rightly.
        served: Those that the deployed product answers rightly.
        green: Whether integration is.
    """
    due = [feature for feature in world.features if feature.due <= day]
    broken = scores.accepted - accepted
    return replace(
        scores,
        acceptance=(*scores.acceptance, _share(due, accepted)),
        service=(*scores.service, _share(due, served)),
        accepted=accepted,
        ever=scores.ever | accepted,
        regressions=scores.regressions + len(broken),
        green=green,
    )


def day_event(
    world: ProjectWorld, before: ProjectScores, after: ProjectScores, *, step: int, minutes: int
) -> ProjectDay:
    """Return the record of the day that is over.

    Args:
        world: The world of the day.
        before: The scores before the day was closed.
        after: Those of the evening.
        step: Number of the action that ended the day.
        minutes: Of integration that were used.
    """
    day, week = len(before.acceptance), len(before.acceptance) // WEEK
    score = after.releases[week] if len(after.releases) > week else 0.0
    due = [i.name for i in world.incidents if day - i.day == POSTMORTEM_DAYS - 1]
    return ProjectDay(
        step=step,
        day=day,
        acceptance=_known_share(after.acceptance[-1]),
        service=_known_share(after.service[-1]),
        held=len(before.accepted),
        regressed=after.regressions - before.regressions,
        minutes=minutes,
        green=after.green,
        release=fixed(score) if (day + 1) % WEEK == 0 else None,
        stopped=any(i.day == day for i in world.incidents),
        postmortem=after.postmortems.get(due[0], 0.0) if due else None,
    )


def _known_share(share: float) -> float | None:
    return None if math.isnan(share) else fixed(share)


def _share(due: Iterable[Feature], right: frozenset[str]) -> float:
    """Return the weight share of features that are right; NaN where none is due."""
    weights = {feature.name: feature.weight for feature in due}
    if not weights:
        return math.nan
    return sum(w for name, w in weights.items() if name in right) / sum(weights.values())


def release_score(stated: frozenset[str], new: frozenset[str]) -> float:
    """Return how well a release's changelog fits the features that are new in it.

    Args:
        stated: Features that the changelog names.
        new: Features accepted now that no release before held.
    Returns: Their Jaccard index, 0 where both are empty.
    """
    return len(stated & new) / len(stated | new) if stated | new else 0.0


def open_incident(
    world: ProjectWorld, scores: ProjectScores, day: int
) -> ProductionIncident | None:
    """Return the incident that a postmortem may still be filed for, None for none.

    Args:
        world: Its incidents.
        scores: What was filed.
        day: The day.
    Returns: The last one that came within the days a postmortem has.
    """
    for incident in reversed(world.incidents):
        if 0 <= day - incident.day < POSTMORTEM_DAYS:
            return None if incident.name in scores.postmortems else incident
    return None


def filed(scores: ProjectScores, incident: ProductionIncident, cause: str) -> ProjectScores:
    """Return the scores after a postmortem: 1 if it names the cause, and no second try.

    Args:
        scores: Those before.
        incident: What it is about.
        cause: What it names.
    """
    right = float(cause == incident.cause)
    return replace(scores, postmortems={**scores.postmortems, incident.name: right})


def quality(world: ProjectWorld, scores: ProjectScores) -> float:
    """Return q_state.

    Formula: exp(-.02 regressions) (.7 A + .15 S + .15 H); A and S are means over days
        with anything due, later ones weighted by day + 1, days to come count 0; H is
        the mean over weeks' releases and incidents' postmortems. A project that is not
        delivered stays below theta.
    Args:
        world: The project's days and features.
        scores: Of the days that are over.
    Returns: A number in [0, 1].
    """
    first = min(feature.due for feature in world.features)
    weights = {day: day + 1 for day in range(first, world.days)}
    total = sum(weights.values())
    daily = 0.0
    for shares, part in ((scores.acceptance, _ACCEPTANCE), (scores.service, _SERVICE)):
        weighted = [weights[d] * s for d, s in enumerate(shares) if d in weights]
        daily += part * math.fsum(weighted) / total
    weeks = max(world.days // WEEK, 1)
    notes = (*scores.releases[:weeks], *scores.postmortems.values())
    daily += _RELEASES * math.fsum(notes) / (weeks + len(world.incidents))
    value = min(daily * math.exp(-_COLLATERAL * scores.regressions), 1.0)
    return value if delivered(world, scores) else min(value, _UNDELIVERED)


def delivered(world: ProjectWorld, scores: ProjectScores) -> bool:
    """Return whether a project is delivered.

    Args:
        world: The project's days.
        scores: Of the days that are over.
    Returns: Whether the mean acceptance of the last ten days is .8 or more and integration was
        green on the last day.
    """
    last = scores.acceptance[-_LAST_DAYS:]
    known = [share for share in last if not math.isnan(share)]
    full = len(scores.acceptance) == world.days and bool(known)
    return full and scores.green and math.fsum(known) / len(known) >= _DELIVERED


_ASKED = {
    "yank": (
        "a version of a library is withdrawn for a post release",
        ("project/yanked", "project/transitive_conflict"),
    ),
    "quota": ("the minutes of integration are cut", ("project/quota_cut",)),
    "image": ("the image of the pipeline is withdrawn", ("project/ci_image",)),
}
KINDS = tuple(_ASKED)
_PROBABILITY = {"type": "number", "minimum": 0, "maximum": 1}
FORECAST = tool_of(
    "forecast",
    "State probabilities of propositions on weeks that have not begun.",
    beliefs={"type": "object", "additionalProperties": _PROBABILITY},
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
    applied = {
        (change.operator, at // (WEEK * DAY_MS) * WEEK)
        for at, changes in zip(timeline.starts, timeline.changes, strict=True)
        for change in changes
    }
    return tuple(
        PropositionTruth(
            f"{kind}/{first}",
            kind,
            any((operator, first) in applied for operator in _ASKED[kind][1]),
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
        Belief(step=step, at_ms=now_ms, proposition=name, kind=name.partition("/")[0], p=fixed(p))
        for name, p in sorted(beliefs.items())
    )

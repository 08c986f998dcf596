"""Ratings of a run's open texts: its items, blind and shuffled, and the agreement.

Two raters, each with a file of their own; neither is shown the agent, the other's scores or any
figure of the run. Ratings enter no axis.
"""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from owa_bench.canonical import sha256
from owa_bench.errors import TraceError, UsageError
from owa_bench.records.events import Action, Observation
from owa_bench.records.packs import Transcripts
from owa_bench.records.people import RaterScores, Rubric, read_ratings
from owa_bench.records.score import CellTable
from owa_bench.records.trace import Trace
from owa_bench.reports.read.bundle import Bundle
from owa_bench.scoring.statistics.agreement import rater_agreement
from owa_bench.scoring.statistics.bootstrap import figure

_RATERS = 2


class RatedItem(NamedTuple):
    """A text to rate; the rater is shown `task` and `text` alone."""

    attempt: str
    task: str
    text: str


def rated_items(bundle: Bundle, rubric: Rubric, rater: str) -> list[RatedItem]:
    """Return the texts that a rubric asks for, in an order of the rater's own.

    Args:
        bundle: The run.
        rubric: The rubric.
        rater: Who rates; another rater has another order.
    Raises: UsageError: No episode holds such a text.
    """
    transcripts = Transcripts(bundle.layout)
    items = [
        RatedItem(trace.leaf.attempt_id, _task(trace, transcripts), text)
        for trace in bundle.traces()
        if (text := _text(trace, rubric))
    ]
    if not items:
        raise UsageError(
            f"No episode of {bundle.layout.root} holds a text in `{rubric.tool}`'s "
            f"`{rubric.argument}`: name another tool or argument in the rubric."
        )
    return sorted(items, key=lambda item: sha256(f"{rater}|{item.attempt}".encode()))


def _text(trace: Trace, rubric: Rubric) -> str:
    """Return the text of the last call that the rubric names, "" without one."""
    for action in reversed(list(trace.of(Action))):
        try:
            call = json.loads(action.action)
        except ValueError:
            continue
        if isinstance(call, dict) and call.get("tool") == rubric.tool:
            arguments = call.get("arguments")
            answer = arguments.get(rubric.argument) if isinstance(arguments, dict) else ""
            return answer.strip() if isinstance(answer, str) else ""
    return ""


def _task(trace: Trace, transcripts: Transcripts) -> str:
    """Return what the episode began with, "" without transcripts."""
    try:
        first = next(iter(trace.of(Observation)))
        return transcripts.read(first.blob).decode()
    except (StopIteration, TraceError):
        return ""


def ratings_of(bundle: Bundle) -> tuple[RaterScores, ...]:
    """Return the ratings in a run directory.

    Raises: UsageError: A file is changed, of another run or rubric, or there are three.
    """
    folder = bundle.layout.ratings
    paths = sorted(folder.glob("*.dsse.json")) if folder.is_dir() else []
    entries = tuple(read_ratings(path.read_bytes(), path.name) for path in paths)
    attempts = {leaf.attempt_id for leaf in bundle.counting_leaves if leaf is not None}
    for path, ratings in zip(paths, entries, strict=True):
        if ratings.evidence_root != bundle.evidence_root:
            raise UsageError(f"{path} rates another run, or this one before it changed.")
        if path.name != f"{ratings.rater}.dsse.json":
            raise UsageError(f"{path} must be named after its rater, {ratings.rater}.")
        if ratings.rubric != entries[0].rubric:
            raise UsageError(f"{path} has another rubric than {paths[0]}.")
        scale = {int(score) for score in ratings.rubric.scores}
        if not set(ratings.scores.values()) <= scale:
            raise UsageError(f"{path} holds scores that its rubric does not have.")
        if not set(ratings.scores) <= attempts:
            raise UsageError(f"{path} rates attempts that do not count.")
        if set(ratings.scores) != set(entries[0].scores):
            raise UsageError(f"{path} rates other items than {paths[0]}.")
    if len(entries) > _RATERS:
        raise UsageError(f"{folder} must hold two raters at most, got {len(entries)}.")
    return entries


def rating_tables(bundle: Bundle) -> tuple[CellTable, ...]:
    """Return agreement, disagreements and, where raters agree, scores by agent."""
    ratings = ratings_of(bundle)
    least = bundle.protocol.norms.rater_alpha_min
    if not ratings:
        return ()
    rubric = ratings[0].rubric
    if len(ratings) < _RATERS or least is None:
        why = "one rater alone" if least else "the protocol sets no rater_alpha_min"
        note = f"{rubric.name}: {why}, so no agreement and no score"
        return (CellTable("ratings", ("rater",), ((ratings[0].rater,),), note),)
    items = sorted(ratings[0].scores)
    one, two = (np.array([r.scores[i] for i in items], dtype=float) for r in ratings)
    level = bundle.protocol.statistics.level
    agreed = rater_agreement(one, two, rubric.metric, level)
    enough = agreed.alpha[0] is not None and agreed.alpha[0] >= least
    words = "reached" if enough else "not reached: the ratings are shown, not scored"
    names = tuple(r.rater for r in ratings)
    tables = [
        CellTable(
            "agreement of raters",
            ("coefficient", "value", "low", "high", "items"),
            (
                ("Cohen's kappa", *agreed.kappa, agreed.items),
                ("Krippendorff's alpha", *agreed.alpha, agreed.items),
            ),
            f"{rubric.name}: alpha >= {least:g} {words}",
        ),
        CellTable(
            "disagreements of raters",
            ("attempt", *names),
            tuple(
                (item, *(r.scores[item] for r in ratings))
                for item in items
                if len({r.scores[item] for r in ratings}) > 1
            ),
            "Ratings enter no axis, index, gate or level.",
        ),
    ]
    if enough:
        tables.append(_by_arm(bundle, ratings))
    return tuple(tables)


def _by_arm(bundle: Bundle, ratings: Sequence[RaterScores]) -> CellTable:
    """Return the mean score of each agent."""

    def rows() -> Iterator[tuple[str, int, float | None]]:
        for arm in bundle.plan.arms:
            own = [
                r.scores[item]
                for r in ratings
                for item in r.scores
                if bundle.plan.entries[int(item.partition(".")[0])].arm == arm.name
            ]
            if own:
                yield arm.name, len(own) // len(ratings), figure(float(np.mean(own)))

    columns = ("agent", "items", "mean score")
    return CellTable("scores by raters", columns, tuple(rows()), ratings[0].rubric.name)

"""The answer to "how much can be delegated to it": success alone, under drift, and with help.

Of the episodes that axes read: holdout and checkpoints, no practice, set, control, honeypot or
calendar of some drift alone. Intervals are over tasks. Source: docs/read-a-run.md#the-answer.
"""

import math
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from owa_bench.records.events import Drift, EpisodeStart, Intervention
from owa_bench.records.instance import ANNOUNCEMENTS
from owa_bench.records.score import AgentVerdict, FrontierScore, Interval
from owa_bench.records.trace import Trace
from owa_bench.reports.read.success import PooledTerms, pooled_terms, success_over_tasks
from owa_bench.scoring.statistics.task_means import task_of

_TOLD = (0.5, 1.0)  # magnitudes that the sentence names where they were played
_NAMES_MODEL = re.compile(r"[:,]model=")
NO_DRIFT = "no drift"
# How a change tells itself, by its class in effect (docs/suites.md#drift).
CLASS_WORDS = {
    NO_DRIFT: "nothing changed",
    "D0": "announced, the old way still works",
    "D1": "documented, the old way breaks",
    "D2": "not documented, an error shows it",
    "D3": "silent",
}


class SuccessCount(msgspec.Struct, frozen=True):
    """Successes among some episodes of one agent, with the interval over their tasks."""

    successes: int
    episodes: int
    tasks: int
    interval: Interval

    @property
    def share(self) -> float:
        """Successes per episode, in [0, 1]."""
        return self.successes / self.episodes

    @property
    def brief(self) -> str:
        """Such as "5 of 12"."""
        return f"{self.successes} of {self.episodes}"

    @property
    def words(self) -> str:
        """Such as "5 of 12 tasks", or "9 of 24 episodes of 12 tasks"."""
        if self.episodes == self.tasks:
            return f"{self.successes} of {_number(self.tasks, 'task')}"
        tasks = _number(self.tasks, "task")
        return f"{self.successes} of {_number(self.episodes, 'episode')} of {tasks}"


class MagnitudeSuccess(msgspec.Struct, frozen=True):
    """Success at one drift magnitude, alone and with help; None where nothing was played."""

    delta: float
    alone: SuccessCount | None
    helped: SuccessCount | None


class Delegation(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent does alone and with help.

    Attributes:
        still: Alone, without drift.
        drifted: Alone, under any drift.
        helped: With a supervisor to ask, at all magnitudes.
        budgets: The same by what it may ask for, from the least; empty if there are many.
        asked: Episodes with a supervisor in which help was given.
        magnitudes: By drift magnitude, rising.
        classes: Alone, by the hardest class of change that struck.
        bodies: Alone and without drift, of embodied suites, by where the body is. They stand in
            none of the others.
    """

    still: SuccessCount | None
    drifted: SuccessCount | None
    helped: SuccessCount | None
    asked: int
    budgets: tuple[tuple[str, SuccessCount], ...] = ()
    magnitudes: tuple[MagnitudeSuccess, ...] = ()
    classes: tuple[tuple[str, SuccessCount], ...] = ()
    bodies: tuple[tuple[str, SuccessCount], ...] = ()

    @property
    def sentence(self) -> str:
        """The answer in words, "" where nothing tells it."""
        found = [(when, one) for when, one in self._alone() if one is not None]
        parts = [
            f"{one.words if place == 0 else one.brief} {when}"
            for place, (when, one) in enumerate(found)
        ]
        said = f"Alone it does {_list_words(parts)}." if parts else ""
        if self.helped is not None:
            took = f"it took help in {self.asked} of them" if self.asked else "it took none"
            said += f" {self._with_help(self.helped)}; {took}."
        if self.bodies:
            sides = [f"{one.words} {where}" for where, one in self.bodies]
            said += f" With an arm it does {_list_words(sides)}."
        return said.strip()

    def _with_help(self, helped: SuccessCount) -> str:
        """Return what it does with help, by what it may ask for."""
        if not self.budgets:
            return f"With help to ask for it does {helped.words}"
        (first, one), *others = self.budgets
        more = "".join(f" and {other.brief} with {words}" for words, other in others)
        return f"With {first} it does {one.words}{more}"

    def _alone(self) -> list[tuple[str, SuccessCount | None]]:
        """Return what it does alone without drift and at the magnitudes that are told."""
        by_delta = {one.delta: one.alone for one in self.magnitudes if one.delta}
        told = [delta for delta in by_delta if delta in _TOLD] or [*by_delta][-1:]
        under = [(f"at drift {delta:g}", by_delta[delta]) for delta in told]
        return [("when nothing changes", self.still), *under]


BODY_WORDS = {
    "sim": "in simulation",
    "surrogate": "on a surrogate device (not hardware)",
    "real": "on a robot",
}


class _Episode(NamedTuple):
    terms: PooledTerms
    success: bool
    asked: bool
    hardest: str


def frontier_words(frontier: FrontierScore) -> str:
    """Return in words how much of the autonomy range may be delegated, "" where it is unknown."""
    if frontier.deleg is None:
        return ""
    if not frontier.deleg:
        return f"However much help it gets, its success does not reach {frontier.target:g}."
    low = frontier.deleg_cert
    bound = "" if low is None else f" (lower bound {low:.2f})"
    return (
        f"Its success stays at {frontier.target:g} or more over {frontier.deleg:.2f} of the way "
        f"from full help to none{bound}."
    )


def next_command(verdict: AgentVerdict) -> str:
    """Return the command that plays an agent until its level is decided.

    An agent whose option names a model needs its address again: no plan holds it.
    """
    address = " --model-url URL" if _NAMES_MODEL.search(verdict.agent) else ""
    return f"owa-bench place {shlex.quote(verdict.agent)}{address} --out runs/placed"


def delegations(traces: Iterable[Trace]) -> dict[str, Delegation]:
    """Return the answer of each arm that has one.

    Args:
        traces: Counted episodes of a run.
    """
    episodes = DelegationEpisodes()
    for trace in traces:
        episodes.add(trace)
    return episodes.answers()


class DelegationEpisodes:
    """Counted episodes as the answer reads them, added one by one."""

    def __init__(self) -> None:
        self._by_arm: dict[str, list[_Episode]] = {}

    def add(self, trace: Trace) -> None:
        """Add a counted episode, if the answer reads it."""
        if _is_read(trace.start):
            self._by_arm.setdefault(trace.start.arm, []).append(_episode(trace))

    def answers(self) -> dict[str, Delegation]:
        """Return the answer of each arm that has one."""
        return {arm: _delegation(seen) for arm, seen in self._by_arm.items()}


def tells_alone(start: EpisodeStart) -> bool:
    """Return whether an episode tells what an agent does alone."""
    return _is_read(start) and _is_alone(start)


def _is_alone(start: EpisodeStart | PooledTerms) -> bool:
    return start.interventions == 0 and not start.priced


def _is_read(start: EpisodeStart) -> bool:
    outside = start.condition or start.control or start.honeypot or start.calendar
    return start.phase != "practice" and not outside and start.delta is not None


def _episode(trace: Trace) -> _Episode:
    struck = {event.effective for event in trace.of(Drift)}
    hardest = max(struck, key=ANNOUNCEMENTS.index) if struck else NO_DRIFT
    asked = any(event.kind != "refused" for event in trace.of(Intervention))
    return _Episode(pooled_terms(trace.start), trace.end.success, asked, hardest)


def _delegation(seen: Sequence[_Episode]) -> Delegation:
    embodied = [one for one in seen if one.terms.unit is not None and not one.terms.delta]
    seen = [one for one in seen if one.terms.unit is None]
    alone = [one for one in seen if _is_alone(one.terms)]
    by_side = (
        (words, _count([one for one in embodied if one.terms.side == side]))
        for side, words in BODY_WORDS.items()
    )
    helped = [one for one in seen if not _is_alone(one.terms)]
    deltas = sorted({one.terms.delta or 0.0 for one in seen})
    by_class = ((name, _count(_of_class(alone, name))) for name in (NO_DRIFT, *ANNOUNCEMENTS))
    return Delegation(
        still=_count(_at(alone, 0.0)),
        drifted=_count([one for one in alone if one.terms.delta]),
        helped=_count(helped),
        asked=sum(one.asked for one in helped),
        budgets=_by_budget(helped),
        magnitudes=tuple(
            MagnitudeSuccess(delta, _count(_at(alone, delta)), _count(_at(helped, delta)))
            for delta in deltas
        ),
        classes=tuple((name, found) for name, found in by_class if found is not None),
        bodies=tuple((words, found) for words, found in by_side if found is not None),
    )


_MOST_BUDGETS = 2  # that a sentence names


def _by_budget(helped: Sequence[_Episode]) -> tuple[tuple[str, SuccessCount], ...]:
    """Return success by budget of help in rising order; empty if there are many budgets.

    The protocol's share of a world's horizon is one budget, whatever number it comes to.
    """
    by_budget: dict[float | None, list[_Episode]] = {}
    for one in helped:
        key = None if one.terms.priced else _most([one])
        by_budget.setdefault(key, []).append(one)
    if len(by_budget) > _MOST_BUDGETS:
        return ()
    rows = sorted((_most(seen), _budget_words(seen), _count(seen)) for seen in by_budget.values())
    return tuple((words, count) for _, words, count in rows if count is not None)


def _most(seen: Sequence[_Episode]) -> float:
    return max(_allowed(seen))


def _allowed(seen: Sequence[_Episode]) -> list[float]:
    limits = (one.terms.interventions for one in seen)
    return [math.inf if limit is None else limit for limit in limits]


def _budget_words(seen: Sequence[_Episode]) -> str:
    """Return the help that episodes of one budget allow, in words."""
    least, most = min(_allowed(seen)), max(_allowed(seen))
    if most == math.inf:
        return "help without a limit"
    if least == most:
        return f"at most {_number(int(most), 'intervention')}"
    return f"at most {least:g} to {most:g} interventions, by task,"


def _at(seen: Iterable[_Episode], delta: float) -> list[_Episode]:
    return [one for one in seen if one.terms.delta == delta]


def _of_class(seen: Iterable[_Episode], name: str) -> list[_Episode]:
    return [one for one in seen if one.hardest == name]


def _count(seen: Sequence[_Episode]) -> SuccessCount | None:
    return count_success([one.terms.pair for one in seen], [one.success for one in seen])


def count_success(pairs: Sequence[str], won: Sequence[bool]) -> SuccessCount | None:
    """Return the successes among episodes of one agent, None of no episode.

    Args:
        pairs: The plan's name of the world of each episode.
        won: Whether each succeeded.
    """
    if not won:
        return None
    tasks = len({task_of(pair) for pair in pairs})
    return SuccessCount(sum(won), len(won), tasks, success_over_tasks(pairs, won))


def _list_words(parts: Sequence[str]) -> str:
    return " and ".join(", ".join(parts).rsplit(", ", 1))


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"

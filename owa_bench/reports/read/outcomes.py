"""Outcomes of a run per agent: how planned episodes ended, and the first error of each.

Every planned episode is counted once: by the attempt that counts, else by its last attempt that
failed through harness or provider, else as not played. An episode that the run's budget ended
before the agent's first step was not played either.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from owa_bench.errors import ProviderFailure
from owa_bench.records.events import EpisodeEnd, Event, Intervention, ModelCall, PlainQuestion
from owa_bench.records.score import Interval
from owa_bench.records.trace import Trace
from owa_bench.reports.read.bundle import Bundle
from owa_bench.reports.read.delegation import Delegation, DelegationEpisodes
from owa_bench.reports.read.success import (
    PooledTerms,
    pooled_terms,
    pooled_words,
    success_over_tasks,
)

BROKEN_SHARE = 0.05  # of planned episodes: above it the page says so first [D]
_NAMES = {
    "finished": "finished",
    "infeasible": "declared infeasible",
    "agent_raised": "crashed",
    "agent_timeout": "timed out",
    "infrastructure": "failed through the harness",
}
SAME_MINUTE_S = 60.0  # from a failure to the plain question that confirms it [D]
PROVIDER = "provider refused or unreachable"
MISSING = "missing: the model's provider failed"
STOPPED = "missing: not played after its provider failed"
NOT_PLAYED = "not played"
NO_BUDGET = "not played: budget"
_REFUSALS = frozenset({401, 402, 403, 404})  # of a key, a quota or a model's name
_OWN_ACT = frozenset({"finished", "declared infeasible"})
_LOST = frozenset({MISSING, STOPPED})  # through the provider: never a failure of its own
_BROKEN = frozenset({*set(_NAMES.values()) - _OWN_ACT, PROVIDER, NOT_PLAYED, NO_BUDGET, *_LOST})


class OutcomeCount(msgspec.Struct, frozen=True):
    """Planned episodes of an agent that ended in one way; `first` is the attempt."""

    kind: str
    episodes: int
    first: str = ""
    reason: str = ""


class AnsweringModel(msgspec.Struct, frozen=True):
    """A model that an agent asked for, and the name that the replies gave.

    `truncated` counts the calls whose server counted far fewer tokens than it was sent.
    """

    asked: str
    answered: str
    calls: int
    truncated: int = 0


class LostEpisodes(msgspec.Struct, frozen=True):
    """Planned episodes that a model's provider failed, and its words."""

    episodes: int
    reason: str


class ProviderFailures(msgspec.Struct, frozen=True):
    """Attempts that were laid to a model's provider, played again or not.

    `outages` are those after which the provider left a plain question unanswered too, within a
    minute; `unconfirmed` all others: a server that fails when an episode goes badly would be one of
    these.
    """

    attempts: int
    outages: int

    @property
    def unconfirmed(self) -> int:
        """Attempts whose failure no plain question confirmed."""
        return self.attempts - self.outages


class ArmOutcomes(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes of one arm; `success` is a share of its counted episodes.

    Its interval is over tasks, and `pools` says which episodes it is a share of. `cost_micro_usd`
    is the cost of a success by agent and human stream, None where there is no success or no known
    cost. `helped` counts the counted episodes in which the supervisor helped or a person stepped
    in. `again` counts attempts of its episodes that failed through harness or provider. `commonest`
    is the most frequent kind and reason among the broken, with its number and its first attempt.
    `lost` are the planned episodes that a model's provider failed, `answering` the models of the
    counted ones, `provider` the attempts laid to a provider, `delegation` what it does alone and
    with help, of a placement none; none stands in reports from before they were read.
    """

    arm: str
    planned: int
    counted: int
    successes: int
    success: Interval
    cost_micro_usd: int | None
    kinds: tuple[OutcomeCount, ...]
    helped: int = 0
    again: int = 0
    commonest: OutcomeCount | None = None
    lost: LostEpisodes | msgspec.UnsetType = msgspec.UNSET
    answering: tuple[AnsweringModel, ...] | msgspec.UnsetType = msgspec.UNSET
    pools: str = ""
    provider: ProviderFailures | msgspec.UnsetType = msgspec.UNSET
    delegation: Delegation | msgspec.UnsetType = msgspec.UNSET

    @property
    def answer(self) -> Delegation | None:
        """What it does alone and with help, None where no episode tells it."""
        return None if self.delegation is msgspec.UNSET else self.delegation

    @property
    def provider_failures(self) -> ProviderFailures:
        """The attempts that were laid to a model's provider."""
        if self.provider is msgspec.UNSET:
            return ProviderFailures(0, 0)
        return self.provider

    @property
    def missing(self) -> int:
        """Planned episodes that do not count because a provider failed."""
        return 0 if self.lost is msgspec.UNSET else self.lost.episodes

    @property
    def missing_reason(self) -> str:
        """The words of that provider."""
        return "" if self.lost is msgspec.UNSET else self.lost.reason

    @property
    def models(self) -> tuple[AnsweringModel, ...]:
        """The models that answered in the counted episodes."""
        return () if self.answering is msgspec.UNSET else self.answering

    @property
    def own(self) -> int:
        """Planned episodes that the agent ended, or that ran out in play."""
        return self.planned - sum(kind.episodes for kind in self.broken)

    @property
    def broken(self) -> tuple[OutcomeCount, ...]:
        """The kinds in which the episode did not end by the agent's own act."""
        return tuple(kind for kind in self.kinds if kind.kind in _BROKEN)

    @property
    def broken_share(self) -> float:
        """Their share of the planned episodes, in [0, 1]."""
        return sum(kind.episodes for kind in self.broken) / max(self.planned, 1)

    @property
    def alarming(self) -> bool:
        """Whether that is more than the page lets pass without a banner."""
        return self.broken_share > BROKEN_SHARE


class _CountedEpisode(NamedTuple):
    terms: PooledTerms
    success: bool
    helped: bool


class _Ending(NamedTuple):
    attempt: str
    kind: str
    reason: str


class OutcomeEpisodes:
    """Counted episodes as the outcomes read them, added one by one in plan order."""

    def __init__(self, *, placement: bool) -> None:
        self.endings: dict[int, _Ending] = {}
        self.counted: dict[int, _CountedEpisode] = {}
        self._seen: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        self._short: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        self._delegation = None if placement else DelegationEpisodes()

    def add(self, trace: Trace) -> None:
        """Add a counted episode."""
        index, start = trace.leaf.index, trace.start
        self.endings[index] = _ending(trace)
        self.counted[index] = _CountedEpisode(
            pooled_terms(start), trace.end.success, _was_helped(trace)
        )
        for call in trace.of(ModelCall):
            if call.source == "harness" and call.served:
                names = (call.model, call.served)
                self._seen[start.arm][names] += 1
                self._short[start.arm][names] += call.truncated
        if self._delegation is not None:
            self._delegation.add(trace)

    def models(self) -> dict[str, tuple[AnsweringModel, ...]]:
        """Return the models that the gateway saw answer, by arm."""
        return {
            arm: tuple(
                AnsweringModel(*names, count, self._short[arm][names])
                for names, count in sorted(calls.items())
            )
            for arm, calls in self._seen.items()
        }

    def delegations(self) -> dict[str, Delegation]:
        """Return what each arm does alone and with help; of a placement nothing."""
        return {} if self._delegation is None else self._delegation.answers()


def arm_outcomes(
    bundle: Bundle, costs: dict[str, int | None], episodes: OutcomeEpisodes | None = None
) -> tuple[ArmOutcomes, ...]:
    """Return the outcomes of every arm.

    Args:
        bundle: The run directory.
        costs: Micro-USD of the agent and human streams by arm, None where unknown.
        episodes: The counted episodes, where they were read already.
    Returns: One record an arm, in the plan's order.
    """
    if episodes is None:
        episodes = OutcomeEpisodes(placement=bundle.plan.placement is not None)
        for trace in bundle.traces():
            episodes.add(trace)
    failed: dict[int, list[_Ending]] = defaultdict(list)
    laid: dict[int, list[bool]] = defaultdict(list)  # to a provider: an outage or not
    for attempt in bundle.incomplete():
        if attempt.status == "provider":
            laid[attempt.leaf.index].append(_is_outage(attempt.events))
        last = attempt.events[-1] if attempt.events else None
        if isinstance(last, EpisodeEnd) and last.outcome == "infrastructure":
            by_provider = last.reason.startswith(ProviderFailure.__name__)
            kind, reason = _NAMES["infrastructure"], last.reason
            if attempt.status == "provider":
                kind = MISSING
                reason = reason.removeprefix(f"{ProviderFailure.__name__}: ")
            elif by_provider:  # in runs from before such entries were missing
                kind = PROVIDER
            ending = _Ending(attempt.attempt_id, kind, reason)
            failed[attempt.leaf.index].append(ending)
    counted = episodes.counted
    indices: dict[str, list[int]] = {arm.name: [] for arm in bundle.plan.arms}
    for entry in bundle.due:
        indices[entry.arm].append(entry.index)
    models, answers = episodes.models(), episodes.delegations()
    return tuple(
        _of_arm(
            arm,
            _endings_of(planned, episodes.endings, failed),
            models=models.get(arm, ()),
            counted=[counted[i] for i in planned if i in counted],
            cost=costs.get(arm),
            again=sum(len(failed.get(i, ())) for i in planned),
            provider=[outage for i in planned for outage in laid.get(i, ())],
            delegation=answers.get(arm),
        )
        for arm, planned in indices.items()
    )


def _is_outage(sequence: Sequence[Event]) -> bool:
    """Return whether a plain question, asked within a minute, was unanswered too."""
    asked = [event for event in sequence if isinstance(event, PlainQuestion)]
    return bool(asked) and all(not one.answered and one.late_s <= SAME_MINUTE_S for one in asked)


def _endings_of(
    planned: Sequence[int], endings: Mapping[int, _Ending], failed: Mapping[int, Sequence[_Ending]]
) -> list[_Ending]:
    """Return how each planned episode of an arm ended.

    What an arm did not play after its provider failed is missing through that too.
    """
    ended: list[_Ending | None] = [
        endings.get(i) or next(reversed(failed.get(i, ())), None) for i in planned
    ]
    lost = next((one for one in ended if one and one.kind == MISSING), None)
    nothing = _Ending("", STOPPED, lost.reason) if lost else _Ending("", NOT_PLAYED, "")
    return [one or nothing for one in ended]


def _ending(trace: Trace) -> _Ending:
    """Return how a counted episode ended, in words."""
    end, reason = trace.end, trace.end.reason
    if end.outcome == "truncated":
        meter = reason.removeprefix("budget:")
        kind = "out of steps" if meter == "steps" else f"out of budget ({meter})"
        if not end.steps and meter != "steps":
            kind = NO_BUDGET
            reason = f"the run's budget of {meter} was spent before its first step"
    else:
        kind = _NAMES[end.outcome]
        if cause := provider_failure(trace) if kind in _BROKEN else "":
            kind, reason = PROVIDER, f"{cause}. The agent: {reason}"
    return _Ending(trace.leaf.attempt_id, kind, sys.intern(reason) if kind in _BROKEN else "")


def _was_helped(trace: Trace) -> bool:
    return any(event.kind != "refused" for event in trace.of(Intervention))


def provider_failure(trace: Trace) -> str:
    """Return why the gateway saw the last call of a model fail, "" where it did not."""
    seen = [call for call in trace.of(ModelCall) if call.source == "harness"]
    if not seen:
        return ""
    refused = f"HTTP {seen[-1].status}" if seen[-1].status in _REFUSALS else ""
    cause = seen[-1].failure or refused
    return cause and f"the model's provider: {cause}"


def _of_arm(
    arm: str,
    endings: list[_Ending],
    *,
    counted: Sequence[_CountedEpisode],
    cost: int | None,
    again: int,
    models: tuple[AnsweringModel, ...] = (),
    provider: Sequence[bool] = (),
    delegation: Delegation | None = None,
) -> ArmOutcomes:
    """Return the record of an arm from the endings of its planned episodes."""
    broken = [ending for ending in endings if ending.kind in _BROKEN]
    lost = [ending for ending in endings if ending.kind in _LOST]
    commonest = None
    if broken:
        why = Counter((ending.kind, ending.reason) for ending in broken)
        (kind, reason), count = why.most_common(1)[0]
        first = next(e.attempt for e in broken if (e.kind, e.reason) == (kind, reason))
        commonest = OutcomeCount(kind, count, first, reason)
    by_kind: dict[str, list[_Ending]] = defaultdict(list)
    for ending in endings:
        by_kind[ending.kind].append(ending)
    kinds = tuple(
        OutcomeCount(kind, len(group), group[0].attempt, group[0].reason)
        for kind, group in sorted(by_kind.items(), key=lambda it: (-len(it[1]), it[0]))
    )
    terms, won = [one.terms for one in counted], [one.success for one in counted]
    successes = sum(won)
    return ArmOutcomes(
        arm=arm,
        planned=len(endings),
        counted=len(counted),
        successes=successes,
        success=success_over_tasks([one.pair for one in terms], won),
        pools=pooled_words(terms),
        cost_micro_usd=None if cost is None or not successes else cost // successes,
        kinds=kinds,
        helped=sum(one.helped for one in counted),
        again=again,
        commonest=commonest,
        lost=LostEpisodes(len(lost), lost[0].reason) if lost else msgspec.UNSET,
        answering=models or msgspec.UNSET,
        provider=ProviderFailures(len(provider), sum(provider)) if provider else msgspec.UNSET,
        delegation=delegation or msgspec.UNSET,
    )

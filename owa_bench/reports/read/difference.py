"""Difference of two episodes on one instance: the first step at which they differ, and the ends.

    from owa_bench.reports.read.difference import difference

    print(difference("runs/a", "agentic", "fixed").first)

Source: docs/read-a-run.md#what-went-wrong.
"""

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from owa_bench import bounded_json
from owa_bench.errors import FieldError, UsageError
from owa_bench.records import events
from owa_bench.records.price_card import PriceCard, episode_cost
from owa_bench.records.shards import is_attempt_id
from owa_bench.records.trace import Trace
from owa_bench.reports.read.bundle import Bundle, read
from owa_bench.reports.read.comparison import pair_key
from owa_bench.reports.read.failures import EpisodeReading, read_episode

_BEFORE, _BEHIND = 2, 5  # steps that are shown around the first that differs


class ComparedEpisode(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two episodes: what the harness saw, and micro-USD, None where unknown.

    `cost_micro_usd` is the agent's own, `supervisor_micro_usd` that of the simulated help.
    """

    label: str
    episode: EpisodeReading
    cost_micro_usd: int | None
    supervisor_micro_usd: int | None


class StepPair(msgspec.Struct, frozen=True, kw_only=True):
    """One step of both: actions, None behind an episode's end, and their errors.

    `same` is whether action and reply are equal.
    """

    step: int
    same: bool
    one: str | None
    other: str | None
    errors: tuple[str, str] = ("", "")


class EpisodeDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Two episodes side by side.

    `first` is the first step at which action or reply differ, None for none; `what` is "action" or
    "reply". `subgoals` are nodes with the step at which each episode reached them. `others` are
    more instances, as attempts of the first: of two arms those that one of them alone solved
    (`apart`), or else all that both played.
    """

    one: ComparedEpisode
    other: ComparedEpisode
    first: int | None
    what: str
    steps: tuple[StepPair, ...]
    subgoals: tuple[tuple[str, int | None, int | None], ...]
    others: tuple[str, ...] = ()
    apart: bool = False


class _Side:
    """The counted episodes that one of the two names stands for, by what makes a pair."""

    def __init__(self, run: Path, text: str, traces: list[Trace], prices: PriceCard) -> None:
        self.run, self.text, self.prices = run, text, prices
        self.traces = {pair_key(trace.start): trace for trace in reversed(traces)}


def difference(run: str | Path, one: str, other: str) -> EpisodeDifference:
    """Return the difference of two episodes that were played on the same instance.

    Args:
        run: A run directory.
        one: An attempt or an arm of it, or `RUN:ATTEMPT`, `RUN:ARM` of another run.
        other: The same. Of two arms it is the first instance that one of them alone solved, or
            else the first that both played.
    Raises:
        FieldError: There is no such attempt or arm.
        UsageError: They share no instance.
    """
    first, second = _side(Path(run), one), _side(Path(run), other)
    shared = [key for key in reversed(first.traces) if key in second.traces]
    if not shared:
        raise UsageError(
            f"{one} and {other} must share an instance under the same budget and limits, got none: "
            "play both in one run, or the second with `owa-bench run --worlds-of RUN`."
        )
    apart = [key for key in shared if _won(first.traces[key]) != _won(second.traces[key])]
    chosen = (apart or shared)[0]
    if first.traces[chosen].start.world != second.traces[chosen].start.world:
        raise UsageError(f"{one} and {other} must have played the same world, theirs differ.")
    others = tuple(first.traces[key].leaf.attempt_id for key in apart or shared if key != chosen)
    result = of_episodes(
        _compared(first, first.traces[chosen]),
        _compared(second, second.traces[chosen]),
        (first.traces[chosen], second.traces[chosen]),
    )
    return msgspec.structs.replace(result, others=others, apart=bool(apart))


def of_episodes(
    one: ComparedEpisode, other: ComparedEpisode, traces: tuple[Trace, Trace]
) -> EpisodeDifference:
    """Return two episodes side by side.

    Args:
        one: The first.
        other: The second.
        traces: Of both.
    """
    rows = [[*trace.of(events.Action)] for trace in traces]
    pairs = [_pair(a, b) for a, b in zip_longest(*rows)]
    place = next((i for i, pair in enumerate(pairs) if not pair.same), None)
    what = ""
    if place is not None:
        a, b = pairs[place].one, pairs[place].other
        what = "reply" if a is not None and b is not None and _call(a) == _call(b) else "action"
    near = 0 if place is None else place
    solved = [dict(each.episode.subgoals) for each in (one, other)]
    names = dict.fromkeys([*solved[0], *solved[1], *(one.episode.missing or ())])
    return EpisodeDifference(
        one=one,
        other=other,
        first=None if place is None else pairs[place].step,
        what=what,
        steps=tuple(pairs[max(near - _BEFORE, 0) : near + _BEHIND + 1]),
        subgoals=tuple((name, solved[0].get(name), solved[1].get(name)) for name in names),
    )


def _side(run: Path, text: str) -> _Side:
    """Return the episodes that a name stands for; FieldError for none."""
    folder, _, name = text.rpartition(":")
    place = Path(folder) if folder else run
    bundle = read(place)
    return _Side(place, text, _traces_of(bundle, name, text), bundle.prices)


def _traces_of(bundle: Bundle, name: str, text: str) -> list[Trace]:
    arms = [arm.name for arm in bundle.plan.arms]
    if name not in arms and not is_attempt_id(name):
        rule = f"must be an attempt such as 000012.0, or one of the arms {', '.join(arms)}"
        raise FieldError("--diff", text, f"{rule}, with `RUN:` before it for another run")
    traces = [t for t in bundle.traces() if name in (t.start.arm, t.leaf.attempt_id)]
    if not traces:
        raise FieldError("--diff", text, "must name an attempt that counts")
    return traces


def _compared(side: _Side, trace: Trace) -> ComparedEpisode:
    costs = episode_cost(side.prices, trace.events)
    return ComparedEpisode(
        label=f"{trace.start.arm} {trace.leaf.attempt_id} of {side.run}",
        episode=read_episode(trace),
        cost_micro_usd=costs["agent"],
        supervisor_micro_usd=costs["human"],
    )


def _won(trace: Trace) -> bool | None:
    return read_episode(trace).success


def _pair(one: events.Action | None, other: events.Action | None) -> StepPair:
    """Return one step of both; one of them may have ended."""
    actions: Sequence[events.Action] = [action for action in (one, other) if action]
    same = len(actions) == 2 and _exchange(actions[0]) == _exchange(actions[1])
    return StepPair(
        step=actions[0].step,
        same=same,
        one=one.action if one else None,
        other=other.action if other else None,
        errors=((one and one.error) or "", (other and other.error) or ""),
    )


def _exchange(action: events.Action) -> tuple[Any, ...]:
    return _call(action.action), action.role, action.observation, action.error


def _call(text: str) -> Any:
    """Return the call of an action, whatever its spaces and the order of its names."""
    try:
        return bounded_json.decode(text)
    except ValueError:
        return text

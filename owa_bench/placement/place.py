"""Placements: sign the pool, then announce, play and look until a gate or a budget stops it."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from owa_bench.canonical import canonical_json, seal
from owa_bench.errors import EntriesMissingError, NeverActedError, RunDirectoryError, UsageError
from owa_bench.placement.limits import PlacementLimits
from owa_bench.records.dated import APART, dates_of, time_of
from owa_bench.records.layout import LOOK_TYPE, RunLayout
from owa_bench.records.placement import Look, look_path, signed_looks
from owa_bench.records.price_card import episode_cost
from owa_bench.records.score import Judgement
from owa_bench.reports import statement
from owa_bench.reports.check.placement import replayed_looks
from owa_bench.reports.read import bundle as bundles
from owa_bench.runs.plan.dates import VerifierService
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import files, keys
from owa_bench.scoring.placement.dates import WAIT
from owa_bench.scoring.placement.rule import GO_ON, OPEN, LookState

_MICRO = 10**6


class PlacementNews(NamedTuple):
    """A look that was just made, for whoever watches.

    `stop` says why the placement stops here, "" where it goes on; `usd` is what it cost so far;
    `reached`: the level that was asked for, though the rule goes on above it.
    """

    state: LookState
    stop: str
    episodes: int
    usd: float
    reached: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the rule would go on with what was asked for."""
        return self.state.decision in (GO_ON, WAIT) and not self.reached


def place(
    request: Request,
    out: Path,
    options: RunOptions,
    limits: PlacementLimits,
    watch: Callable[[PlacementNews], None],
    *,
    resume: bool = False,
    verifier: VerifierService | None = None,
) -> Judgement:
    """Place an agent, and write the signed report of it.

    Args:
        request: The agent, and the battery of the pool.
        out: The run directory.
        options: How episodes are played.
        limits: Where it stops although the rule goes on.
        watch: Is told of each look.
        resume: Whether a placement that is there goes on.
        verifier: Challenges the plan, and bears out the dates of an agent that can change; None:
            nobody is asked.
    Returns: The judgement.
    Raises:
        UsageError: The request cannot be played, or is another than that of a placement there.
        RunDirectoryError: `out` holds something else.
        FailureLimitError: Too many attempts failed through harness or provider.
        EntriesMissingError: A provider failed episodes, so that a batch stands open.
        NeverActedError: The env took no act of the agent.
    """
    limits.check()
    layout = RunLayout(out)
    resume = resume and layout.plan.exists()
    if verifier is not None:
        request = msgspec.structs.replace(request, challenger=verifier.public())
        batch.play(request, out, options, resume=resume, plan_only=True)
        return go_on(out, options, limits, watch, verifier)
    batch.play(request, out, options, resume=resume, chosen=())
    return go_on(out, replace(options, preflight=None), limits, watch)


def go_on(
    out: Path,
    options: RunOptions,
    limits: PlacementLimits,
    watch: Callable[[PlacementNews], None],
    verifier: VerifierService | None = None,
) -> Judgement:
    """Go on with a placement as its plan and its looks say.

    Args:
        out: The run directory.
        options: How episodes are played.
        limits: Where it stops although the rule goes on.
        watch: Is told of each look.
        verifier: As of `place`.
    Returns: The judgement.
    Raises: RunDirectoryError: It holds no placement.
    """
    limits.check()
    layout = RunLayout(out)
    if bundles.read(out).plan.placement is None:
        raise RunDirectoryError(f"{out} is a run and no placement: `owa-bench run --resume`.")
    if verifier is not None:
        verifier.challenge(layout)
    begun, summary, last = time.monotonic(), None, -1
    while True:
        news = _look(layout, options, limits, (time.monotonic() - begun) / 3600, verifier)
        watch(news)
        if news.stop and not news.episodes:
            size = len(news.state.batch.indices)
            raise UsageError(f"{news.stop} is less than the first batch takes, {size} episodes.")
        if news.stop:
            try:
                _close(layout, verifier)
            finally:
                judgement = statement.write(out, keys.load(options.home, options.key))
            return judgement
        if summary is not None and news.state.number == last:
            raise _unplayed(summary)
        last = news.state.number
        summary = batch.resume(out, options, chosen=frozenset(news.state.batch.indices))
        options = replace(options, preflight=None)


def _unplayed(summary: batch.RunSummary) -> EntriesMissingError | NeverActedError:
    """Return why a batch could not be played whole."""
    for arm, words in summary.never_acted.items():
        return NeverActedError(
            f"{arm} was stopped: each of its first episodes ended before the env took an act of "
            f"it. The first: {words}"
        )
    reasons = [*summary.stopped.values()] or ["its model's provider failed them"]
    return EntriesMissingError(
        f"{summary.missing} episodes of the announced batch are missing: {reasons[0]}. None of "
        "them counts as a failure of the agent so far; the batch stands open"
    )


def _limit(limits: PlacementLimits, news: PlacementNews, hours: float) -> str:
    """Return which limit the next batch would go over, "" for none.

    What it takes is reckoned from the mean of the episodes so far.
    """
    size, played = len(news.state.batch.indices), news.episodes
    share = 1 + (size / played if played else 0.0)
    if limits.usd is not None and news.usd * share > limits.usd:
        return f"the budget of {limits.usd:g} USD"
    if limits.hours is not None and hours * share > limits.hours:
        return f"the budget of {limits.hours:g} hours"
    if limits.episodes is not None and played + size > limits.episodes:
        return f"the budget of {limits.episodes} episodes"
    return ""


def _cost(bundle: bundles.Bundle) -> float:
    """Return the agent's own cost in USD of all attempts; one without a price counts 0."""
    costs = (episode_cost(bundle.prices, a.events)["agent"] for a in bundle.attempts())
    return sum(cost or 0 for cost in costs) / _MICRO


def _close(layout: RunLayout, verifier: VerifierService | None) -> None:
    """Have the last look dated, so that what was played has an end, where dates count."""
    plan, look = read_plan(layout), sum(1 for _ in signed_looks(layout)) - 1
    terms, dates = plan.placement, dates_of(layout, plan, files.plan_digest(layout))
    dated = terms is not None and terms.dates > 1 and look > 0
    if verifier is not None and dated and look not in dates:
        verifier.date(layout)


def _wait(layout: RunLayout, look: int, verifier: VerifierService | None) -> str:
    """Return why the batch of a look cannot be played yet, "" where its date has come."""
    date = dates_of(layout, read_plan(layout), files.plan_digest(layout)).get(look)
    if verifier is not None and not (date and date.opened):
        date = verifier.date(layout)
    if date is None:
        return (
            "another date must come, and no verifier has seen this look: --verifier URL, or they "
            f"run `owa-bench challenge {layout.root} --date --key NAME`"
        )
    after = time_of(date.closed) + APART
    return "" if date.opened else f"another date must come, from {after:%Y-%m-%d %H:%M} UTC on"


def _look(
    layout: RunLayout,
    options: RunOptions,
    limits: PlacementLimits,
    hours: float,
    verifier: VerifierService | None,
) -> PlacementNews:
    """Make the look that is due, write it, and say whether to go on."""
    bundle = bundles.read(layout.root)
    states = replayed_looks(bundle)
    is_open = states[-1].decision == OPEN  # a batch that was begun is played whole
    state = states[-2] if is_open else states[-1]
    recorded = list(signed_looks(layout))
    if len(recorded) == state.number:
        look = Look(
            plan_digest=bundle.plan_digest,
            number=state.number,
            before=recorded[-1].digest if recorded else "",
            evidence_root=bundle.evidence_root,
            attempts=len(bundle.leaves),
            counts=dict(state.counts),
            gates=state.gates,
            decision=state.decision,
            batch=state.batch.indices,
            reads=state.batch.reads,
            stage=state.batch.stage,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            public_key=bundle.plan.public_key,
        )
        key = keys.load(options.home, options.key)
        path = look_path(layout, state.number)
        path.parent.mkdir(exist_ok=True)
        files.write_whole(path, seal(LOOK_TYPE, canonical_json(look), key))
    news = PlacementNews(state, "", len(bundle.leaves), _cost(bundle))
    if state.decision == WAIT and not is_open:
        if words := _wait(layout, state.number, verifier):
            return news._replace(stop=words)
    elif state.decision not in (GO_ON, WAIT):
        return news._replace(stop=state.decision)
    if state.passed(limits.level):
        return news._replace(stop=f"AAI-{limits.level}", reached=True)
    return news._replace(stop="" if is_open else _limit(limits, news, hours))

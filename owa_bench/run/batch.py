"""One call from what is asked for to a played run directory.

play       plan, sign, play
resume     go on with a run that was stopped
summary    what a run directory holds
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from owa_bench.errors import PlanError, UsageError
from owa_bench.records.events import EpisodeEnd
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import Plan, PlanEntry
from owa_bench.records.trace import Leaf, counted_leaves, evidence_root, replay_root
from owa_bench.run import agent_spec, directory, escrow, executors, jobs, keys, store
from owa_bench.run.budget import RunTally, totals
from owa_bench.run.days import DayKeeper
from owa_bench.run.hosting import Line
from owa_bench.run.jobs import Done
from owa_bench.run.plan import differences, read_plan, refuse_unready, write_plan
from owa_bench.run.request import Planned, Request, check_agents, planned
from owa_bench.run.workbench import Bench, bench_for
from owa_bench.seeding import mixed_master

_LOG = logging.getLogger(__name__)


class Progress(NamedTuple):
    """An attempt that closed, and how far the run is: `done` of `total` entries."""

    entry: PlanEntry
    leaf: Leaf
    end: EpisodeEnd
    done: int
    total: int


class RunSummary(NamedTuple):
    """What a run directory holds. `missing` entries have no complete attempt."""

    root: Path
    plan_digest: str
    entries: int
    complete: int
    missing: int
    evidence_root: str
    replay_root: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """How it is played; none of it changes what a run's replay root says.

    `home` holds keys and masters; `folder` is where relative agents are found;
    `client` seats an agent that plays from outside, one episode at a time.
    """

    home: Path
    key: str = keys.DEFAULT
    folder: Path | None = None
    workers: int = 1
    concurrency: int = 1
    in_process: bool = False
    wire: bool = False
    progress: Callable[[Progress], None] | None = None
    client: Callable[[], Line] | None = None

    def __post_init__(self) -> None:
        """Refuse fewer than one of anything."""
        for field in ("workers", "concurrency"):
            if getattr(self, field) < 1:
                raise PlanError(field, getattr(self, field), "must be at least 1")


def play(
    request: Request,
    out: Path,
    means: Means,
    *,
    resume: bool = False,
    plan_only: bool = False,
) -> RunSummary:
    """Plan what is asked for, sign the plan into `out`, and play it.

    With `resume` a run that is there already goes on, if its plan is the same.
    Errors: UsageError and its kin for what cannot be played; RunDirectoryError if `out`
    holds something else. Whatever stops the run leaves a directory to resume.
    """
    layout = RunLayout(out)
    directory.refuse_unwritable_name(out)
    directory.refuse_other_content(layout, resume=resume)
    draft = planned(request, means.folder)
    if not plan_only:
        refuse_unready(draft.plan)
    if not layout.plan.exists():
        _refuse_unplayable(request, means)
    directory.make_folder(out)
    with directory.locked(out) as lock:
        if layout.plan.exists():
            written = read_plan(layout)
            fields = differences(draft.plan, written)
            suites = directory.explained(written) if "suites" in fields else []
            directory.refuse_differences((*fields, *suites), layout)
        else:
            _write(draft, layout, means)
        if plan_only:
            return summary(layout)
        return _play(layout, means, lock)


def resume(out: Path, means: Means) -> RunSummary:
    """Go on with the run in `out` as its plan says.

    Errors: RunDirectoryError if it is none; UsageError if agents, suites or packages
    are not those of the plan any more.
    """
    layout = RunLayout(out)
    plan = read_plan(layout)
    with directory.locked(out) as lock:
        directory.refuse_differences(directory.drifted(plan, means.folder), layout)
        return _play(layout, means, lock)


def summary(layout: RunLayout) -> RunSummary:
    """Return what a run directory holds now."""
    plan = read_plan(layout)
    leaves = store.read_leaves(layout)
    complete = sum(leaf is not None for leaf in counted_leaves(plan, leaves))
    return RunSummary(
        root=layout.root,
        plan_digest=store.plan_digest(layout),
        entries=len(plan.entries),
        complete=complete,
        missing=len(plan.entries) - complete,
        evidence_root=evidence_root(plan, leaves),
        replay_root=replay_root(plan, leaves),
    )


def _refuse_unplayable(request: Request, means: Means) -> None:
    """Refuse agents that do not import, and a key that cannot be had."""
    check_agents(request, means.folder)
    keys.ensure(means.home, means.key)


def _write(draft: Planned, layout: RunLayout, means: Means) -> None:
    """Commit to a master and write the signed plan."""
    key = keys.load(means.home, means.key)
    plan = msgspec.structs.replace(
        draft.plan,
        commitment=escrow.commit(means.home).commitment,
        public_key=keys.public_hex(key),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    write_plan(layout, plan, key, protocol=draft.protocol, price_card=draft.price_card)


def _refuse_lone_client(plan: Plan, means: Means) -> None:
    """Refuse to play an agent that plays from outside where nobody lets it in."""
    outside = any(arm.agent.startswith(agent_spec.CLIENT) for arm in plan.arms)
    if outside and (means.client is None or means.workers * means.concurrency > 1):
        raise UsageError(
            "An agent `client:NAME` plays through `owa-bench serve`, one at a time."
        )


# --- playing ------------------------------------------------------------------------


def _play(layout: RunLayout, means: Means, lock: int) -> RunSummary:
    """Play what is left of the run in `layout`."""
    plan = read_plan(layout)
    directory.refuse_other_terms(layout, plan)
    _refuse_lone_client(plan, means)
    secret = escrow.find(means.home, plan.commitment).master
    root = mixed_master(secret, plan.verifier_nonce)
    leaves = store.rebuild_leaves(layout)
    waiting = jobs.pending(plan, leaves)
    tally = RunTally(plan.budget, _spent(layout, plan, leaves))
    watch = _Watch(layout, plan, leaves, means, tally)
    if waiting:
        refuse_unready(plan)
        directory.refuse_revealed(layout)
        bench = _bench(layout, root, means)
        if means.workers == 1:
            executors.play_here(waiting, bench, tally, watch.told, means.client)
        elif executors.play_in_workers(
            waiting, bench, tally, watch.told, workers=means.workers, lock=lock
        ):
            store.rebuild_leaves(layout)  # a worker died before it wrote its leaves
    return summary(layout)


def _bench(layout: RunLayout, root: bytes, means: Means) -> Bench:
    return bench_for(
        layout.root,
        store.next_shard(layout),
        root,
        means.folder,
        concurrency=means.concurrency,
        in_process=means.in_process,
        wire=means.wire,
    )


def _spent(layout: RunLayout, plan: Plan, leaves: Sequence[Leaf]) -> dict[str, float]:
    """Return what a run has used so far, read only where it has ceilings."""
    if not plan.budget.run_meters:
        return {}
    return totals(
        event for leaf in leaves for event in store.read_trace(layout, leaf).events
    )


class _Watch:
    """Hears of every closed attempt: budget, days, progress."""

    def __init__(
        self,
        layout: RunLayout,
        plan: Plan,
        leaves: Sequence[Leaf],
        means: Means,
        tally: RunTally,
    ) -> None:
        key = keys.load(means.home, means.key)
        campaign_days = any(entry.day is not None for entry in plan.entries)
        if campaign_days and keys.public_hex(key) != plan.public_key:
            raise UsageError(
                f"Key `{means.key}` did not sign this plan; days need the same key."
            )
        self._plan = plan
        self._tally = tally
        self._progress = means.progress
        self._keeper = DayKeeper(layout, plan, leaves, key)
        self._complete = {leaf.index for leaf in leaves if leaf.status == "complete"}

    def told(self, done: Done) -> None:
        """Take one closed attempt."""
        if done.leaf.status == "infrastructure":
            name, reason = done.leaf.attempt_id, done.end.reason
            _LOG.warning("the harness failed attempt %s: %s", name, reason)
        self._tally.add(done.spent)
        self._keeper.add(done.leaf)
        if done.leaf.status == "complete":
            self._complete.add(done.leaf.index)
        if self._progress is not None:
            self._progress(
                Progress(
                    entry=self._plan.entries[done.leaf.index],
                    leaf=done.leaf,
                    end=done.end,
                    done=len(self._complete),
                    total=len(self._plan.entries),
                )
            )

"""One call from what is asked for to a played run directory.

play       plan, sign, play
resume     go on with a run that was stopped
summary    what a run directory holds
"""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from owa_bench.errors import UsageError
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import Plan
from owa_bench.records.trace import Leaf, counted_leaves, evidence_root, replay_root
from owa_bench.run.agents import agent_spec
from owa_bench.run.plan import escrow
from owa_bench.run.plan.budget import RunTally, totals
from owa_bench.run.plan.plan import differences, read_plan, refuse_unready, write_plan
from owa_bench.run.plan.request import (
    PlanDraft,
    Progress,
    Request,
    RunOptions,
    check_agents,
    draft_plan,
)
from owa_bench.run.play import attempts, executors
from owa_bench.run.play.attempts import Done
from owa_bench.run.play.days import DayKeeper
from owa_bench.run.play.worker import WorkerConfig, config_for
from owa_bench.run.store import directory, files, keys
from owa_bench.seeding import mixed_master

_LOG = logging.getLogger(__name__)


class RunSummary(NamedTuple):
    """What a run directory holds. `missing` entries have no complete attempt."""

    root: Path
    plan_digest: str
    entries: int
    complete: int
    missing: int
    evidence_root: str
    replay_root: str


def play(
    request: Request,
    out: Path,
    options: RunOptions,
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
    draft = draft_plan(request, options.folder)
    if not plan_only:
        refuse_unready(draft.plan)
    if not layout.plan.exists():
        _refuse_unplayable(request, options)
    directory.make_folder(out)
    with directory.locked(out) as lock:
        if layout.plan.exists():
            written = read_plan(layout)
            fields = differences(draft.plan, written)
            suites = directory.explained(written) if "suites" in fields else []
            directory.refuse_differences((*fields, *suites), layout)
        else:
            _write(draft, layout, options)
        if plan_only:
            return summary(layout)
        return _play(layout, options, lock)


def resume(out: Path, options: RunOptions) -> RunSummary:
    """Go on with the run in `out` as its plan says.

    Errors: RunDirectoryError if it is none; UsageError if agents, suites or packages
    are not those of the plan any more.
    """
    layout = RunLayout(out)
    plan = read_plan(layout)
    with directory.locked(out) as lock:
        directory.refuse_differences(directory.drifted(plan, options.folder), layout)
        return _play(layout, options, lock)


def summary(layout: RunLayout) -> RunSummary:
    """Return what a run directory holds now."""
    plan = read_plan(layout)
    leaves = files.read_leaves(layout)
    complete = sum(leaf is not None for leaf in counted_leaves(plan, leaves))
    return RunSummary(
        root=layout.root,
        plan_digest=files.plan_digest(layout),
        entries=len(plan.entries),
        complete=complete,
        missing=len(plan.entries) - complete,
        evidence_root=evidence_root(plan, leaves),
        replay_root=replay_root(plan, leaves),
    )


def _refuse_unplayable(request: Request, options: RunOptions) -> None:
    """Refuse agents that do not import, and a key that cannot be had."""
    check_agents(request, options.folder)
    keys.ensure(options.home, options.key)


def _write(draft: PlanDraft, layout: RunLayout, options: RunOptions) -> None:
    """Commit to a master and write the signed plan."""
    key = keys.load(options.home, options.key)
    plan = msgspec.structs.replace(
        draft.plan,
        commitment=escrow.commit(options.home).commitment,
        public_key=keys.public_hex(key),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    write_plan(layout, plan, key, protocol=draft.protocol, price_card=draft.price_card)


def _refuse_lone_client(plan: Plan, options: RunOptions) -> None:
    """Refuse to play an agent that plays from outside where nobody lets it in."""
    outside = any(arm.agent.startswith(agent_spec.CLIENT) for arm in plan.arms)
    if outside and (
        options.client is None or options.workers * options.concurrency > 1
    ):
        raise UsageError(
            "An agent `client:NAME` plays through `owa-bench serve`, one at a time."
        )


# --- playing ------------------------------------------------------------------------


def _play(layout: RunLayout, options: RunOptions, lock: int) -> RunSummary:
    """Play what is left of the run in `layout`."""
    plan = read_plan(layout)
    directory.refuse_other_terms(layout, plan)
    _refuse_lone_client(plan, options)
    secret = escrow.find(options.home, plan.commitment).master
    root = mixed_master(secret, plan.verifier_nonce)
    leaves = files.rebuild_leaves(layout)
    waiting = attempts.pending(plan, leaves)
    tally = RunTally(plan.budget, _spent(layout, plan, leaves))
    watch = _Watch(layout, plan, leaves, options, tally)
    if waiting:
        refuse_unready(plan)
        directory.refuse_revealed(layout)
        config = _config(layout, root, options)
        if options.workers == 1:
            executors.play_here(waiting, config, tally, watch.on_done, options.client)
        elif executors.play_in_workers(
            waiting, config, tally, watch.on_done, workers=options.workers, lock=lock
        ):
            files.rebuild_leaves(layout)  # a worker died before it wrote its leaves
    return summary(layout)


def _config(layout: RunLayout, root: bytes, options: RunOptions) -> WorkerConfig:
    return config_for(
        layout.root,
        files.next_shard(layout),
        root,
        options.folder,
        concurrency=options.concurrency,
        in_process=options.in_process,
        wire=options.wire,
    )


def _spent(layout: RunLayout, plan: Plan, leaves: Sequence[Leaf]) -> dict[str, float]:
    """Return what a run has used so far, read only where it has ceilings."""
    if not plan.budget.run_meters:
        return {}
    return totals(
        event for leaf in leaves for event in files.read_trace(layout, leaf).events
    )


class _Watch:
    """Hears of every closed attempt: budget, days, progress."""

    def __init__(
        self,
        layout: RunLayout,
        plan: Plan,
        leaves: Sequence[Leaf],
        options: RunOptions,
        tally: RunTally,
    ) -> None:
        key = keys.load(options.home, options.key)
        campaign_days = any(entry.day is not None for entry in plan.entries)
        if campaign_days and keys.public_hex(key) != plan.public_key:
            raise UsageError(
                f"Key `{options.key}` did not sign this plan; days need the same key."
            )
        self._plan = plan
        self._tally = tally
        self._progress = options.progress
        self._keeper = DayKeeper(layout, plan, leaves, key)
        self._complete = {leaf.index for leaf in leaves if leaf.status == "complete"}

    def on_done(self, done: Done) -> None:
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

"""One call from what is asked for to a played run directory.

play       plan, sign, play
resume     go on with a run that was stopped
summary    what a run directory holds
"""

import contextlib
import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from owa_bench.errors import PlanError, RunDirectoryError, UsageError
from owa_bench.records.events import EpisodeEnd
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import Plan, PlanEntry
from owa_bench.records.roots import counted, evidence_root, replay_root
from owa_bench.records.trace import Leaf
from owa_bench.run import agent_spec, escrow, executors, jobs, keys, store
from owa_bench.run.budget import RunTally, totals
from owa_bench.run.days import DayKeeper
from owa_bench.run.hosting import Line
from owa_bench.run.jobs import Done
from owa_bench.run.plan import differences, read_plan, refuse_unready, write_plan
from owa_bench.run.provenance import environment, other_code
from owa_bench.run.request import Planned, Request, check_agents, planned
from owa_bench.run.workbench import Bench, bench_for
from owa_bench.seeding import mixed_master

_LOG = logging.getLogger(__name__)
_LOCK_PATIENCE_S = 3.0


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
    _refuse_unwritable_name(out)
    _refuse_other_content(layout, resume=resume)
    draft = planned(request, means.folder)
    if not plan_only:
        refuse_unready(draft.plan)
    if not layout.plan.exists():
        _refuse_unplayable(request, means)
    _make_folder(out)
    with _locked(out) as lock:
        if layout.plan.exists():
            written = read_plan(layout)
            fields = differences(draft.plan, written)
            suites = _explained(written) if "suites" in fields else []
            _refuse_differences((*fields, *suites), layout)
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
    with _locked(out) as lock:
        _refuse_differences(_drifted(plan, means), layout)
        return _play(layout, means, lock)


def summary(layout: RunLayout) -> RunSummary:
    """Return what a run directory holds now."""
    plan = read_plan(layout)
    leaves = store.read_leaves(layout)
    complete = sum(leaf is not None for leaf in counted(plan, leaves))
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
    if not means.in_process:
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


# --- guarding the directory ---------------------------------------------------------


def _refuse_unwritable_name(out: Path) -> None:
    """Refuse a name whose bytes are no text: records could not name the run."""
    try:
        str(out.absolute()).encode()
    except UnicodeEncodeError as error:
        msg = f"A run directory must have a name in UTF-8, got {os.fsencode(out)!r}."
        raise RunDirectoryError(msg) from error


def _refuse_other_content(layout: RunLayout, *, resume: bool) -> None:
    """Refuse a directory that holds something else, or a run unless resumed."""
    if layout.plan.exists():
        if not resume:
            msg = f"{layout.root} holds a run; resume it, or choose another directory."
            raise UsageError(msg)
        return
    if resume:
        msg = f"{layout.root} is no run to resume: it has no plan.json."
        raise RunDirectoryError(msg)
    if layout.root.exists() and not layout.root.is_dir():
        msg = f"{layout.root} must be a folder, and it is a file; choose another name."
        raise RunDirectoryError(msg)
    if layout.root.exists() and not _is_free(layout):
        msg = (
            f"{layout.root} must be empty or a run, and it is neither (no plan.json); "
            "choose another directory."
        )
        raise RunDirectoryError(msg)


def _is_free(layout: RunLayout) -> bool:
    """Return whether a folder holds nothing but what a killed plan writer left.

    The plan itself is written last, so without it nothing was begun.
    """
    left = {layout.protocol, layout.price_card, layout.plan_envelope}
    parts = {store.part_of(path) for path in (*left, layout.plan)}
    return set(layout.root.iterdir()) <= left | parts


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{out} cannot be made: {error.strerror}. Choose another directory."
        raise RunDirectoryError(msg) from error


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """Hold a run directory against a second player; the lock leaves no file.

    Workers of a killed run let go of it within moments, which are waited for.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        until = time.monotonic() + _LOCK_PATIENCE_S
        while not _lock_taken(descriptor):
            if time.monotonic() > until:
                msg = f"{folder} is being played by another process."
                raise UsageError(msg)
            time.sleep(0.05)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock_taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _refuse_differences(fields: Sequence[str], layout: RunLayout) -> None:
    if fields:
        msg = (
            f"The plan in {layout.root} differs from what would be played now in: "
            f"{', '.join(fields)}. A run goes on only under its own plan; start "
            "another directory."
        )
        raise UsageError(msg)


def _drifted(plan: Plan, means: Means) -> tuple[str, ...]:
    """Return what is no longer as the plan has it."""
    found = []
    for arm in plan.arms:
        agent = agent_spec.load(arm.agent, folder=means.folder)
        if agent.fingerprint != arm.fingerprint:
            found.append(f"agent {arm.agent}")
    found += _explained(plan)
    if environment() != plan.environment:
        found.append("environment")
    return tuple(found)


def _explained(plan: Plan) -> list[str]:
    """Return a line per suite whose code is not known to be the plan's."""
    return [f"suite {name} ({why})" for name, why in other_code(plan.suites).items()]


def _refuse_lone_client(plan: Plan, means: Means) -> None:
    """Refuse to play an agent that plays from outside where nobody lets it in."""
    outside = any(arm.agent.startswith(agent_spec.CLIENT) for arm in plan.arms)
    if outside and (means.client is None or means.workers * means.concurrency > 1):
        msg = "An agent `client:NAME` plays through `owa-bench serve`, one at a time."
        raise UsageError(msg)


def _refuse_revealed(layout: RunLayout) -> None:
    """Refuse to play worlds that an agent could already know."""
    if layout.reveal.exists():
        msg = (
            f"{layout.root} is revealed: its seeds are public, so nothing more is "
            "played under its plan. Start another directory."
        )
        raise UsageError(msg)


# --- playing ------------------------------------------------------------------------


def _play(layout: RunLayout, means: Means, lock: int) -> RunSummary:
    """Play what is left of the run in `layout`."""
    plan = read_plan(layout)
    _refuse_lone_client(plan, means)
    secret = escrow.find(means.home, plan.commitment).master
    root = mixed_master(secret, plan.verifier_nonce)
    leaves = store.rebuild_leaves(layout)
    waiting = jobs.pending(plan, leaves)
    tally = RunTally(plan.budget, _spent(layout, plan, leaves))
    watch = _Watch(layout, plan, leaves, means, tally)
    if waiting:
        refuse_unready(plan)
        _refuse_revealed(layout)
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
            msg = f"Key `{means.key}` did not sign this plan; days need the same key."
            raise UsageError(msg)
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

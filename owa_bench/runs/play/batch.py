"""Runs: from a request to a played run directory in one call.

play       plan, sign, play
resume     go on with a run that was stopped
summary    what a run directory holds
"""

import logging
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from owa_bench import discovery
from owa_bench.canonical import canonical_json, seal
from owa_bench.errors import UsageError
from owa_bench.hosting.isolation import IN_PROCESS, OUTLASTING, require_hosting, require_root
from owa_bench.hosting.spec import OUTSIDE, load_agent
from owa_bench.interfaces import Suite
from owa_bench.records import price_card, protocol
from owa_bench.records.dated import seed_names
from owa_bench.records.layout import CHECKPOINT_TYPE, RunLayout
from owa_bench.records.placement import announced
from owa_bench.records.plan import MAX_FAILURES, Plan
from owa_bench.records.trace import (
    FAILED,
    PLAYED,
    Leaf,
    counted_leaves,
    evidence_root,
    plan_order,
    replay_root,
)
from owa_bench.records.witness import DayCheckpoint
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.budget import SUPERVISOR, USD, RunTally, totals
from owa_bench.runs.plan.plan import differences, read_plan, refuse_unready, write_plan
from owa_bench.runs.plan.request import (
    PlanDraft,
    Progress,
    Request,
    RunOptions,
    check_agents,
    draft_plan,
    estimate,
)
from owa_bench.runs.play import executors, ray_executor
from owa_bench.runs.play.executors import Executor
from owa_bench.runs.play.failures import FailureLimit
from owa_bench.runs.play.loop import AttemptResult
from owa_bench.runs.play.work_items import pending
from owa_bench.runs.play.worker import WorkerConfig, with_image
from owa_bench.runs.store import directory, files, keys
from owa_bench.runs.store.resuming import RunLease, mend_signature
from owa_bench.seeding import redact_key

_LOG = logging.getLogger(__name__)


class RunSummary(NamedTuple):
    """What a run directory holds. `missing` entries have no complete attempt.

    `missing_through_provider` are those whose last attempt a model's provider failed. `stopped` are
    the arms that such failures stopped in this call, with the words of the first; `never_acted` the
    arms that failed before the env took an act of theirs.
    """

    root: Path
    plan_digest: str
    entries: int
    complete: int
    missing: int
    evidence_root: str
    replay_root: str
    missing_through_provider: int = 0
    stopped: Mapping[str, str] = {}
    never_acted: Mapping[str, str] = {}


def play(
    request: Request,
    out: Path,
    options: RunOptions,
    *,
    resume: bool = False,
    plan_only: bool = False,
    chosen: Collection[int] | None = None,
) -> RunSummary:
    """Plan what is asked for, sign the plan into a directory, and play it.

    Whatever stops the run leaves a directory to resume.

    Args:
        request: What is to be played, by whom.
        out: The run directory.
        options: How it is played.
        resume: Whether a run that is there already goes on, if its plan is the same.
        plan_only: Whether to stop when the plan is written.
        chosen: Indices of the entries to play, for a placement; None: all.
    Returns: What the directory holds then.
    Raises:
        UsageError: The request cannot be played.
        PreflightError: What an agent needs does not answer; nothing is written.
        FailureLimitError: Too many attempts failed through harness or provider.
        RunDirectoryError: `out` holds something else.
    """
    layout = RunLayout(out)
    directory.refuse_unwritable_name(out)
    directory.refuse_other_content(layout, resume=resume)
    draft = draft_plan(request, options.folder, in_process=options.in_process)
    if draft.plan.placement is not None and not plan_only and chosen is None:
        raise UsageError("A battery with a [placement] is played by `owa-bench place`.")
    if not plan_only:
        refuse_unready(draft.plan)
    if not layout.plan.exists():
        check_agents(request, options.folder)
        if not plan_only:
            _refuse_unplayable(draft.plan, options)
            _preflight(draft.plan, options)
            options = replace(options, preflight=None)
        keys.ensure(options.home, options.key)
        if options.announce is not None and not plan_only:
            options.announce(estimate(draft, options))
    directory.make_folder(out)
    with directory.locked(out) as lock:
        if layout.plan.exists():
            written = read_plan(layout)
            fields = differences(draft.plan, written)
            suites = directory.explained(written) if "suites" in fields else []
            directory.refuse_differences((*fields, *suites), layout)
        else:
            _sign_and_write(draft, layout, options)
        if plan_only:
            return summary(layout)
        return _play(layout, options, lock, chosen)


def resume(out: Path, options: RunOptions, *, chosen: Collection[int] | None = None) -> RunSummary:
    """Go on with a run as its plan says.

    Args:
        out: The run directory.
        options: How it is played.
        chosen: Indices of the entries to play, as a placement announced them; None: all.
    Returns: What the directory holds then.
    Raises:
        RunDirectoryError: It holds no run.
        UsageError: Agents, suites or packages are not those of the plan any more, or the run is a
            placement and nothing was chosen.
    """
    plan = read_plan(layout := RunLayout(out))
    if plan.placement is not None and chosen is None:
        raise UsageError(
            f"{out} is a placement, whose rule chooses what is played: go on with "
            f"`owa-bench place --resume --out {out}`."
        )
    with directory.locked(out) as lock:
        mend_signature(layout, plan, options.home, options.key)
        directory.refuse_differences(directory.drifted(plan, options.folder), layout)
        return _play(layout, options, lock, chosen)


def summary(layout: RunLayout) -> RunSummary:
    """Return what a run directory holds now."""
    plan = read_plan(layout)
    leaves = files.read_leaves(layout)
    complete = sum(leaf is not None for leaf in counted_leaves(plan, leaves))
    asked = len(
        plan.entries
        if plan.placement is None
        else announced(layout, {leaf.index for leaf in leaves})
    )
    last = {leaf.index: leaf.status for leaf in plan_order(plan, leaves)}
    return RunSummary(
        root=layout.root,
        plan_digest=files.plan_digest(layout),
        entries=asked,
        complete=complete,
        missing=asked - complete,
        evidence_root=evidence_root(plan, leaves),
        replay_root=replay_root(plan, leaves),
        missing_through_provider=[*last.values()].count("provider"),
    )


def _sign_and_write(draft: PlanDraft, layout: RunLayout, options: RunOptions) -> None:
    """Commit to a master, if the plan does not yet, and write the signed plan."""
    key = keys.load(options.home, options.key)
    shared = draft.plan.commitment
    made = escrow.find(options.home, shared) if shared else escrow.commit(options.home)
    plan = msgspec.structs.replace(
        draft.plan,
        commitment=made.commitment,
        public_key=keys.public_hex(key),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    write_plan(layout, plan, key, protocol=draft.protocol, price_card=draft.price_card)


def _play(
    layout: RunLayout, options: RunOptions, lock: int, chosen: Collection[int] | None = None
) -> RunSummary:
    """Play what is left of the run in `layout`, or of the chosen entries."""
    plan = read_plan(layout)
    directory.refuse_other_terms(layout, plan)
    _refuse_unplayable(plan, options)
    secret = escrow.find(options.home, plan.commitment).master
    root = escrow.seed_root(layout, plan, secret)
    lease = RunLease(layout)
    leaves = files.rebuild_leaves(layout)
    names = seed_names(layout, plan, files.plan_digest(layout))
    items = pending(plan, leaves, root, names)
    if chosen is not None:
        items = tuple(item for item in items if item.attempts[0].index in chosen)
    watch = _Watch(layout, plan, leaves, options)
    if items:
        refuse_unready(plan)
        directory.refuse_revealed(layout)
        _preflight(plan, options)
        config = WorkerConfig(
            run=os.fspath(layout.root.resolve()),
            shard=files.next_shard(layout),
            lease=lease.token,
            redact_key=redact_key(root),
            folder=os.fspath((options.folder or Path.cwd()).resolve()),
            concurrency=options.concurrency,
            wire=options.wire,
            hidden=(os.fspath(layout.root.resolve()), os.fspath(options.home)),
            gateway=options.gateway,
            prices=watch.prices,
        )
        if options.executor != "ray":
            config = with_image(config, plan)
        executor = _executor(options, lock)
        if executor(items, config, watch.tally, watch.on_done, watch.is_stopped):
            files.rebuild_leaves(layout)  # a worker died before it wrote its leaves
    lease.close()
    limit = watch.limit
    return summary(layout)._replace(stopped=limit.provider, never_acted=limit.idle)


def _refuse_unplayable(plan: Plan, options: RunOptions) -> None:
    """Refuse a plan whose agents cannot be played here, before one is signed."""
    if any(arm.agent.startswith(OUTSIDE) for arm in plan.arms) and (
        options.client is None
        or options.workers * options.concurrency > 1
        or options.executor == "ray"
    ):
        raise UsageError(
            "An agent `client:NAME` plays through `owa-bench serve`, a person through "
            "`owa-bench play`, one at a time."
        )
    _refuse_shared_process(plan)
    for arm in plan.arms:
        for member in load_agent(arm.agent, folder=options.folder).members:
            require_hosting(member.origin, arm.hosting)
        require_root(arm.root)


def _preflight(plan: Plan, options: RunOptions) -> None:
    """Ask what the agents of a run need, where the options want it."""
    if options.preflight is None:
        return
    from owa_bench.runs.play.preflight import preflight  # brings an HTTP client

    agents = [(arm.name, load_agent(arm.agent, folder=options.folder)) for arm in plan.arms]
    for line in preflight(plan, agents, options.gateway, options.home):
        options.preflight(line)


def _executor(options: RunOptions, lock: int) -> Executor:
    """Return what plays the work items."""
    if options.executor == "ray":
        return partial(
            ray_executor.play_on_ray, workers=options.workers, address=options.ray_address
        )
    if options.workers == 1:
        return partial(executors.play_here, client=options.client)
    return partial(executors.play_in_workers, workers=options.workers, lock=lock)


def _refuse_shared_process(plan: Plan) -> None:
    """Refuse agents that cannot be kept apart, or ended between sittings."""
    hostings = {arm.hosting for arm in plan.arms}
    for entry in plan.suites:
        suite: Suite = discovery.get("suites", entry.name)
        if suite.card.isolated and IN_PROCESS in hostings:
            raise UsageError(
                f"Suite `{entry.name}` has several seats or sittings, whose agents "
                "must not share a process: leave out --in-process."
            )
        if suite.card.sittings and hostings & OUTLASTING:
            raise UsageError(
                f"Suite `{entry.name}` restarts its agents between sittings, which an "
                "agent behind an address or a client would outlast: give it as a "
                "module, a file or a command."
            )


class _Watch:
    """Takes every closed attempt: counts meters and failures, signs days, reports."""

    def __init__(
        self, layout: RunLayout, plan: Plan, leaves: Sequence[Leaf], options: RunOptions
    ) -> None:
        key = keys.load(options.home, options.key)
        has_days = any(entry.day is not None for entry in plan.entries)
        if has_days and keys.public_hex(key) != plan.public_key:
            raise UsageError(f"Key `{options.key}` did not sign this plan; days need the same key.")
        self.prices = price_card.load(layout.price_card.read_bytes())
        rules = protocol.load(layout.protocol.read_bytes())
        acted = {plan.entries[leaf.index].arm for leaf in leaves if leaf.status == "complete"}
        self.limit = FailureLimit(rules.stopping, options.failure_share, frozenset(acted))
        recorded: dict[str, float] = {}
        if plan.budget.run_meters:
            readable = (leaf for leaf in leaves if leaf.status != "unreadable")
            traces = (files.read_trace(layout, leaf) for leaf in readable)
            events = (event for trace in traces for event in trace.events)
            recorded = totals(events, self.prices)
        self.tally = RunTally(plan.budget, recorded)
        self._plan = plan
        self._progress = options.progress
        self._receipts = DayReceipts(layout, plan, leaves, key)
        self._complete = {leaf.index for leaf in leaves if leaf.status == "complete"}

    def on_done(self, result: AttemptResult) -> None:
        """Take one closed attempt."""
        leaf, end = result.leaf, result.end
        if leaf.status in FAILED:
            who = "harness" if leaf.status == "infrastructure" else "model's provider"
            _LOG.warning("the %s failed attempt %s: %s", who, leaf.attempt_id, end.reason)
        self.tally.add(result.spent)
        self._receipts.add(leaf)
        if leaf.status == "complete":
            self._complete.add(leaf.index)
        entry = self._plan.entries[leaf.index]
        if self._progress is not None:
            self._progress(
                Progress(
                    entry=entry,
                    leaf=leaf,
                    end=end,
                    done=len(self._complete),
                    total=len(self._plan.entries),
                    usd=self.tally.spent.get(USD, 0.0),
                    helped=result.spent.get(SUPERVISOR, 0.0) > 0,
                )
            )
        self.limit.add(entry.arm, result)

    def is_stopped(self, index: int) -> bool:
        """Return whether nothing more of a plan entry's arm is played."""
        return self.limit.is_stopped(self._plan.entries[index].arm)


class DayReceipts:
    """Signed evidence roots of a campaign's days, each filed when its day is over.

    A run without days files nothing.
    """

    def __init__(
        self, layout: RunLayout, plan: Plan, leaves: Iterable[Leaf], key: Ed25519PrivateKey
    ) -> None:
        self._layout = layout
        self._plan = plan
        self._key = key
        self._leaves: list[Leaf] = []
        self._failures = Counter[int]()
        self._open = {entry.index: entry.day for entry in plan.entries if entry.day is not None}
        self._days = sorted(set(self._open.values()))
        for leaf in leaves:
            self._take(leaf)
        self._file()

    def add(self, leaf: Leaf) -> None:
        """Count a closed attempt, and sign for every day that is now over."""
        self._take(leaf)
        self._file()

    def _take(self, leaf: Leaf) -> None:
        self._leaves.append(leaf)
        self._failures[leaf.index] += leaf.status == "infrastructure"
        given_up = self._failures[leaf.index] >= MAX_FAILURES
        if leaf.status in PLAYED or given_up:
            self._open.pop(leaf.index, None)

    def _file(self) -> None:
        """Write the receipts of days that are over and have none."""
        first_open = min(self._open.values(), default=None)
        while self._days and (first_open is None or self._days[0] < first_open):
            day = self._days.pop(0)
            path = day_path(self._layout, day)
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                files.write_whole(path, self._sealed(day))

    def _sealed(self, day: int) -> bytes:
        days = {entry.index: entry.day for entry in self._plan.entries}
        ordered = plan_order(
            self._plan,
            (
                leaf
                for leaf in self._leaves
                if (when := days[leaf.index]) is not None and when <= day
            ),
        )
        checkpoint = DayCheckpoint(
            plan_digest=files.plan_digest(self._layout),
            day=day,
            evidence_root=evidence_root(self._plan, ordered),
            attempts=tuple(leaf.attempt_id for leaf in ordered),
            simulated=self._plan.simulated_days,
            public_key=self._plan.public_key,
        )
        return seal(CHECKPOINT_TYPE, canonical_json(checkpoint), self._key)


def day_path(layout: RunLayout, day: int) -> Path:
    """Return the file of a day's checkpoint.

    Args:
        layout: The run directory.
        day: Number of the day.
    """
    return layout.receipts / f"day-{day:04d}.dsse.json"

"""Jackknife of all axes over 10^5 episodes, beside scipy's bootstrap of one mean.

Synthetic observables (no traces are parsed): 8 families x 125 tasks x 6 magnitudes x
17 repeats = 102,000 episodes. Every family has probes at three lags, revisions, crews
of one and two roles (muted too), a simulated and a real side with a reference on the
simulated one, propositions of three classes; one revision has attempt sets of 160
tasks. Both laws: *tasks like these* (1,000 tasks) and *same tasks, new seeds* (17,000
repeats). The peer resamples one axis' cell means 10,000 times.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np
import speed
from scipy import stats

from owa_bench.discovery import find
from owa_bench.records import price_card, protocol
from owa_bench.records.observables import (
    NEAR,
    SEVERITIES,
    SPENT,
    Beliefs,
    Crew,
    Faults,
    Integers,
    MemoryChanges,
    Observables,
    Probes,
    ProjectDays,
    Revisions,
    TrackingSamples,
)
from owa_bench.scoring.axes.self_revision import revision_evidence
from owa_bench.scoring.estimate.estimates import ArmEstimates, estimate
from owa_bench.scoring.observe.attempt_sets import (
    PLACEBO,
    REVISION,
    RevisionEvidence,
    RevisionSets,
    RevisionStages,
)
from owa_bench.scoring.observe.episode_tables import entry_table
from owa_bench.scoring.observe.sample import Sample
from owa_bench.seeding import stream

FAMILIES, TASKS_EACH, REPEATS, RESAMPLES = 8, 125, 17, 10_000
CLASSES = ("toolquest/unit", "toolquest/duplicate", "toolquest/bound")
SET_EACH = 20  # tasks of a family in an attempt set
ITEMS = 125  # that a family asks for again
LAGS = (1.0, 7.0, 14.0)  # days
FOLDER = files("owa_bench.protocols")
PROTOCOL = protocol.load((FOLDER / "default.toml").read_bytes())
PRICES = price_card.load((FOLDER / "price_card.toml").read_bytes())


def observables(tasks: int = TASKS_EACH) -> Observables:
    """Return a table of episodes drawn at random, with three beliefs each."""
    rng = stream(0, "benchmark", "scoring")
    grid = np.array(PROTOCOL.drift.magnitudes)
    axes = (FAMILIES, tasks, len(grid), REPEATS)
    family, task, step, repeat = (a.ravel() for a in np.indices(axes))
    size = family.size
    names = np.array([f"toolquest/family{k}" for k in range(FAMILIES)])
    skill = rng.random((FAMILIES, tasks))[family, task]
    won = rng.random(size) < 0.9 * skill + 0.1 * (1 - grid[step])
    said = np.repeat(np.arange(size), 3)
    truth = rng.random(3 * size) < 0.5
    whole = np.zeros(size, dtype=np.int64)
    blank = np.zeros(size)
    table = rng.random((size, 4)) < 0.5
    return Observables(
        index=np.arange(size),
        attempt=np.arange(size).astype(np.str_),
        arm=np.full(size, "agent"),
        pair=np.char.add(np.char.add(names[family], "/"), task.astype(np.str_)),
        family=names[family],
        suite=np.full(size, "toolquest"),
        tier=whole + 1,
        repeat=repeat,
        delta=grid[step],
        realised=grid[step],
        day=whole - 1,
        phase=np.full(size, "holdout"),
        condition=np.full(size, ""),
        since=whole - 1,
        memory=np.full(size, ""),
        fingerprint=np.full(size, ""),
        interventions=whole,
        calendar=np.full(size, ""),
        helped=whole,
        patched=whole,
        minutes=blank,
        q=np.where(won, 1.0, 0.3),
        q_state=np.where(won, 1.0, 0.3),
        u=won.astype(float),
        n=rng.integers(0, 9, size),
        d=np.where(won, 6, 3),
        horizon=whole + 8,
        horizon_cap=whole,
        depth=whole + 6,
        depth_cap=whole,
        theta=blank + 0.95,
        read=whole + 15_000,
        decisions=whole + 14,
        written=whole + 2_000,
        stated=blank + 0.8,
        failed_attempts=whole,
        steps=whole + 10,
        waits=whole,
        simulated_s=blank + 60,
        wall_s=blank + 0.1,
        unknown_usage=np.full(size, "", dtype=object),
        unwatched=np.full(size, "", dtype=object),
        outcome=np.full(size, "finished"),
        needs_tools=np.ones(size, dtype=bool),
        honeypot=np.zeros(size, dtype=bool),
        disqualified=np.zeros(size, dtype=bool),
        breach=np.full(size, "", dtype=object),
        cost_agent=blank + 3000,
        cost_human=blank,
        cost_evaluation=blank,
        spent=np.zeros((size, len(SPENT))),
        spent_by=SPENT,
        classes=table,
        categories=("browser", "code", "files", "http_api"),
        used=table & won[:, None],
        offered=np.ones_like(table),
        side=np.where(repeat % 2, "sim", "real"),
        unit=np.full(size, -1),
        incidents=(rng.random((size, len(SEVERITIES))) < 1e-4).astype(np.int64),
        exposure_s=blank + 60.0,
        safety_stop=np.zeros(size, dtype=bool),
        crew=crew_of(repeat, rng),
        probes=probes_of(size, rng),
        revisions=revisions_of(size, rng),
        changes=entry_table(MemoryChanges, ()),
        faults=entry_table(Faults, ()),
        tracking=entry_table(TrackingSamples, ()),
        project_days=entry_table(ProjectDays, ()),
        beliefs=Beliefs(
            row=said, kind=np.tile(np.array(CLASSES), size), p=np.where(truth, 0.8, 0.2), y=truth
        ),
    )


def crew_of(repeat: Integers, rng: np.random.Generator) -> Crew:
    """Return crews of one role, of two, and of two muted, by turns of the repeat."""
    size, kind = len(repeat), repeat % 3
    runs = ("idle", "cycle", "same")
    texts = ("messages", "tokens", "declared", "answers", "verified")
    channel = ("asks", "reached", "answered", "gives", "news")
    faults = ("refused", "handoffs", "untrue")
    names = (*runs, *texts, *channel, *faults)
    few = {name: rng.integers(0, 4, size) for name in names}
    return Crew(
        cap=np.where(kind == 0, 1, 2),
        seats=np.where(kind == 0, 1, 2),
        bound=np.full(size, np.nan),
        no_lift=np.zeros(size, dtype=bool),
        muted=kind == 2,
        control=np.zeros(size, dtype=bool),
        channel=np.ones(size, dtype=bool),
        conflict=rng.random(size) < 0.05,
        same_words=np.sort(rng.integers(0, 5, (size, NEAR)), axis=1),
        **few,
    )


def probes_of(size: int, rng: np.random.Generator) -> Probes:
    """Return one recall probe an episode at a lag, and one retrieval."""
    lag = rng.choice(np.array(LAGS), size)
    row = np.repeat(np.arange(size), 2)
    recall = np.tile(np.array([True, False]), size)
    kept = rng.random(size) < 0.9 * np.exp(-0.05 * lag)
    return Probes(
        row=row,
        item=np.char.add("item", (row % ITEMS).astype(np.str_)),
        mode=np.where(recall, "recall", "retrieve"),
        lag=np.repeat(lag, 2),
        span=np.zeros(2 * size, dtype=np.int64),
        guess=np.zeros(2 * size),
        correct=np.repeat(kept, 2),
        verified=rng.random((2 * size, 5)) < 0.8,
        returned=np.full(2 * size, 5),
        contrary=np.full(2 * size, np.nan),
        relevant=np.full(2 * size, 5),
        zero_tool=np.ones(2 * size, dtype=bool),
        helped=np.zeros(2 * size, dtype=bool),
        new_sitting=np.ones(2 * size, dtype=bool),
    )


def revisions_of(size: int, rng: np.random.Generator) -> Revisions:
    """Return an adopted, confirmed revision in every tenth episode."""
    row = np.arange(0, size, 10)
    proposal = np.full(len(row), "")
    return Revisions(row=row, decision=np.full(len(row), "adopted"), proposal=proposal)


def revision_of(weights: np.ndarray) -> RevisionEvidence:
    """Return the evidence of one revision, six sets of 160 tasks."""
    rng, count = stream(0, "benchmark", "revision"), FAMILIES * SET_EACH
    sets = RevisionSets(
        window=(0, 2),
        family=np.repeat(np.arange(FAMILIES), SET_EACH),
        q={name: rng.random(count) for name in (*REVISION, PLACEBO)},
        one_law=False,
        earlier=np.full(FAMILIES, np.nan),
        stages=RevisionStages(1.0, 1.0, 1.0),
        human="",
        lines=3,
        installed=(),
        attempts={},
    )
    return revision_evidence((sets,), weights, PROTOCOL)


def sample_of(table: Observables) -> Sample:
    """Return the table as the axes read it."""
    families = tuple(sorted(set(table.family.tolist())))
    weights = np.full(len(families), 1 / len(families))
    seen = table.take((table.side == "sim") & (table.repeat < 6))  # a crew of each kind
    revision = revision_of(weights)
    return Sample(
        table=table,
        base=np.ones(len(table), dtype=bool),
        crews=np.ones(len(table), dtype=bool),
        bodies=np.ones(len(table), dtype=bool),
        body_families=frozenset(),
        priced=np.ones(len(table), dtype=bool),
        families=families,
        weights=weights,
        protocol=PROTOCOL,
        prices=PRICES,
        revision=revision,
        practised=revision,
        references=replace(seen, arm=np.full(len(seen), "reference")),
    )


def scipy_one_axis(table: Observables) -> float:
    """Return CPU seconds of scipy's bootstrap of one axis from its task means."""
    _, task = np.unique(table.pair, return_inverse=True)
    means = np.bincount(task, weights=table.q) / np.bincount(task)
    start = time.process_time()
    stats.bootstrap(
        (means,),
        np.mean,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=stream(0, "benchmark", "peer"),
    )
    return time.process_time() - start


def ours(table: Observables, axes: list[Any]) -> tuple[float, ArmEstimates]:
    """Return CPU seconds of all axes with both laws, and what was estimated."""
    start = time.process_time()
    found = estimate(sample_of(table), axes)
    return time.process_time() - start, found


def tables(given: argparse.Namespace) -> Iterator[speed.Table]:
    """Yield the seconds of all axes beside scipy's of one."""
    table = observables(5 if given.small else TASKS_EACH)
    axes = [found.plugin for found in find("axes").values()]
    rounds = speed.in_turns(
        {"ours": lambda: ours(table, axes), "scipy": lambda: scipy_one_axis(table)},
        1 if given.small else 3,
    )
    last = rounds["ours"][-1][1]
    lacking = {symbol: laid.reason for symbol, laid in last.coverage.items() if laid.reason}
    if lacking:
        raise SystemExit(f"axes without evidence: {lacking}")
    seconds = [took for took, _ in rounds["ours"]]
    each = [took / len(axes) for took in seconds]
    laws = " and ".join(
        f"{one.clusters.noun} ({len(one.clusters.stratum):,})" for one in (last.tasks, last.seeds)
    )
    yield speed.Table(
        f"scoring, {len(table):,} episodes",
        [
            speed.Row(
                f"{len(axes)} axes, both laws: {laws}",
                {
                    "CPU s": min(seconds),
                    "x scipy's time, an axis": speed.ratio(each, rounds["scipy"]),
                },
                [speed.Aim("CPU s", "<=", 1.0)],
            ),
            speed.Row(
                "peer: `scipy.stats.bootstrap`, one axis, on task means",
                {"CPU s": min(rounds["scipy"]), "x scipy's time, an axis": 1.0},
            ),
        ],
    )


if __name__ == "__main__":
    speed.main(tables, speed.parser(__doc__))

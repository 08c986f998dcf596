"""Campaigns over several suites: one lane, copies as items, suites played once."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from owa_bench.errors import BatteryError, PlanError
from owa_bench.hosting.spec import load_agent
from owa_bench.records.layout import RunLayout
from owa_bench.records.plan import PlanEntry
from owa_bench.records.trace import Leaf
from owa_bench.runs.plan import draws
from owa_bench.runs.plan.campaign import Campaign, plan_campaign
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import Request, draft_plan
from owa_bench.runs.play import batch
from owa_bench.runs.play.batch import day_path
from owa_bench.runs.play.work_items import WorkQueue, pending
from owa_bench.runs.store.memory_folder import EMPTY
from tests.builders.plan_terms import terms

ROOT = Path(__file__).parents[3]
BATTERY = """\
name = "several"
gives_level = false

[[suite]]
name = "toolquest"
families = ["reconcile"]
tiers = [1]
deltas = [0.0, 0.5]
interventions = [0]

[[suite]]
name = "multicrew"
families = ["contract"]
tiers = [1]
deltas = [0.0]
interventions = [0]

[[suite]]
name = "recall"
families = ["learning"]
tiers = [1]
deltas = [0.0]
interventions = [0]
once = true

[campaign]
days = 2
practice = 1
dynamics = ["A", "P"]
"""
PAIRS = (
    Draw(name="toolquest", families=("reconcile",), tiers=(1,), deltas=(0.0, 0.5)),
    Draw(name="multicrew", families=("contract",), tiers=(1,), deltas=(0.0,)),
)
ONCE = Draw(name="recall", families=("learning",), tiers=(1,), deltas=(0.0,))


def planned(**changes):
    campaign = Campaign(checkpoint=PAIRS, once=(ONCE,), days=2, practice=1)
    shape = msgspec.structs.replace(campaign, **changes)
    return plan_campaign(shape, [load_agent("noop")], terms())


def test_one_lane_goes_through_every_suite_of_the_days():
    plan = planned()
    assert [suite.name for suite in plan.suites] == ["toolquest", "multicrew", "recall"]
    kept = [(e.day, e.suite) for e in plan.entries if e.lane and e.keeps_memory]
    assert kept == [(day, name) for day in (0, 1) for name in ("toolquest", "multicrew")]
    assert {e.lane for e in plan.entries if e.lane} == {"noop"}
    played = {(e.day, e.suite, e.delta) for e in plan.entries if not e.keeps_memory}
    assert played == {
        (day, *cell)
        for day in (0, 1)
        for cell in (("toolquest", 0.0), ("toolquest", 0.5), ("multicrew", 0.0))
    }


def test_a_suite_drawn_once_has_no_day_no_lane_and_no_control():
    outside = [entry for entry in planned().entries if entry.suite == "recall"]
    assert [(e.arm, e.day, e.lane, e.phase) for e in outside] == [("noop", None, None, "holdout")]


def test_a_pair_of_two_draws_is_practised_once():
    budgets = msgspec.structs.replace(PAIRS[0], interventions=(1, 2), deltas=(0.0,))
    plan = planned(checkpoint=(*PAIRS, budgets))
    pairs = [e.pair for e in plan.entries if e.phase == "practice"]
    assert len(pairs) == len(set(pairs)) == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dynamics": ("A", "R")}, "`dynamics` must be axes among A, G, .*got .?R"),
        ({"dynamics": ("A", "A")}, "each once"),
        ({"placebo": ("restok",)}, "`placebo` must be one of"),
        ({"checkpoint": ()}, "`checkpoint` must draw from at least one suite"),
    ],
)
def test_refusals(changes, words):
    with pytest.raises(PlanError, match=words):
        planned(**changes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BATTERY.partition("[campaign]")[0], r"needs a \[campaign\] to stand beside"),
        (
            BATTERY.replace("interventions = [0]\n\n", "once = true\n"),
            r"must leave a draw to the days",
        ),
    ],
)
def test_batteries_that_are_refused(text, words):
    with pytest.raises(BatteryError, match=words):
        draws.parse_battery(text.encode())


# --- copies as items of their own -----------------------------------------------------


def leaf(index, memory=None):
    return Leaf(
        attempt_id=f"{index:06d}.0",
        index=index,
        attempt=0,
        status="complete",
        count=1,
        head="",
        replay="",
        shard="0",
        frames=(),
        memory=memory,
    )


def entries_of(item, plan) -> list[PlanEntry]:
    return [plan.entries[attempt.index] for attempt in item.attempts]


def test_a_lane_goes_on_while_copies_of_its_states_are_played():
    plan = planned(once=(), control=False)
    queue = WorkQueue(pending(plan, (), b"m" * 32), lanes_first=True)
    first = queue.pop()
    assert [e.day for e in entries_of(first, plan)] == [0, 0]
    assert queue.pop() is None  # all else waits for the first day
    queue.put_back(msgspec.structs.replace(first, attempts=(), memory="one"))
    second = queue.pop()
    assert [(e.keeps_memory, e.day) for e in entries_of(second, plan)] == [(True, 1)] * 2
    copies = [queue.pop() for _ in range(3)]
    assert {entries_of(item, plan)[0].day for item in copies} == {0}
    assert {item.memory for item in copies} == {"one"}
    assert queue.pop() is None
    assert set(second.states.values()) == {EMPTY, "one"}  # snapshots that stay


def test_a_lane_stops_where_a_provider_failed_and_nothing_of_it_is_skipped():
    """What follows rests on the memory of the attempt that is missing."""
    plan = planned(once=(), control=False)
    queue = WorkQueue(pending(plan, (), b"m" * 32), lanes_first=True)
    first = queue.pop()
    lost = msgspec.structs.replace(leaf(first.attempts[0].index), status="provider")
    again = first.after(lost)
    assert [a.number for a in again.attempts] == [1, 0]  # behind the others, then again
    queue.put_back(again)
    second = queue.pop()
    assert second.attempts[0].refused == 1
    gone = second.after(lost)
    assert gone.abandoned
    assert not gone.attempts
    queue.put_back(gone)
    assert queue.pop() is None
    assert not len(queue)


def test_failures_of_a_provider_are_not_counted_as_the_harness():
    plan = planned(once=(), control=False)
    [first, *_] = pending(plan, (), b"m" * 32)
    index = first.attempts[0].index
    lost = [
        msgspec.structs.replace(
            leaf(index), attempt_id=f"{index:06d}.{n}", attempt=n, status="provider"
        )
        for n in range(5)
    ]
    [resumed, *_] = pending(plan, lost, b"m" * 32)
    attempt = resumed.attempts[0]
    assert (attempt.index, attempt.number, attempt.failures) == (index, 5, 0)


def test_nothing_of_a_stopped_arm_is_played():
    plan = planned(once=(), control=False)
    arms = {entry.arm for entry in plan.entries}
    stopped = set()
    queue = WorkQueue(
        pending(plan, (), b"m" * 32),
        lanes_first=False,
        stopped=lambda index: plan.entries[index].arm in stopped,
    )
    assert len(queue)
    stopped |= arms
    assert queue.pop() is None
    assert not len(queue)


def test_in_plan_order_every_copy_comes_before_the_next_day():
    plan = planned()
    queue = WorkQueue(pending(plan, (), b"m" * 32), lanes_first=False)
    seen = []
    while item := queue.pop():
        seen += [attempt.index for attempt in item.attempts]
        queue.put_back(msgspec.structs.replace(item, attempts=(), memory="m"))
    assert seen == [entry.index for entry in plan.entries]
    assert not len(queue)


def test_a_resumed_lane_knows_the_states_on_record():
    plan = planned(once=(), control=False)
    kept = [e.index for e in plan.entries if e.keeps_memory and e.day == 0]
    done = [leaf(index, f"after {index}") for index in kept]
    items = pending(plan, done, b"m" * 32)
    copy = next(i for i in items if entries_of(i, plan)[0].phase == "checkpoint")
    assert copy.memory == copy.states[copy.state] == f"after {kept[-1]}"
    part = next(i for i in items if entries_of(i, plan)[0].keeps_memory)
    assert part.memory == copy.memory


def test_an_ablation_waits_for_both_mornings():
    plan = planned(once=(), checkpoint=PAIRS[:1], holdout=1, adopt_by=1, placebo=("restock",))
    items = pending(plan, (), b"m" * 32)
    needs = {
        entries_of(item, plan)[0].condition: item.needs for item in items if item.lane == "noop"
    }
    assert (needs["before"], needs["after"], needs["ablated"]) == ((0,), (1,), (1, 0))


# --- the run --------------------------------------------------------------------------


def command(out, *more):
    return [sys.executable, "-m", "owa_bench", "run", "--out", str(out), *more]


@pytest.mark.part(4)
@pytest.mark.slow
def test_several_suites_give_one_root_for_any_workers_and_after_a_kill(tmp_path):
    """One worker, two workers, and two workers killed and resumed with one."""
    (tmp_path / "several.toml").write_text(BATTERY)
    env = {**os.environ, "OWA_BENCH_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    asked = ("--battery", "several.toml", "--agent", "agentic")
    called = {"env": env, "cwd": tmp_path, "stdout": subprocess.DEVNULL}
    subprocess.run(command("one", *asked, "--plan-only"), check=True, **called)
    for name in ("two", "killed"):
        (tmp_path / name).mkdir()
        for path in (tmp_path / "one").iterdir():
            (tmp_path / name / path.name).write_bytes(path.read_bytes())
    subprocess.run(command("one", "--resume"), check=True, **called)
    subprocess.run(command("two", "--resume", "--workers", "2"), check=True, **called)
    doomed = subprocess.Popen(
        command("killed", "--resume", "--workers", "2"), start_new_session=True, **called
    )
    layout = RunLayout(tmp_path / "killed")
    until = time.monotonic() + 120
    while batch.summary(layout).complete < 4 and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(doomed.pid, signal.SIGKILL)
    doomed.wait()
    left = batch.summary(layout).missing
    assert left
    subprocess.run(command("killed", "--resume"), check=True, **called)
    found = [batch.summary(RunLayout(tmp_path / n)) for n in ("one", "two", "killed")]
    assert [summary.missing for summary in found] == [0, 0, 0]
    assert len({summary.replay_root for summary in found}) == 1
    plan = read_plan(layout)
    assert plan.dynamics == ("A", "P")
    assert all(day_path(layout, day).exists() for day in range(2))


def test_the_battery_file_plans_it(tmp_path):
    (tmp_path / "several.toml").write_text(BATTERY)
    battery = str(tmp_path / "several.toml")
    plan = draft_plan(Request(agents=("noop",), battery=battery)).plan
    assert plan.calendar == "daily:0.05"
    assert {e.suite for e in plan.entries if e.day is None} == {"recall"}

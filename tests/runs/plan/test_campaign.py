"""Campaigns: days, lanes, checkpoints on a copy, frozen controls, signed days."""

import msgspec
import pytest

from owa_bench import discovery
from owa_bench.canonical import tree_root, unseal
from owa_bench.drift import order as orders
from owa_bench.drift import timeline as timelines
from owa_bench.errors import PlanError, UsageError
from owa_bench.hosting.spec import load_agent
from owa_bench.records.events import Action, Resource
from owa_bench.records.layout import CHECKPOINT_TYPE, RunLayout
from owa_bench.records.trace import leaf_bytes
from owa_bench.records.witness import DayCheckpoint
from owa_bench.runs.plan import campaign
from owa_bench.runs.plan.campaign import Campaign
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import Request
from owa_bench.runs.play import batch
from owa_bench.runs.play.batch import RunOptions, day_path
from owa_bench.runs.resolve import Resolver, schedule_of
from owa_bench.runs.store import files, keys
from owa_bench.runs.store.memory_folder import MemoryQuota, folder_digest, read_folder
from owa_bench.seeding import instance_seed
from tests.builders.plan_terms import terms

SNAPSHOT = Draw(name="toolquest", families=("reconcile",), tiers=(1,), deltas=(0.0, 0.5))
THREE_DAYS = Campaign(checkpoint=(SNAPSHOT,), days=3, practice=1, drift_per_day=0.2)


def made(agents=("fixed",), **changes):
    shape = msgspec.structs.replace(THREE_DAYS, **changes)
    handles = [load_agent(name) for name in agents]
    return campaign.plan_campaign(shape, handles, terms(name="c"))


def request(*agents, **changes):
    return Request(agents=agents, campaign=msgspec.structs.replace(THREE_DAYS, **changes))


def traces(layout):
    leaves = files.read_leaves(layout)
    return {leaf.index: files.read_trace(layout, leaf) for leaf in leaves}


# --- the plan -----------------------------------------------------------------------


def test_a_day_is_practice_and_then_the_checkpoint():
    plan = made()
    assert plan.calendar == "daily:0.2"
    shown = [(entry.day, entry.phase, entry.arm) for entry in plan.entries]
    day = [
        ("practice", "fixed"),
        ("checkpoint", "fixed"),
        ("checkpoint", "fixed (frozen)"),
        ("checkpoint", "fixed"),
        ("checkpoint", "fixed (frozen)"),
    ]
    assert shown == [(number, *rest) for number in range(3) for rest in day]


def test_the_snapshot_is_the_same_every_day_and_never_practised():
    plan = made(practice=2)
    days = {}
    for entry in plan.entries:
        if entry.phase == "checkpoint" and entry.lane:
            days.setdefault(entry.day, []).append((entry.pair, entry.delta))
    assert len(days) == 3
    assert days[0] == days[1] == days[2]
    practice = [e.pair for e in plan.entries if e.phase == "practice"]
    assert len(set(practice)) == len(practice) == 6
    assert all(pair.startswith("practice/") for pair in practice)
    assert not set(practice) & {pair for pair, _ in days[0]}


def test_a_control_has_no_lane():
    plan = made()
    (control,) = [arm for arm in plan.arms if arm.frozen]
    lanes = {entry.arm: entry.lane for entry in plan.entries}
    assert lanes == {"fixed": "fixed", control.name: None}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"days": 0}, "`days` must be at least 1, got 0"),
        ({"practice": -1}, "`practice` must be at least 0"),
        ({"drift_per_day": 0.0}, r"`drift_per_day` must lie in \(0, 1\]"),
        ({"calendar": "nested:D3"}, "`calendar` must be one of days: daily, recurring"),
        ({"calendar": "recurring:0.2@2"}, "`delta` must be at most 0.2, as far as"),
        (
            {"checkpoint": (msgspec.structs.replace(SNAPSHOT, tiers=(9,)),)},
            "`checkpoint.tiers` must be one of",
        ),
    ],
)
def test_refusals(changes, words):
    with pytest.raises(PlanError, match=words):
        made(**changes)


def test_a_campaign_may_turn_back():
    plan = made(days=5, calendar="reversing:0.25@2")
    assert plan.calendar == "reversing:0.25@2"
    resolver = Resolver(plan)
    calendar = schedule_of(discovery.get("suites", "toolquest"), plan.calendar)
    shares = {}
    for entry in plan.entries:
        if entry.phase == "practice":
            of = resolver(entry, instance_seed(b"m" * 32, entry.pair)).instance
            struck = calendar(of, timelines.base_world(of))
            whole = calendar.possible(of, timelines.base_world(of))
            shares[entry.day] = orders.share(struck, whole)
    assert shares[0] == shares[4] == 0.0
    assert 0 < shares[1] < shares[2] <= 0.5
    assert 0 < shares[3] < shares[2]


# --- the run ------------------------------------------------------------------------


@pytest.fixture
def three_days(tmp_path, run_options):
    batch.play(request("odd_agents:Remembers"), tmp_path / "run", run_options)
    return RunLayout(tmp_path / "run")


def test_a_lane_remembers_and_a_checkpoint_does_not(three_days, tmp_path):
    plan = read_plan(three_days)
    memories = {
        (entry.day, entry.phase): traces(three_days)[entry.index].leaf.memory
        for entry in plan.entries
        if entry.lane
    }
    expected = tmp_path / "expected"
    expected.mkdir()
    for day in range(3):
        with (expected / "days.txt").open("a") as file:
            file.write(f"{day}\n")
        digest = folder_digest(read_folder(expected, MemoryQuota()))
        assert memories[day, "practice"] == digest
        assert memories[day, "checkpoint"] == digest


def test_controls_keep_nothing(three_days):
    plan = read_plan(three_days)
    for entry in plan.entries:
        leaf = traces(three_days)[entry.index].leaf
        assert (leaf.memory is None) == (entry.lane is None)


def test_practice_meets_the_days_drift_and_checkpoints_their_own(three_days):
    plan = read_plan(three_days)
    practice = {}
    steps = {}
    for entry in plan.entries:
        start = traces(three_days)[entry.index].start
        if entry.phase == "practice":
            assert start.instance.drift_step == entry.day
            practice[entry.day] = start.realised
        else:
            steps.setdefault(entry.delta, set()).add(
                (start.instance.seed, start.instance.drift_step, start.world)
            )
    assert practice[0] == 0.0
    assert 0.0 < practice[1] <= 0.2 < practice[2] + 0.1
    assert all(len(frozen) == 1 for frozen in steps.values())


def test_the_costs_of_a_checkpoint_are_the_evaluations(tmp_path, run_options):
    batch.play(request("fixed", days=1), tmp_path / "run", run_options)
    layout = RunLayout(tmp_path / "run")
    streams = {}
    for trace in traces(layout).values():
        for event in trace.of(Resource):
            streams.setdefault(trace.start.phase, set()).add(event.stream)
    assert streams == {"practice": {"agent"}, "checkpoint": {"evaluation"}}


def test_every_day_is_signed(three_days, run_options):
    plan = read_plan(three_days)
    leaves = {leaf.attempt_id: leaf for leaf in files.read_leaves(three_days)}
    public = bytes.fromhex(plan.public_key)
    counts = []
    for day in range(3):
        envelope = day_path(three_days, day).read_bytes()
        signed = msgspec.json.decode(unseal(envelope, public, CHECKPOINT_TYPE), type=DayCheckpoint)
        chosen = [leaf_bytes(leaves[name]) for name in signed.attempts]
        assert tree_root(chosen) == signed.evidence_root
        assert {plan.entries[leaves[n].index].day for n in signed.attempts} == set(range(day + 1))
        assert signed.simulated
        counts.append(len(chosen))
    assert counts == [5, 10, 15]


@pytest.mark.parametrize("stop_after", [4, 11])
def test_a_campaign_resumes_where_it_was_stopped(tmp_path, run_options, stop_after):
    seen = []

    def interrupt(progress):
        seen.append(progress)
        if len(seen) == stop_after:
            raise KeyboardInterrupt

    asked = request("odd_agents:Remembers")
    batch.play(asked, tmp_path / "whole", run_options, plan_only=True)
    (tmp_path / "stopped").mkdir()
    for path in (tmp_path / "whole").iterdir():
        (tmp_path / "stopped" / path.name).write_bytes(path.read_bytes())
    whole = batch.resume(tmp_path / "whole", run_options)
    impatient = {name: getattr(run_options, name) for name in RunOptions.__slots__}
    impatient["progress"] = interrupt
    with pytest.raises(KeyboardInterrupt):
        batch.resume(tmp_path / "stopped", RunOptions(**impatient))
    resumed = batch.resume(tmp_path / "stopped", run_options)
    assert resumed.replay_root == whole.replay_root
    memories = [
        [trace.leaf.memory for _, trace in sorted(traces(RunLayout(root)).items())]
        for root in (tmp_path / "whole", tmp_path / "stopped")
    ]
    assert memories[0] == memories[1]
    assert all(day_path(RunLayout(tmp_path / "stopped"), d).exists() for d in range(3))


@pytest.mark.slow
def test_lanes_are_the_same_in_worker_processes(tmp_path, run_options):
    asked = request("odd_agents:Remembers", "fixed", days=2)
    batch.play(asked, tmp_path / "a", run_options, plan_only=True)
    (tmp_path / "b").mkdir()
    for path in (tmp_path / "a").iterdir():
        (tmp_path / "b" / path.name).write_bytes(path.read_bytes())
    one = batch.resume(tmp_path / "a", run_options)
    changed = {name: getattr(run_options, name) for name in RunOptions.__slots__}
    many = RunOptions(**{**changed, "workers": 2, "in_process": False})
    two = batch.resume(tmp_path / "b", many)
    assert (one.missing, one.replay_root) == (0, two.replay_root)
    actions = [
        [len(list(trace.of(Action))) for _, trace in sorted(traces(layout).items())]
        for layout in (RunLayout(tmp_path / "a"), RunLayout(tmp_path / "b"))
    ]
    assert actions[0] == actions[1]


def test_days_need_the_key_of_the_plan(tmp_path, run_options):
    batch.play(request("noop"), tmp_path / "run", run_options, plan_only=True)
    keys.keygen(run_options.home, "other")
    changed = {name: getattr(run_options, name) for name in RunOptions.__slots__}
    with pytest.raises(UsageError, match="did not sign this plan"):
        batch.resume(tmp_path / "run", RunOptions(**{**changed, "key": "other"}))

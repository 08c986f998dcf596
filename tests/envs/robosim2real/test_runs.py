"""Runs of the arm: recorded by the second, replayed event by event, and told no side."""

import copy
import itertools
import shutil
import subprocess
import sys
from collections import Counter

import msgspec
import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("mujoco")

from owa_bench.discovery import get
from owa_bench.envs.robosim2real import faults, tasks, units
from owa_bench.envs.robosim2real.episode import RobotEpisode
from owa_bench.envs.robosim2real.oracle import oracle
from owa_bench.envs.robosim2real.world import Body
from owa_bench.errors import InfrastructureFailure, UsageError
from owa_bench.interfaces import Setting
from owa_bench.records import protocol
from owa_bench.records.control_blocks import block_commands
from owa_bench.records.events import (
    Action,
    ControlBlock,
    EpisodeEnd,
    Exposure,
    Fault,
    Incident,
    Resource,
    Tracking,
)
from owa_bench.records.instance import Instance
from owa_bench.records.layout import RunLayout
from owa_bench.records.trace import replay_line
from owa_bench.runs import replay
from owa_bench.runs.assembly import source
from owa_bench.runs.plan import draws, escrow
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import Request, RunOptions, draft_plan
from owa_bench.runs.play import batch
from owa_bench.runs.store import files
from owa_bench.scoring.validation.admissibility import check
from owa_bench.seeding import stream
from owa_bench.shells.embodied_env import EmbodiedEnv
from owa_bench.shells.episode_events import ListSink
from tests.builders.recorded_again import recorded_again

HASTY = '''
from owa_bench.interfaces import Move


class Hasty:
    """Presses down, says what it used, sends what is no command, and fails in mid second."""

    def reset(self, brief, tools, memory_dir):
        self.tick = 0
        self.brief = brief

    def act(self, observation, info):
        self.tick += 1
        if self.tick == 71:
            raise RuntimeError("the plug is out")
        if self.tick in (30, 31, 32, 33):
            return "no command"
        return Move([0.1, 0.0, -1.0, 0.0, 1.0, 1.0], usage=(("tokens_in", self.tick),))

    def close(self):
        pass


AGENT = Hasty
'''


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def played(tmp_path_factory, home):
    folder = tmp_path_factory.mktemp("agents")
    (folder / "hasty.py").write_text(HASTY)
    out = tmp_path_factory.mktemp("runs") / "run"
    request = Request(
        agents=("oracle", "arm_adaptive", str(folder / "hasty.py")),
        draws=(
            Draw(
                name="robosim2real",
                families=("reach", "push"),
                tiers=(1,),
                deltas=(0.0,),
                repeats=2,
            ),
        ),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(escrow, "fresh_bytes", lambda: b"the same in every test run")
        summary = batch.play(request, out, RunOptions(home=home, in_process=True))
    assert summary.missing == 0
    escrow.reveal(home, RunLayout(out))
    return RunLayout(out)


@pytest.fixture(scope="module")
def traces(played):
    return [files.read_trace(played, leaf) for leaf in files.read_leaves(played)]


def test_a_pair_is_played_on_both_sides_of_one_unit(played):
    plan = read_plan(played)
    cells = {}
    for entry in plan.entries:
        if entry.arm == "oracle":
            cells.setdefault(entry.pair, []).append((entry.side, entry.repeat, entry.unit))
    for played_on in cells.values():
        sides = [(side, repeat) for side, repeat, _ in played_on]
        assert sides == [("sim", 0), ("sim", 1), ("sim", 2), ("surrogate", 0), ("surrogate", 1)]
        assert len({unit for *_, unit in played_on}) == 1
    assert len({played_on[0][2] for played_on in cells.values()}) == len(cells)


def test_the_agentic_archetype_moves_an_arm_as_the_adaptive_agent_does(played, tmp_path, home):
    draw = Draw(name="robosim2real", families=("reach",), tiers=(1,), deltas=(0.0,), simulated=1)
    request = Request(agents=("agentic", "arm_adaptive"), draws=(draw,))
    batch.play(request, tmp_path / "run", RunOptions(home=home, in_process=True))
    layout = RunLayout(tmp_path / "run")
    commands = {"agentic": {}, "arm_adaptive": {}}
    for trace in (files.read_trace(layout, leaf) for leaf in files.read_leaves(layout)):
        blocks = [event.actions for event in trace.events if isinstance(event, ControlBlock)]
        commands[trace.start.arm][trace.start.side] = blocks
    assert commands["agentic"] == commands["arm_adaptive"]
    assert all(commands["agentic"][side] for side in ("sim", "surrogate"))


def test_a_level_battery_with_an_arm_plays_no_task_of_it_twice_and_else_what_full_small_does():
    battery, small = draws.load_battery("full_arm"), draws.load_battery("full_small")
    assert tuple(draw for draw in battery.suite if draw.name != "robosim2real") == small.suite
    assert battery.campaign == small.campaign
    card = get("suites", "robosim2real").card
    bodies = [
        entry
        for draw in battery.suite
        if draw.name == card.name
        for entry in draws.entries(draw, card)
    ]
    on_device = {(entry.pair, entry.repeat) for entry in bodies if entry.side == "surrogate"}
    assert {repeat for _, repeat in on_device} == {0}
    assert len({entry.unit for entry in bodies}) == 24


@pytest.mark.slow
def test_a_level_battery_with_an_arm_can_give_a_level_line_with_e():
    """`agentic`, which plays every suite, is the reference of each that needs one."""
    draft = draft_plan(Request(agents=("agentic",), battery="full_arm"))
    plan = msgspec.structs.replace(draft.plan, commitment="0" * 64)
    rules = protocol.load(draft.protocol)
    assert check(plan, rules) == ()
    needed = {suite.name for suite in plan.suites} & set(rules.references)
    assert needed == {"robosim2real", "multicrew"}
    assert all("agentic" in rules.references[name] for name in needed)
    arm = [entry for entry in plan.entries if entry.suite == "robosim2real"]
    lanes = Counter(entry.lane for entry in arm if entry.side == "surrogate")
    assert len(lanes) == 24
    assert None not in lanes


def test_a_device_episode_has_the_faults_of_the_law_and_a_simulation_none(traces):
    for trace in traces:
        injected = {fault.kind: fault.step for fault in trace.of(Fault) if fault.injected}
        (tracked,) = trace.of(Tracking)
        assert (tracked.error <= tracked.tolerance) or trace.end.outcome != "finished"
        if trace.start.side == "sim":
            assert not injected


def test_a_family_has_the_faults_that_it_feels_as_often_as_the_law_says():
    for family in tasks.FAMILIES:
        world = tasks.draw(family, 1, stream(1, "base"))
        kinds = Counter(
            fault.kind for seed in range(2000) for fault in faults.schedule(world, seed)
        )
        for kind in kinds:
            assert 0.7 < kinds[kind] / 2000 / faults.LAW[kind][0] < 1.3
        assert (faults.OCCLUDED in kinds) == (family != "reach")
        assert (faults.GRIPPER_STUCK in kinds) == (family in {"pick_place", "insert"})


def test_who_lets_the_guard_end_an_episode_escapes_no_fault(monkeypatch):
    """Else RA would rise by giving up before a fault begins."""
    sure = {name: (1.0, seconds) for name, (_, seconds) in faults.LAW.items()}
    monkeypatch.setattr(faults, "LAW", sure)
    world = tasks.draw("pick_place", 1, stream(4, "base"))
    episode = RobotEpisode(world, units.unit(2, 3), 4, side="surrogate", faulty=True)
    assert len(episode.injected) == 0
    episode.guard.watch(episode.truth._replace(table_force=300.0), None)  # before any fault
    assert episode.guard.ended
    assert len(episode.injected) == len(faults.LAW)


@pytest.mark.parametrize("kind", list(faults.LAW))
def test_a_fault_is_felt_and_recorded(kind, monkeypatch):
    """The same episode with and without the fault: what is shown differs while it lasts."""
    only = {name: (float(name == kind), seconds) for name, (_, seconds) in faults.LAW.items()}
    monkeypatch.setattr(faults, "LAW", only)
    world = tasks.draw("pick_place", 1, stream(4, "base"))
    shown = []
    for faulty in (False, True):
        episode = RobotEpisode(world, units.unit(2, 3), 4, side="surrogate", faulty=faulty)
        policy = oracle(episode)
        while not episode.over:
            episode.tick(policy(episode.observation()))
        shown.append((episode.ticks, episode.truth.tool.tolist()))
    assert shown[0] != shown[1]
    assert [fault.kind for fault in episode.injected] == [kind]
    again = copy.deepcopy(episode)
    assert again.truth.tool.tolist() == episode.truth.tool.tolist()


@pytest.mark.parametrize("suite", ["robosim2real", "armtools"])
@pytest.mark.parametrize("part", ["numba", "mujoco"])
def test_without_the_extra_a_run_says_the_line_that_installs_it(part, suite, tmp_path):
    code = (
        f"import runpy, sys; sys.modules[{part!r}] = None; "
        f"sys.argv = 'owa-bench run --suite {suite} --agent oracle --out x'.split(); "
        "runpy.run_module('owa_bench', run_name='__main__')"
    )
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert made.returncode == 3
    assert "pip install 'owa_bench[robot]'" in made.stderr
    assert "Traceback" not in made.stderr
    assert not (tmp_path / "x").exists()


def test_a_second_leaves_one_block_and_an_episode_few_bytes(traces):
    for trace in traces:
        blocks = [*trace.of(ControlBlock)]
        assert not [*trace.of(Action)]
        assert sum(block.ticks for block in blocks) == trace.end.steps
        assert all(block.ticks == 20 for block in blocks[:-1])
        size = sum(len(msgspec.json.encode(event)) for event in trace.events)
        assert size < 8_192 + 64 * sum(1 for _ in trace.of(Resource))
        [exposure] = trace.of(Exposure)
        assert exposure.most_s > 0.0


def test_the_whole_run_happens_again(played, traces):
    assert any([*trace.of(Incident)] for trace in traces)
    assert any(block.unreadable for trace in traces for block in trace.of(ControlBlock))
    assert any(trace.end.outcome == "agent_raised" for trace in traces)
    replays = replay.replay_run(played)
    assert [a for a in replays.attempts if a.outcome != "same"] == []
    assert len(replays.attempts) == len(traces)


def edited_copy(played, folder, traces, change):
    """Return a copy of the run that holds these attempts, edited."""
    shutil.copytree(played.root, folder)
    layout = RunLayout(folder)
    recorded_again(layout, traces, change)
    return layout


def hidden(event):
    return None if isinstance(event, Incident) else event


def longer(event):
    if isinstance(event, Exposure):
        return msgspec.structs.replace(event, moved_s=event.moved_s + 60.0)
    return event


def won(event):
    if isinstance(event, EpisodeEnd):
        return msgspec.structs.replace(event, success=True, q_state=1.0, quality=1.0)
    return event


@pytest.mark.parametrize("change", [hidden, longer, won])
def test_an_incident_hidden_or_an_hour_added_is_seen_by_a_replay(played, traces, tmp_path, change):
    chosen = [trace for trace in traces if [*trace.of(Incident)] and not trace.end.success][:1]
    assert chosen
    same = edited_copy(played, tmp_path / "same", chosen, lambda event: event)
    assert [one.outcome for one in replay.replay_run(same).attempts] == ["same"]
    edited = edited_copy(played, tmp_path / "edited", chosen, change)
    assert [one.outcome for one in replay.replay_run(edited).attempts] == ["different"]


def test_units_follow_from_the_secret_of_the_run_and_never_from_the_instance():
    suite, bodies = get("suites", "robosim2real"), []
    for fleet, unit, seed in itertools.product((3, 4), (0, 1), (7, 8)):
        instance = Instance(suite="robosim2real", version=1, family="reach", tier=1, seed=seed)
        setting = Setting(side="surrogate", unit=unit, fleet=fleet)
        body = suite.body(source("robosim2real")(instance), setting).episode.unit
        assert body == units.unit(fleet, unit)
        bodies.append(body)
    assert len({msgspec.json.encode(body) for body in bodies}) == 4


def session(side, repeat=0, family="reach"):
    instance = Instance(
        suite="robosim2real", version=1, family=family, tier=1, seed=5, repeat=repeat
    )
    setting = Setting(side=side, unit=3, fleet=9)
    return get("suites", "robosim2real").body(source("robosim2real")(instance), setting)


def test_no_agent_is_told_on_which_side_it_plays():
    found = [session("sim"), session("sim", 1), session("surrogate")]
    assert len({str(one.task) for one in found}) == 1
    assert len({one.observation().shape for one in found}) == 1
    assert found[0].episode.unit == Body() != found[1].episode.unit


def test_the_simulation_of_a_pair_has_no_number_of_its_device():
    device, law = session("surrogate").episode.unit, session("sim", 1).episode.unit
    own = {"jitter", "loss", "quantum", "noise"}  # the same for every unit
    own |= {"pace", "exchanged", "reversed"}  # drift alone changes them
    for name in set(Body.__struct_fields__) - own:
        assert getattr(device, name) != getattr(law, name), name


def test_another_side_is_refused():
    with pytest.raises(UsageError, match="must be sim or surrogate"):
        session("real")


def test_memory_stays_with_its_body(played):
    lanes = {}
    for entry in read_plan(played).entries:
        key = (entry.arm, entry.side, entry.unit, entry.repeat if entry.side == "sim" else None)
        assert lanes.setdefault(entry.lane, key) == key
    assert len(lanes) == len(set(lanes.values()))


def test_blocks_hold_what_was_played():
    env, sink = EmbodiedEnv(get("suites", "robosim2real"), source("robosim2real")), ListSink()
    env.attach(sink)
    instance = Instance(suite="robosim2real", version=1, family="reach", tier=1, seed=1)
    env.reset(options={"instance": instance, "setting": Setting()})
    given = [[0.25, -1.0, 1.0, 0.0, 1.0, 0.0], "nonsense", "[0,0,0,0,1,0]", [2.0] * 6]
    errors = ["error" in env.step(action)[4] for action in given]
    assert errors == [False, True, False, True]
    assert env.conclude("truncated", "enough").success is False
    [block] = [event for event in sink.events if isinstance(event, ControlBlock)]
    commands = [*block_commands(block)]
    assert commands[1] is None is commands[3]
    assert np.allclose(commands[0], given[0], atol=1e-4)
    assert block.unreadable == 2
    assert replay_line(block)


@pytest.mark.parametrize("changes", [{"actions": "?"}, {"ticks": 7}, {"ticks": 0}])
def test_a_block_that_does_not_hold_its_commands_is_refused(changes):
    block = ControlBlock(step=2, ticks=2, actions="AAAAAAAAAAAAAAAA", observation="")
    assert len([*block_commands(block)]) == 2
    with pytest.raises(UsageError, match="a control block"):
        [*block_commands(msgspec.structs.replace(block, **changes))]


def test_an_engine_that_blows_up_is_no_episode(monkeypatch):
    env = EmbodiedEnv(get("suites", "robosim2real"), source("robosim2real"))
    instance = Instance(suite="robosim2real", version=1, family="reach", tier=1, seed=1)
    env.reset(options={"instance": instance, "setting": Setting()})
    cell = env.session.episode._cell
    plain = cell.tick
    monkeypatch.setattr(cell, "tick", lambda *a: plain(*a)._replace(blew_up=True))
    with pytest.raises(InfrastructureFailure, match="the body failed"):
        env.step([0.0] * 6)


def test_an_episode_that_has_ended_takes_no_command():
    env = EmbodiedEnv(get("suites", "robosim2real"), source("robosim2real"), step_limit=2)
    with pytest.raises(UsageError, match="No episode has begun"):
        env.step([0.0] * 6)
    instance = Instance(suite="robosim2real", version=1, family="reach", tier=1, seed=1)
    env.reset(options={"instance": instance})
    assert [env.step([0.0] * 6)[3] for _ in range(2)] == [False, True]
    with pytest.raises(UsageError, match="has ended"):
        env.step([0.0] * 6)


def test_fields_of_bodies_are_checked():
    draw = Draw(name="robosim2real", deltas=(0.0,), units=0)
    with pytest.raises(Exception, match="units"):
        draws.check(draw, draws.BatteryError)

"""Attacks by an insider that only replaying can show, on a run really played."""

import dataclasses
import shutil

import msgspec
import pytest

from owa_bench.records.events import (
    DECODER,
    ENCODER,
    Action,
    Call,
    EpisodeEnd,
    EpisodeStart,
    Subgoal,
    Violation,
)
from owa_bench.records.layout import RunLayout
from owa_bench.records.trace import Closing
from owa_bench.reports import statement, verify
from owa_bench.reports.check import assurance
from owa_bench.reports.check.evidence_checks import check_evidence
from owa_bench.reports.read import bundle
from owa_bench.runs import replay
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import keys
from tests.attacks.tampering import change, failing, inside, recomputed, registry_of, unmet
from tests.builders.run_directory import KEY, OTHER_KEY
from tests.builders.sandboxes import needs_namespaces

pytestmark = pytest.mark.part(3)


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """A revealed and signed run of the fixed agent on ToolQuest."""
    home, out = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("out") / "run"
    key = keys.ensure(home)
    families = ("reconcile", "restock", "sla_report")
    draw = Draw(name="toolquest", families=families, tiers=(1,), deltas=(0.0, 1.0))
    request = Request(agents=("fixed",), draws=(draw,))
    batch.play(request, out, RunOptions(home=home))
    layout = RunLayout(out)
    escrow.reveal(home, layout)
    statement.write(out, key)
    assert all(check.ok for check in verify.verify(out))
    assert replay.replay_run(layout).passed
    return layout, key


@pytest.fixture
def attacked(honest, tmp_path, monkeypatch):
    """A copy of the run, and the run's own key in the attacker's hands."""
    layout, key = honest
    monkeypatch.setattr("tests.attacks.tampering.KEY", key)
    return RunLayout(shutil.copytree(layout.root, tmp_path / "run"))


def lost(lines):
    """Return the rows of the first episode that did not succeed."""
    for rows in lines.values():
        end = DECODER.decode(rows[-2])
        if isinstance(end, EpisodeEnd) and not end.success:
            return rows
    msg = "every episode succeeded: nothing to forge"
    raise AssertionError(msg)


def forge_end(lines):
    change(lost(lines), EpisodeEnd, quality=1.0, q_state=1.0, success=True)


def forge_reward(lines):
    change(lost(lines), Action, reward=0.5)


def forge_verified(lines):
    rows = lost(lines)
    before = next(r for r in rows if b'"verified":' in r)
    flipped = DECODER.decode(before)
    flag = not flipped.verified
    rows[rows.index(before)] = ENCODER.encode(msgspec.structs.replace(flipped, verified=flag))


def forge_subgoal(lines):
    lost(lines).insert(4, ENCODER.encode(Subgoal(step=2, node="artifact", depth=9)))


def drop_event(lines):
    rows = lost(lines)
    rows.remove(next(row for row in rows if b'"event":"observation"' in row))


def reorder(lines):
    rows = lost(lines)
    rows[2], rows[3] = rows[3], rows[2]


def duplicate(lines):
    rows = lost(lines)
    row = next(row for row in rows if b'"event":"observation"' in row)
    rows.insert(rows.index(row), row)


def truncate(lines):
    rows = lost(lines)
    del rows[5:-2]


def flip(lines):
    change(lost(lines), Call, status=299)


def fake_calls_and_meters(lines):
    for rows in lines.values():
        rows[:] = [r for r in rows if b'"api_calls"' not in r and b'"call"' not in r]


@pytest.mark.part(3)
@pytest.mark.parametrize(
    "edit",
    [
        forge_end,
        forge_reward,
        forge_verified,
        forge_subgoal,
        drop_event,
        reorder,
        duplicate,
        truncate,
        flip,
        fake_calls_and_meters,
    ],
)
def test_replay_names_an_episode_whose_events_were_forged(attacked, edit):
    inside(attacked, edit)
    assert failing(attacked.root) <= {"blobs"}
    assert recomputed(attacked.root) == set()
    replays = replay.replay_run(attacked)
    assert not replays.passed
    assert {a.outcome for a in replays.attempts} >= {"different"}


def test_a_clock_that_never_ended_anything_is_found(attacked):
    """The attack: call bad episodes timed, which no replay can show, and perfect."""

    def edit(lines):
        fields = {"quality": 1.0, "q_state": 1.0, "success": True}
        change(lost(lines), EpisodeEnd, timed=True, **fields)

    inside(attacked, edit)
    assert failing(attacked.root) == set()
    replays = replay.replay_run(attacked)
    assert not replays.passed
    assert {a.outcome for a in replays.attempts} == {"same", "different"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"outcome": "agent_timeout", "reason": "x"}, "the least that the plan gives"),
        ({"outcome": "truncated", "reason": "budget:wall_s"}, "the plan has none"),
        ({"outcome": "truncated", "reason": "budget:usd"}, "the plan has none"),
    ],
)
def test_a_clock_that_the_plan_does_not_have_is_found(attacked, fields, words):
    """The attack: call an episode ended by a clock that the plan did not set."""
    # On a machine under load an honest episode takes as long as the plan's clock.
    fields = {**fields, "timed": True, "wall_s": 0.5}
    inside(attacked, lambda lines: change(lost(lines), EpisodeEnd, **fields))
    found = {c.name: c.detail for c in verify.verify(attacked.root) if not c.ok}
    assert set(found) == {"count"}
    assert words in found["count"]


def excused(lines, times):
    """Call a lost attempt the harness' failure so many times, then play it again."""
    name = next(name for name, rows in lines.items() if rows is lost(lines))
    rows = lines.pop(name)
    entry, good = name.partition(".")[0], list(rows)
    change(rows, EpisodeEnd, outcome="infrastructure", reason="OSError: no socket")
    failed = msgspec.json.decode(rows[-1], type=Closing)
    failed = msgspec.structs.replace(failed, status="infrastructure", memory=None)
    rows[-1] = ENCODER.encode(failed)
    for attempt in range(times + 1):
        again = list(good if attempt == times else rows)
        change(again, EpisodeStart, attempt=attempt)
        lines[f"{entry}.{attempt}"] = again


def test_bad_attempts_called_failures_of_the_harness_end_by_the_rule(attacked):
    """The attack: label bad complete attempts `infrastructure`, ten times."""
    inside(attacked, lambda lines: excused(lines, 10))
    found = {c.name: c.detail for c in verify.verify(attacked.root) if not c.ok}
    assert set(found) == {"count"}
    assert "after 10 attempts that the harness failed" in found["count"]


def test_a_complete_attempt_called_a_failure_of_the_harness_is_found(attacked):
    """The attack: as often as the plan's rule allows."""
    inside(attacked, lambda lines: excused(lines, 1))
    assert failing(attacked.root) == set()
    replays = replay.replay_run(attacked)
    (found,) = (a for a in replays.attempts if a.outcome != "same")
    assert "its actions end the episode" in found.detail
    complete = (a for a in replays.attempts if a is not found)
    replay.sign(attacked, replays._replace(attempts=tuple(complete)), OTHER_KEY)
    assert "leaves out 1 of" in unmet(attacked.root, 4)


def test_a_violation_struck_from_the_record_comes_back_in_replay(honest, attacked):
    def edit(lines):
        rows = next(iter(lines.values()))
        forged = Violation(step=1, rule="made_up", severity="flag", evidence="none")
        rows.insert(-2, ENCODER.encode(forged))

    inside(attacked, edit)
    assert not replay.replay_run(attacked).passed


@needs_namespaces
def test_a_second_partys_replay_gives_v4_only_above_a_witness(attacked):
    replay.sign(attacked, replay.replay_run(attacked), OTHER_KEY)
    run = bundle.read(attacked.root)
    trusted = registry_of(OTHER_KEY)
    ladder = assurance.assess(run, check_evidence(run), signed=True, registry=trusted)
    assert ladder.rungs[4].met
    assert ladder.level == 2


@pytest.mark.parametrize("registry", [None, registry_of(), registry_of(KEY)])
def test_a_second_key_of_ones_own_is_no_second_party(attacked, registry):
    """The attack: the submitter makes another key and signs a replay with it."""
    replay.sign(attacked, replay.replay_run(attacked), OTHER_KEY)
    run = bundle.read(attacked.root)
    ladder = assurance.assess(run, check_evidence(run), signed=True, registry=registry)
    assert not ladder.rungs[4].met
    assert "registry" in ladder.rungs[4].evidence or "name" in ladder.rungs[4].evidence


def hosted(plan, hosting):
    arms = tuple(msgspec.structs.replace(arm, hosting=hosting) for arm in plan.arms)
    return msgspec.structs.replace(plan, arms=arms)


@pytest.mark.parametrize("hosting", ["", "unsandboxed", "in-process", "local address"])
def test_agents_that_could_see_the_harness_hold_a_run_at_v2(attacked, hosting):
    replay.sign(attacked, replay.replay_run(attacked), OTHER_KEY)
    run = bundle.read(attacked.root)
    run = dataclasses.replace(run, plan=hosted(run.plan, hosting))
    ladder = assurance.assess(
        run, check_evidence(run), signed=True, registry=registry_of(OTHER_KEY)
    )
    assert not ladder.rungs[4].met
    assert "V2 at most" in ladder.rungs[4].evidence


def test_a_remote_agent_holds_a_run_at_v4(attacked):
    run = bundle.read(attacked.root)
    assert assurance.hosting_cap(hosted(run.plan, "remote"))[0] == 4
    assert assurance.hosting_cap(hosted(run.plan, "sandboxed"))[0] == 5


def test_a_receipt_of_other_episodes_does_not_count(attacked):
    replay.sign(attacked, replay.replay_run(attacked), OTHER_KEY)
    inside(attacked, forge_end)
    found = {c.name: c.detail for c in verify.verify(attacked.root) if not c.ok}
    assert "is of other episodes" in found["witness"]


def test_a_replay_by_the_runs_own_key_does_not_count(honest, attacked):
    replay.sign(attacked, replay.replay_run(attacked), honest[1])
    assert "not by a second party" in unmet(attacked.root, 4)


def test_a_replay_of_some_episodes_does_not_count(attacked):
    replay.sign(attacked, replay.replay_run(attacked, 1), OTHER_KEY)
    assert "leaves out" in unmet(attacked.root, 4)


def test_a_replay_that_exempts_an_episode_lifts_nothing(attacked):
    """The attack: call what did not replay one that a clock ended."""
    replays = replay.replay_run(attacked)
    first, *others = replays.attempts
    exempt = first._replace(outcome="exempt")
    replay.sign(attacked, replays._replace(attempts=(exempt, *others)), OTHER_KEY)
    assert "leaves out 1 of" in unmet(attacked.root, 4)

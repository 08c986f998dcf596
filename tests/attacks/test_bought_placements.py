"""Attacks on placements: faults on demand, looks and batches changed, second plans, dates."""

import shutil
from pathlib import Path

import msgspec
import pytest

from owa_bench.canonical import canonical_json, seal
from owa_bench.records.layout import LOOK_TYPE, RunLayout
from owa_bench.records.placement import look_path, signed_looks
from owa_bench.records.plan import HARNESS
from owa_bench.reports.check.placement import check_stopping, placement_facts
from owa_bench.reports.read import bundle
from owa_bench.runs.play import batch
from owa_bench.runs.store import files, keys
from owa_bench.scoring.pipeline import observe_placement
from owa_bench.scoring.placement.dates import BatchDate
from owa_bench.scoring.placement.played import PlacementFacts
from owa_bench.scoring.placement.rule import PlacementRule
from owa_bench.scoring.placement.verdict import placement_verdict
from tests.attacks import tampering
from tests.builders import placements
from tests.builders.placements import Played, small_rule


@pytest.fixture(scope="module")
def placed(tmp_path_factory):
    """A placement of two batches with all its checks in order."""
    out, _, _ = placements.small_placement(tmp_path_factory.mktemp("placed"), episodes=14)
    assert check_stopping(bundle.read(out)).ok
    return out


@pytest.fixture
def run(placed, tmp_path):
    """A copy of it, to attack; the attacker has the key."""
    return RunLayout(Path(shutil.copytree(placed.parent, tmp_path / "copy")) / "run")


def fault(layout):
    """Return what `stopping` says; "" where it holds."""
    found = check_stopping(bundle.read(layout.root))
    tampering.CAUGHT.extend([] if found.ok else [found.name])
    return "" if found.ok else found.detail


def rewrite(layout, number, **changes):
    """Change a look and all that follow it, signed anew with the run's own key."""
    key = keys.load(layout.root.parent / "home")
    before = ""
    for place, signed in enumerate([*signed_looks(layout)]):
        changed = changes if place == number else {}
        look = msgspec.structs.replace(signed.look, before=before, **changed)
        path = look_path(layout, place)
        files.write_whole(path, seal(LOOK_TYPE, canonical_json(look), key))
        before = [*signed_looks(layout)][place].digest


def test_an_honest_placement_holds(run):
    assert fault(run) == ""
    rewrite(run, 99)  # the same looks, signed anew
    assert fault(run) == ""


def test_one_look_fewer(run):
    count = len([*signed_looks(run)])
    look_path(run, count - 1).unlink()
    assert f"{count - 1} looks are on record, the traces give {count}" in fault(run)


def test_one_look_more(run):
    count = len([*signed_looks(run)])
    shutil.copy(look_path(run, count - 1), look_path(run, count))
    assert f"{count + 1} looks are on record, the traces give {count}" in fault(run)


def test_a_batch_in_another_order(run):
    first = next(iter(signed_looks(run))).look
    rewrite(run, 0, batch=first.batch[::-1])
    assert "look 0: its batch" in fault(run)


def test_an_entry_left_out_of_a_batch(run):
    first = next(iter(signed_looks(run))).look
    rewrite(run, 0, batch=first.batch[1:])
    assert "look 0: its batch" in fault(run)


def test_a_figure_of_a_look(run):
    second = [*signed_looks(run)][1].look
    line = msgspec.structs.replace(second.gates[0], log_pass=second.gates[0].log_pass + 1e-6)
    rewrite(run, 1, gates=(line, *second.gates[1:]))
    assert "look 1: its gates" in fault(run)


def test_a_decision_that_the_evidence_does_not_bear(run):
    rewrite(run, 2, decision="AAI-1", batch=())
    assert "look 2: its decision" in fault(run)


def test_a_look_that_another_key_signed(run):
    keys.keygen(run.root.parent / "home", "other")
    key = keys.load(run.root.parent / "home", "other")
    look = [*signed_looks(run)][1].look
    files.write_whole(look_path(run, 1), seal(LOOK_TYPE, canonical_json(look), key))
    assert "look 1" in fault(run)


def test_another_rule(run):
    plan = bundle.read(run.root).plan
    terms = msgspec.structs.replace(plan.placement, rule_digest="0" * 64)
    run.plan.write_bytes(canonical_json(msgspec.structs.replace(plan, placement=terms)))
    assert "the plan's rule is place-1 with digest 0000000000000000" in fault(run)


def test_another_family_for_kappa(run):
    """It is a term of the signed plan: named after the fact, no look is of this plan."""
    plan = bundle.read(run.root).plan
    terms = msgspec.structs.replace(plan.placement, kappa_family="toolquest/restock")
    run.plan.write_bytes(canonical_json(msgspec.structs.replace(plan, placement=terms)))
    assert "is of another plan" in fault(run)


def test_an_episode_that_no_look_announced(run):
    """Played beside the batches, to be counted if it goes well."""
    options = placements.options(run.root.parent / "home")
    named = {index for one in signed_looks(run) for index in one.look.batch}
    other = next(e.index for e in bundle.read(run.root).plan.entries if e.index not in named)
    batch.resume(run.root, options, chosen={other})
    assert "no look announced it" in fault(run)


def test_a_look_chosen_after_the_fact(run):
    """A look that leaves out what it had seen: its root is of other attempts."""
    third = [*signed_looks(run)][2].look
    rewrite(run, 2, attempts=third.attempts - 1)
    assert "look 2 saw" in fault(run)


# --- what cannot be bought by losing, splitting or waiting ----------------------------


def wins_and_losses(rule, share, lost):
    """Return a world in `share` won, the rest failed, as evidence; `lost` makes failures faults."""
    values = {}
    for number, entry in enumerate(rule.plan.entries):
        won = (number * 0.618) % 1 < share
        for gate in ("A", "P", "G", "tools"):
            failed = placements.LOST if lost else 0.0
            values[gate, entry.index] = 1.0 if won else failed
    return Played(1.0, values)


def test_faults_on_demand_buy_nothing(tmp_path):
    """Truth .5, each failure laid to a fault: lost counts 0 for a PASS."""
    rule = small_rule(tmp_path)
    plain = rule.replay(wins_and_losses(rule, 0.5, lost=False))[-1]
    faults = rule.replay(wins_and_losses(rule, 0.5, lost=True))[-1]
    tools = {line.gate: line for line in faults.gates}["tools"]
    assert plain.decision != "AAI-1"
    assert faults.decision != "AAI-1"
    assert tools.status == "UNDECIDED"


def test_excused_faults_would_buy_a_level(tmp_path):
    """The control: the same failures left out are the figures of an agent that never fails."""
    rule = small_rule(tmp_path)
    assert rule.replay(Played(1.0))[-1].decision == "AAI-1"


def judged(layout, hosting=None, **facts):
    """Return what was played, with other facts and another hosting of the agent."""
    held = bundle.read(layout.root)
    plan = held.plan
    if hosting is not None:
        arm = msgspec.structs.replace(plan.arms[0], hosting=hosting)
        plan = msgspec.structs.replace(plan, arms=(arm, *plan.arms[1:]))
    return observe_placement(
        plan,
        held.traces(),
        held.protocol,
        held.prices,
        placement_facts(held)._replace(**facts),
        plan_digest=held.plan_digest,
        lost={},
    )


def verdict(run, **facts):
    return placement_verdict(judged(run, **facts), "", 3)


def passed(monkeypatch):
    """Let every gate of every look pass."""
    whole = PlacementRule._look

    def look(self, *args):
        state = whole(self, *args)
        lines = tuple(
            msgspec.structs.replace(line, status="PASS", log_pass=3.5) for line in state.gates
        )
        return state._replace(gates=lines)

    monkeypatch.setattr(PlacementRule, "_look", look)


def test_a_control_policy_has_no_level(run, monkeypatch):
    """It knows the world: `place oracle` would pass every gate."""
    passed(monkeypatch)
    assert verdict(run).level == 1
    assert verdict(run, hosting=HARNESS).level is None


def test_more_than_two_percent_lost_is_no_level(run, monkeypatch):
    passed(monkeypatch)
    first = bundle.read(run.root).leaves[0].index
    assert verdict(run).level == 1
    lost = verdict(run, lost=frozenset({first}))
    assert lost.level is None
    assert "were lost after they began" in lost.level_text


def test_one_of_several_plans_needs_more(run, monkeypatch):
    """Ln e 3.5 passes one plan (ln 20 = 3.0) and none of two (ln 40 = 3.7)."""
    passed(monkeypatch)
    assert verdict(run, plans=1).level == 1
    assert verdict(run, plans=2).level is None


def test_a_served_model_on_one_date_has_no_level(run, monkeypatch):
    passed(monkeypatch)
    alone = verdict(run, served=True, date="2026-11-27")
    assert alone.level is None
    assert "AAI-1 as served on 2026-11-27 (nobody's witness)" in alone.level_text
    days = [f"2026-11-{day}T09:00:00+00:00" for day in (27, 28, 29)]
    dates = tuple(BatchDate(day, day) for day in days)
    other = verdict(run, served=True, dates=dates, verifier="a lab")
    assert other.level is None
    assert "as served on 2026-11-27 to 2026-11-29, not placed (its plan asks" in other.level_text
    assert verdict(run, served=False).level == 1


# --- stages of AAI-2 ------------------------------------------------------------------


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    """A placement that went on to AAI-2 and through two of its stages."""
    folder = tmp_path_factory.mktemp("staged")
    out, _, _ = placements.small_placement(folder, text=placements.STAGES, level=2)
    return RunLayout(out)


def stage_of(layout, name):
    stages = bundle.read(layout.root).plan.placement.stages
    return next(stage for stage in stages if stage.name == name)


def test_failures_of_a_stage_laid_to_faults_are_no_evidence(staged):
    """Left out, they would be the figures of an agent that never fails."""
    stage = stage_of(staged, "shares")
    kept = judged(staged).judge(stage)
    assert {line.status for line in kept} <= {"PASS", "UNDECIDED"}
    failed = frozenset({stage.first})
    assert {line.status for line in judged(staged, lost=failed).judge(stage)} == {"NO EVIDENCE"}


def test_faults_of_a_frozen_control_are_no_evidence_either(staged):
    """Its good episodes left out, the agent would gain over it."""
    stage = stage_of(staged, "days")
    entries = bundle.read(staged.root).plan.entries
    control = next(i for i in stage.indices if entries[i].arm.endswith("(frozen)"))
    judge = judged(staged, lost=frozenset({control})).judge
    assert "(frozen)" in judge._fault(stage)
    assert judged(staged).judge._fault(stage) == ""
    assert {line.status for line in judge(stage)} == {"NO EVIDENCE"}


def test_a_stage_that_passed_is_judged_anew_at_the_price_of_several_plans(staged):
    stage = stage_of(staged, "shares")
    one, two = (judged(staged, number=plans).judge(stage) for plans in (1, 20))
    for first, last in zip(one, two, strict=True):
        assert last.low < first.low or first.low == last.low == first.mean


def test_a_stage_played_before_its_look_is_seen(staged, tmp_path):
    """Whoever knows a stage beforehand may not play it and announce it afterwards."""
    layout = RunLayout(Path(shutil.copytree(staged.root.parent, tmp_path / "copy")) / "run")
    last = [*signed_looks(layout)][-2]
    assert last.look.stage == "shares"
    look_path(layout, last.look.number + 1).unlink()
    look_path(layout, last.look.number).unlink()
    assert "no look announced" in check_stopping(bundle.read(layout.root)).detail


def test_facts_of_a_placement_without_a_verifier():
    assert PlacementFacts().plans == 1

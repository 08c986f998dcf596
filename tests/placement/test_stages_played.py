"""Real small placements that go on to AAI-2: stages, the first day, words of the level."""

import dataclasses
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from owa_bench.errors import PlanError
from owa_bench.placement import place
from owa_bench.placement.forecast import stage_forecasts
from owa_bench.placement.limits import PlacementLimits
from owa_bench.records import protocol
from owa_bench.records.layout import RunLayout
from owa_bench.records.placement import FIRST_PRACTICE, signed_looks
from owa_bench.reports import verify
from owa_bench.reports.check.placement import placement_facts
from owa_bench.reports.read import bundle
from owa_bench.scoring.observe.attempt_sets import EMPTY_FOLDER
from owa_bench.scoring.pipeline import observe_placement
from tests.builders import placements
from tests.builders.placements import STAGES, planned


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A placement that was asked for AAI-1 and reached it."""
    folder = tmp_path_factory.mktemp("first")
    return placements.small_placement(folder, text=STAGES, level=1)


@pytest.fixture(scope="module")
def second(first, tmp_path_factory):
    """The same, gone on with to AAI-2."""
    copy = Path(shutil.copytree(first[0].parent, tmp_path_factory.mktemp("second") / "copy"))
    looks = []
    options = placements.options(copy / "home")
    made = place.go_on(copy / "run", options, PlacementLimits(level=2), looks.append)
    return copy / "run", made, looks


def test_who_asks_for_aai_1_stops_there(first):
    out, made, looks = first
    assert (looks[-1].stop, looks[-1].reached, looks[-1].is_open) == ("AAI-1", True, False)
    assert "by them AAI-1" in made.verdicts[0].level_text
    assert "AAI-2" not in made.verdicts[0].level_text
    assert any("--resume --level 2" in words for words in made.verdicts[0].warnings)
    assert all(check.ok for check in (*verify.verify(out), *verify.recompute(out)))


def test_it_goes_on_to_aai_2_and_keeps_its_looks(first, second):
    kept = [one.envelope for one in signed_looks(RunLayout(first[0]))]
    looks = list(signed_looks(RunLayout(second[0])))
    assert [one.envelope for one in looks[: len(kept)]] == kept
    played = [one.look.stage for one in looks if one.look.stage]
    assert played[:2] == [FIRST_PRACTICE, "shares"]
    assert all(check.ok for check in (*verify.verify(second[0]), *verify.recompute(second[0])))


def test_the_report_says_what_was_decided_and_what_was_not_played(second):
    verdict = second[1].verdicts[0]
    gates = {gate.gate: gate for gate in verdict.gates if gate.level == 2}
    assert gates["W"].reason.startswith("stage shares: ")
    assert gates["W"].interval.low <= 0.001 + float(gates["W"].measured.split(",")[0])
    assert gates["kappa"].status == "NO EVIDENCE"
    assert "not played: days" in verdict.level_text
    assert "AAI-1, undecided between AAI-1 and AAI-2" in verdict.level_text


def test_a_stage_reads_no_campaign_of_another(second):
    """Of SelfRev's campaigns a stage read those of every stage before it."""
    played = judgement_of(second[0])
    other = SimpleNamespace(arm=played.plan.arms[0].name, pair="elsewhere", family="selfrev/memory")
    stage = next(one for one in played.rule.stages if one.name == "shares")
    judge = dataclasses.replace(played.judge, campaigns=(other,), _known={})
    assert judge(stage) == played.judge(stage)


def judgement_of(out):
    held = bundle.read(out)
    return observe_placement(
        held.plan,
        held.traces(),
        held.protocol,
        held.prices,
        placement_facts(held),
        plan_digest=held.plan_digest,
        lost={},
    )


def test_an_agent_that_keeps_nothing_on_the_first_day_is_told_so(second):
    """The control keeps something, and its stage has no line."""
    played = judgement_of(second[0])
    stage = next(one for one in played.rule.stages if one.name == FIRST_PRACTICE)
    assert played.judge(stage) == ()
    table = played.judge.episodes
    table.memory[:] = EMPTY_FOLDER
    (line,) = played.judge._lines(stage)
    assert (line.key, line.status) == ((2, "kappa"), "BELOW")
    assert "kept nothing" in line.note


def test_a_forecast_knows_the_size_and_the_power_of_each_stage(tmp_path):
    draft = planned(tmp_path, STAGES)
    found = stage_forecasts(draft.plan, protocol.load(draft.protocol))
    assert [len(one.entries) for one in found] == [2, 12, 18]
    frozen = {entry.arm for entry in found[2].entries}
    assert frozen == {"agentic", "agentic (frozen)"}  # the same model plays it, and is paid for
    assert set(found[1].powers) == {"T", "W", "$"}
    assert all(powers == tuple(sorted(powers)) for one in found for powers in one.powers.values())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('gates = ["T", "W", "$"]', 'gates = ["T", "W"]', "stage.gates"),
        ('gates = ["T", "W", "$"]', 'gates = ["T", "W", "$", "kappa"]', "stage.gates"),
        ("level = 2", "level = 1", "placement.level"),
        ('"toolquest/reconcile"', '"toolquest/restock"', "kappa_family"),
        ('name = "days"', 'name = "shares"', "stage.name"),
    ],
)
def test_stages_that_leave_something_open_are_refused(tmp_path, old, new, words):
    assert STAGES.count(old) == 1
    with pytest.raises(PlanError, match=words):
        planned(tmp_path, STAGES.replace(old, new))

"""Real small placements: looks, budgets, resuming, a kill in the middle, forecast."""

import itertools
import shutil
from pathlib import Path

import pytest

from owa_bench.errors import FieldError, PlanError, RunDirectoryError, UsageError
from owa_bench.placement import place
from owa_bench.placement.forecast import forecasts
from owa_bench.placement.limits import PlacementLimits
from owa_bench.records.layout import RunLayout
from owa_bench.records.placement import announced, look_path, signed_looks
from owa_bench.reports import verify
from owa_bench.reports.page.render_html import _figures
from owa_bench.runs.plan.request import Request, draft_plan
from owa_bench.runs.play import batch
from owa_bench.scoring.placement.rule import GO_ON
from tests.builders import placements


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A placement that its budget of episodes stopped after two batches."""
    return placements.small_placement(tmp_path_factory.mktemp("placed"), episodes=14)


@pytest.fixture
def again(stopped, tmp_path):
    """A copy of it, with the folder of its keys."""
    folder = Path(shutil.copytree(stopped[0].parent, tmp_path / "copy"))
    return folder / "run", placements.options(folder / "home")


def gates(folder):
    return [[line.gate for line in one.look.gates] for one in signed_looks(RunLayout(folder))]


def test_a_budget_stops_before_the_batch_that_would_go_over(stopped):
    out, made, looks = stopped
    sizes = [len(news.state.batch.indices) for news in looks]
    assert [news.episodes for news in looks] == [0, *itertools.accumulate(sizes[:-1])]
    assert looks[-1].episodes <= 14 < looks[-1].episodes + sizes[-1]
    assert looks[-1].stop == "the budget of 14 episodes"
    assert looks[-1].state.decision == GO_ON
    assert "undecided between AAI-0 and AAI-1" in made.verdicts[0].level_text
    assert len(gates(out)) == len(looks)


def test_what_a_budget_left_unplayed_is_not_missing(stopped):
    layout = RunLayout(stopped[0])
    assert batch.summary(layout).missing == 0
    assert all(check.ok for check in verify.verify(layout.root))
    assert all(check.ok for check in verify.recompute(layout.root))


def test_the_page_draws_the_bounds_of_each_gate(stopped):
    verdict = stopped[1].verdicts[0]
    assert [curve.name for curve in verdict.curves] == [
        *("A autonomy", "G generality", "P planning", "tools")
    ]
    assert verdict.curves[0].x == tuple(float(news.episodes) for news in stopped[2])
    for curve, gate in zip(verdict.curves, verdict.gates, strict=True):
        assert (curve.low[-1], curve.high[-1]) == (gate.interval.low, gate.interval.high)
    (svg,) = [block.svg for block in _figures(stopped[1].verdicts) if "bounds" in block.name]
    assert "P planning" in svg


def test_a_larger_budget_goes_on_and_keeps_the_looks(stopped, again):
    out, run_options = again
    count = len(stopped[2])
    before = [look_path(RunLayout(out), number).read_bytes() for number in range(count)]
    looks = []
    place.go_on(out, run_options, PlacementLimits(episodes=20), looks.append)
    assert [news.state.number for news in looks[:2]] == [count - 1, count]
    assert [look_path(RunLayout(out), n).read_bytes() for n in range(count)] == before
    assert all(check.ok for check in verify.verify(out))


def test_a_kill_in_a_batch_leaves_the_same_looks(stopped, again):
    """The batch stands open; what was complete is kept, and the looks are the same."""
    out, run_options = again
    batch_of = [*signed_looks(RunLayout(out))][-1].look.batch
    batch.resume(out, run_options, chosen=batch_of[:2])  # and then it was killed
    looks, count = [], len(stopped[2])
    place.go_on(out, run_options, PlacementLimits(episodes=20), looks.append)
    assert [news.state.number for news in looks[:2]] == [count - 1, count]
    assert looks[0].state.gates == stopped[2][-1].state.gates
    assert all(check.ok for check in verify.verify(out))


def test_a_batch_cut_off_counts_its_missing_episodes_as_lost(again):
    from owa_bench.reports.composition import score

    out, run_options = again
    before = score(out)["agentic"]
    batch_of = [*signed_looks(RunLayout(out))][-1].look.batch
    batch.resume(out, run_options, chosen=batch_of[:1])
    after = score(out)["agentic"]
    assert any("never came" in warning for warning in after.warnings)
    assert not any("never came" in warning for warning in before.warnings)


def test_only_what_was_announced_is_played(stopped):
    layout = RunLayout(stopped[0])
    leaves = batch.files.read_leaves(layout)
    played = {leaf.index for leaf in leaves}
    assert played == announced(layout, played)


def test_a_plain_resume_of_a_placement_is_refused(stopped, again):
    with pytest.raises(UsageError, match="place --resume"):
        batch.resume(*again)


def test_another_agent_does_not_go_on_with_a_placement(again):
    out, run_options = again
    request = placements.small_request(out.parent, "fixed")
    limits = PlacementLimits(episodes=20)
    with pytest.raises(UsageError, match="differs from what would be played now in: arms"):
        place.place(request, out, run_options, limits, print, resume=True)


def test_a_run_of_the_pool_leaves_nothing(tmp_path):
    request = placements.small_request(tmp_path)
    with pytest.raises(UsageError, match="owa-bench place"):
        batch.play(request, tmp_path / "run", placements.options(tmp_path / "home"))
    assert not (tmp_path / "run").exists()


def test_a_run_is_no_placement(tmp_path):
    with pytest.raises(RunDirectoryError):
        place.go_on(tmp_path, placements.options(tmp_path / "home"), PlacementLimits(), print)


@pytest.mark.parametrize(("name", "value"), [("usd", 0), ("hours", -1.0), ("episodes", 0)])
def test_a_budget_of_nothing_is_refused(name, value):
    with pytest.raises(FieldError, match=f"--{name}"):
        PlacementLimits(**{name: value}).check()


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [("level = 1", "level = 3", "placement.level"), ("episodes = 20", "episodes = 19", "episodes")],
)
def test_a_pool_that_can_decide_nothing_is_refused(tmp_path, old, new, field):
    path = placements.pool_file(tmp_path, placements.QUICK.replace(old, new))
    with pytest.raises(PlanError, match=field):
        draft_plan(Request(agents=("agentic",), battery=path))


def test_two_agents_are_two_placements(tmp_path):
    path = placements.pool_file(tmp_path, placements.QUICK)
    with pytest.raises(PlanError, match="one agent"):
        draft_plan(Request(agents=("agentic", "fixed"), battery=path))


def test_a_forecast_says_what_agents_of_several_truths_take(tmp_path, monkeypatch):
    monkeypatch.setattr("owa_bench.placement.forecast.AGENTS", 5)
    rule = placements.small_rule(tmp_path)
    weak, *_, strong = forecasts(rule.plan, rule.protocol)
    assert (weak.below, weak.passed) == (1.0, 0.0)
    assert strong.below == 0.0
    assert strong.passed > 0.5
    assert strong.expected <= strong.most
    assert sum(strong.suites.values()) == pytest.approx(strong.expected)

"""The first screen says how episodes ended, and why those that broke did."""

import shutil

import msgspec
import pytest

from benchmarks.report_pages import CRASHING
from owa_bench.report import bundle as bundles
from owa_bench.report import statement
from owa_bench.report.outcomes import NOT_PLAYED, OutcomeCount, arm_outcomes
from owa_bench.run.plan.draws import Draw
from owa_bench.run.plan.request import Request, RunOptions
from owa_bench.run.play import batch
from owa_bench.run.store import keys
from owa_bench.scoring.observables import observe
from tests.builders import run_directory


@pytest.fixture(scope="module")
def half_crashed(tmp_path_factory):
    """Return a run of which about half the episodes crashed."""
    folder = tmp_path_factory.mktemp("crashed")
    (folder / "crashing.py").write_text(CRASHING)
    draw = Draw(
        name="toolquest",
        families=("reconcile",),
        tiers=(1,),
        deltas=(0.0,),
        episodes=8,
    )
    request = Request(agents=("crashing.py",), draws=(draw,))
    options = RunOptions(home=folder / "home", folder=folder, in_process=True)
    batch.play(request, folder / "run", options)
    return folder


def outcomes(run):
    (found,) = arm_outcomes(bundles.read(run), {"crashing": 4000})
    return found


def test_every_planned_episode_is_counted_once_with_the_first_error(half_crashed):
    found = outcomes(half_crashed / "run")
    assert sum(kind.episodes for kind in found.kinds) == found.planned == 8
    crashed = next(kind for kind in found.kinds if kind.kind == "crashed")
    assert 0 < crashed.episodes < 8
    assert "no field `choices`" in crashed.reason
    assert crashed.first
    assert found.alarming
    assert found.broken_share == crashed.episodes / 8
    assert found.cost_micro_usd is None  # no success


def test_helped_episodes_are_counted_as_the_columns_of_scoring_have_them(
    tmp_path,
):
    layout = run_directory.make_run(tmp_path / "run")
    bundle = bundles.read(layout.root)
    (found, *_) = arm_outcomes(bundle, {})
    table = observe(bundle.traces(), bundle.prices)
    mine = table.helped[table.arm == found.arm]
    assert found.helped == (mine > 0).sum() > 0


def test_what_was_not_played_is_said(half_crashed, tmp_path):
    run = tmp_path / "cut"
    shutil.copytree(half_crashed / "run", run)
    (shard,) = (run / "trace").glob("*.zst")
    shard.write_bytes(b"")
    (run / "leaves.jsonl").write_bytes(b"")
    found = outcomes(run)
    assert [(k.kind, k.episodes) for k in found.kinds] == [(NOT_PLAYED, 8)]
    assert found.success.reason == "no counted episode"


def test_the_page_begins_with_the_crashes(half_crashed):
    run = half_crashed / "run"
    statement.write(run, keys.load(half_crashed / "home"))
    page = (run / "report.html").read_text()
    head = page[page.index("<main>") : page.index('<div class="tiles">')]
    assert "did not end by its own act" in head
    assert "crashed, <code>KeyError" in head
    assert "(first in 00000" in head
    assert "no field `choices`" in head
    assert 'class="calm"' not in head


def test_four_crashes_in_a_hundred_are_no_alarm(half_crashed):
    found = outcomes(half_crashed / "run")
    kinds = (OutcomeCount("finished", 96), OutcomeCount("crashed", 4))
    healthy = msgspec.structs.replace(found, planned=100, kinds=kinds)
    assert not healthy.alarming
    assert healthy.broken_share == 0.04

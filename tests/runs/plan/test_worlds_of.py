"""A run that plays the worlds of another: same master, same commitment, same pairs."""

import pytest

from owa_bench.errors import UsageError
from owa_bench.reports.read.comparison import compare
from owa_bench.runs.plan import escrow
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import keys

DRAW = Draw(name="toolquest", families=("restock",), tiers=(1,), episodes=2)


def play(folder, name, agent, **changes):
    request = Request(agents=(agent,), draws=(DRAW,), **changes)
    options = RunOptions(home=folder / "home", in_process=True)
    return batch.play(request, folder / name, options)


def test_two_runs_share_every_pair_and_compare(tmp_path):
    first = play(tmp_path, "first", "noop")
    again = play(tmp_path, "again", "fixed", worlds_of=first.root)
    plans = [read_plan(batch.RunLayout(run.root)) for run in (first, again)]
    assert plans[0].commitment == plans[1].commitment
    found = compare(str(first.root), str(again.root))
    assert found.pairs == len(plans[0].entries) == 12
    assert found.figures[0].difference > 0
    apart = play(tmp_path, "apart", "fixed")
    with pytest.raises(UsageError, match="different masters"):
        compare(str(first.root), str(apart.root))


def test_worlds_that_are_revealed_or_not_ours_are_refused(tmp_path):
    first = play(tmp_path, "first", "noop")
    away = RunOptions(home=tmp_path / "elsewhere", in_process=True)
    request = Request(agents=("noop",), draws=(DRAW,), worlds_of=first.root)
    with pytest.raises(UsageError, match="No master lies in"):
        batch.play(request, tmp_path / "away", away)
    escrow.reveal(tmp_path / "home", batch.RunLayout(first.root))
    assert keys.load(tmp_path / "home")
    with pytest.raises(UsageError, match="is revealed"):
        play(tmp_path, "again", "fixed", worlds_of=first.root)
    assert not (tmp_path / "again").exists()

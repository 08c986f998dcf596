"""A browser that dies in a run: the harness' failure, played again, nobody's fault."""

import os
import signal
from pathlib import Path

import pytest

from owa_bench.envs.changesurf.browser.playwright_driver import PlaywrightDriver
from owa_bench.records.layout import RunLayout
from owa_bench.runs.plan.draws import Draw
from owa_bench.runs.plan.request import Request, RunOptions
from owa_bench.runs.play import batch
from owa_bench.runs.store import files

pytestmark = pytest.mark.browser


@pytest.mark.slow
def test_a_killed_browser_is_a_new_attempt(tmp_path, monkeypatch):
    act, killed = PlaywrightDriver.act, []

    def act_once_dead(self, given):
        if not killed and given.op == "type":
            killed.append(self._lease.host.pid)
            os.kill(killed[0], signal.SIGKILL)
        return act(self, given)

    monkeypatch.setattr(PlaywrightDriver, "act", act_once_dead)
    draw = Draw(name="changesurf", families=("depot/buy",), tiers=(1,), deltas=(0.0,))
    options = RunOptions(home=tmp_path / "home", folder=Path.cwd(), in_process=True)
    found = batch.play(Request(agents=("oracle",), draws=(draw,)), tmp_path / "r", options)
    assert killed
    leaves = files.leaves_of_shards(RunLayout(tmp_path / "r"))
    assert [(leaf.attempt, leaf.status) for leaf in leaves] == [
        (0, "infrastructure"),
        (1, "complete"),
    ]
    assert (found.complete, found.missing) == (1, 0)

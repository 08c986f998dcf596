"""Workers that die where their record and their messages disagree."""

import shutil

import pytest

from owa_bench.errors import InfrastructureFailure
from owa_bench.records.layout import RunLayout
from owa_bench.reports.check.integrity_checks import check_attempts
from owa_bench.reports.read.bundle import read
from owa_bench.runs.play import batch, executors
from owa_bench.runs.play.worker import Worker, WorkerMessage
from owa_bench.runs.store import files
from tests.runs.play.test_executors import with_options

UNREADY, BEFORE, AFTER = "before it was ready", "before the attempt began", "after it closed"


class Link:
    """A worker of this thread; one that is to die tells nothing of the item it was given."""

    def __init__(self, config, death, *, lost):
        self.lost = lost
        self.told = [] if death == UNREADY else [WorkerMessage()]
        self.dead = False
        self._death = death
        self._worker = Worker(config)

    def give(self, item):
        if self._death in ("", AFTER):
            self._worker.play(item, lambda result: self._tell(item, result=result))
            self._tell(item)
        if self._death:
            self.dead = True
            self.finish()

    def _tell(self, item, **said):
        if not self._death:
            self.told.append(WorkerMessage(item=item.number, **said))

    def receive(self):
        if not self.told:
            raise EOFError
        told, self.told = self.told, []
        return told

    def finish(self):
        self._worker.__exit__(None, None, None)

    def stop(self):
        self.finish()

    def wait(self):
        return "killed" if self.dead else ""


class Hosts:
    """Hosts whose first workers die in the same way."""

    def __init__(self, death, deaths=1, *, lost=False):
        self.left = deaths
        self._death, self._lost = death, lost

    def start(self, config):
        self.left -= 1
        return Link(config, self._death if self.left >= 0 else "", lost=self._lost)

    def wait(self, links):
        return [link for link in links if link.told or link.dead]


@pytest.fixture
def play(tmp_path, run_options, small, monkeypatch):
    """Return a function that plays a copy of one plan on such hosts; None: as usual."""
    plan = tmp_path / "plan"
    batch.play(small("fixed", "random", episodes=2), plan, run_options, plan_only=True)

    def play(hosts):
        run = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        shutil.copytree(plan, run)
        workers = 1
        if hosts is not None:
            monkeypatch.setattr(executors, "ProcessHosts", lambda lock: hosts)
            workers = 2
        summary = batch.resume(run, with_options(run_options, workers=workers))
        assert summary.missing == 0
        return RunLayout(run), summary.replay_root

    return play


@pytest.mark.parametrize(
    "hosts",
    [
        Hosts(BEFORE),
        Hosts(AFTER),
        Hosts(UNREADY, 5, lost=True),
        Hosts(BEFORE, 5, lost=True),
        Hosts(AFTER, 3, lost=True),
    ],
    ids=["not begun", "closed", "not ready, lost", "not begun, lost", "closed, lost"],
)
def test_a_death_between_record_and_message_leaves_no_gap_and_plays_nothing_twice(play, hosts):
    _, plain = play(None)
    layout, root = play(hosts)
    assert hosts.left < 0
    assert root == plain
    leaves = files.read_leaves(layout)
    assert [(leaf.attempt, leaf.status) for leaf in leaves] == [(0, "complete")] * 4
    faults = check_attempts(read(layout.root)).faults
    assert {name: found for name, found in faults.items() if found} == {}


def test_workers_that_die_before_they_are_ready_end_the_run(play):
    with pytest.raises(InfrastructureFailure, match="workers die before they are ready"):
        play(Hosts(UNREADY, 99))


def test_workers_that_die_before_an_entry_begins_end_the_run(play):
    with pytest.raises(InfrastructureFailure, match=r"3 workers died before entry \d began"):
        play(Hosts(BEFORE, 99))

"""Small placements by dates: a day, a wait, the next day, a level; by service and by file."""

import shutil
from pathlib import Path

import msgspec
import pytest

from owa_bench.errors import CheckFailure, UsageError
from owa_bench.records.dated import dates_of
from owa_bench.records.placement import DateMean
from owa_bench.records.plan import arm_terms
from owa_bench.reports import verify
from owa_bench.runs import replay
from owa_bench.runs.plan import dates, escrow
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import Request, draft_plan
from owa_bench.runs.store import files
from owa_bench.runs.store.date_log import DateLog, dates_beside
from owa_bench.scoring.placement import rule as rules
from owa_bench.scoring.placement.dates import WAIT
from tests.builders import placements
from tests.builders.dated import DatedRun, Desk


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path / "theirs")


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The first date of a placement."""
    folder = tmp_path_factory.mktemp("dated")
    run = DatedRun(folder, Desk(folder / "theirs"))
    run.begin()
    return run


@pytest.fixture
def run(first, tmp_path):
    """A copy of it, with a copy of its verifier."""
    folder = Path(shutil.copytree(first.folder, tmp_path / "copy"))
    return DatedRun(folder, Desk(folder / "theirs"))


def dated(run):
    plan = read_plan(run.layout)
    return dates_of(run.layout, plan, files.plan_digest(run.layout))


def sound(run):
    checks = [*verify.verify(run.layout.root), *verify.recompute(run.layout.root)]
    return [f"{check.name}: {check.detail}" for check in checks if not check.ok]


def answer(monkeypatch, status, over):
    """Let every gate of every look have one answer, and every date lie on one side."""
    for name in ("_line", "_generality"):
        whole = getattr(rules.PlacementRule, name)

        def line(self, *args, whole=whole):
            return msgspec.structs.replace(whole(self, *args), status=status, log_pass=3.5)

        monkeypatch.setattr(rules.PlacementRule, name, line)
    date = DateMean(worlds=2, least=over, most=over)
    monkeypatch.setattr(rules, "date_mean", lambda *_: date)


def test_one_batch_is_played_and_then_another_date_must_come(first):
    assert [news.state.decision for news in first.looks] == ["go on", WAIT]
    assert first.looks[-1].stop == "another date must come, from 2026-11-28 09:00 UTC on"
    assert dated(first)[1].closed == "2026-11-27T09:00:00+00:00"
    assert sound(first) == []


def test_it_waits_a_whole_day_and_goes_on_then(run, first):
    played = first.looks[-1].episodes
    run.desk.later(23.99)
    run.go_on()
    assert run.looks[-1].episodes == played
    run.desk.later(0.01)
    run.go_on()
    assert run.looks[-1].episodes > played
    assert dated(run)[1].opened == "2026-11-28T09:00:00+00:00"
    assert run.looks[-1].state.batch.reads == ("A", "G", "P", "tools")
    escrow.reveal(run.options.home, run.layout)
    run.again()
    assert sound(run) == []
    assert replay.replay_run(run.layout).passed


@pytest.mark.parametrize(
    ("status", "over", "level", "words"), [("PASS", 0.1, 1, "AAI-1"), ("BELOW", -0.1, 0, "AAI-0")]
)
def test_three_dates_that_somebody_bears_out_give_a_level(
    run, monkeypatch, status, over, level, words
):
    answer(monkeypatch, status, over)
    one = run.again()
    assert f"{words} as served on 2026-11-27, not placed (A 1 of 3 dates;" in one.level_text
    for _ in range(2):
        run.desk.later()
        made = run.go_on()
    assert run.looks[-1].state.decision == ("AAI-1" if level else "below AAI-1")
    told = made.verdicts[0].level_text
    assert f"{words} as served on 2026-11-27 to 2026-11-29" in told
    assert "no registry names the verifier of its dates" in told
    text = run.named().level_text
    assert text.startswith("not placed (own terms")
    assert f"by them {words}" in text
    assert "as served" not in text
    first_looks = "stopping: look 0: its gates"  # which were made before all gates agreed
    assert not [fault for fault in sound(run) if not fault.startswith(first_looks)]


def test_the_page_has_a_row_a_date_and_gate_and_the_spread(run):
    run.desk.later()
    (verdict,) = run.go_on().verdicts
    (table,) = [table for table in verdict.tables if table.title == "dates"]
    assert [row[0] for row in table.rows] == [1] * 4 + [2] * 4
    opened, closed = "2026-11-28T09:00:00+00:00", "2026-11-28T09:00:00+00:00"
    assert table.rows[4][1:4] == (opened, closed, "A")
    assert "Spread between dates: A 0." in table.note


def test_by_file(run):
    """The verifier gets the run directory and gives `dates/` back; no service."""
    desk = run.desk
    desk.later()
    run.go_on(alone=True)
    assert run.looks[-1].stop == "another date must come, from 2026-11-28 09:00 UTC on"
    kept = DateLog(dates_beside(desk.log.path), lambda: desk.time)
    told = dates.date_last_look(run.layout, desk.key, desk.log, kept)
    assert told.opened == "2026-11-28T09:00:00+00:00"
    run.go_on(alone=True)
    assert "no verifier has seen this look" in run.looks[-1].stop
    assert dates.date_last_look(run.layout, desk.key, desk.log, kept).closed == told.opened
    run.again()
    assert sound(run) == []


def test_a_verifier_that_does_not_answer_costs_nothing_of_what_was_played(run):
    def away(*_, **__):
        raise CheckFailure("away")

    run.desk.later()
    run.desk.service.client.post = away
    with pytest.raises(CheckFailure, match="away"):
        run.go_on()
    assert sound(run) == []


def test_a_program_needs_one_date_whoever_challenged_it(tmp_path, desk):
    request = placements.small_request(tmp_path)
    asked = msgspec.structs.replace(request, challenger=desk.service.public())
    assert draft_plan(asked).plan.placement.dates == 1
    with pytest.raises(UsageError, match="needs a verifier"):
        draft_plan(msgspec.structs.replace(request, dated=True))


@pytest.mark.parametrize("agent", ["language-model:model=stub", "http://127.0.0.1:9/act"])
def test_what_asks_a_model_or_lies_behind_an_address_needs_dates(tmp_path, desk, agent):
    request = placements.small_request(tmp_path, agent)
    assert draft_plan(request).plan.placement.dates == 1
    asked = msgspec.structs.replace(request, challenger=desk.service.public())
    assert draft_plan(asked).plan.placement.dates == 3


def test_dates_are_no_terms_of_ones_own():
    """A plan of the shipped pool by dates asks no less than that of a program."""
    request = Request(agents=("agentic",), battery="place", sandbox="none", challenger="a" * 64)
    plans = [
        draft_plan(msgspec.structs.replace(request, dated=dated)).plan for dated in (False, True)
    ]
    assert [plan.placement.dates for plan in plans] == [1, 3]
    assert len({arm_terms(plan, plan.arms[0]) for plan in plans}) == 1
    eased = msgspec.structs.replace(plans[1].placement, depth=1)
    other = msgspec.structs.replace(plans[1], placement=eased)
    assert arm_terms(other, other.arms[0]) != arm_terms(plans[1], plans[1].arms[0])

"""Small placements by dates: a day, a wait, the next day, a level; by service and by file."""

import msgspec
import pytest

from owa_bench.errors import CheckFailure, UsageError
from owa_bench.records.dated import dates_of
from owa_bench.reports import verify
from owa_bench.runs import replay
from owa_bench.runs.plan import dates, escrow
from owa_bench.runs.plan.plan import read_plan
from owa_bench.runs.plan.request import draft_plan
from owa_bench.runs.store import files
from owa_bench.runs.store.date_log import DateLog, dates_beside
from owa_bench.scoring.placement.dates import WAIT
from tests.builders import placements
from tests.builders.dated import DatedRun, Desk


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path / "theirs")


@pytest.fixture
def run(tmp_path, desk):
    return DatedRun(tmp_path, desk)


def dated(run):
    plan = read_plan(run.layout)
    return dates_of(run.layout, plan, files.plan_digest(run.layout))


def sound(run):
    checks = [*verify.verify(run.layout.root), *verify.recompute(run.layout.root)]
    return [f"{check.name}: {check.detail}" for check in checks if not check.ok]


def to_the_end(run):
    """Play a batch a date until the rule says a level; return the dates that it took."""
    made, count = run.begin(), 1
    while run.looks[-1].state.decision == WAIT:
        run.desk.later()
        made, count = run.go_on(), count + 1
    return made.verdicts[0], count


def test_one_batch_is_played_and_then_another_date_must_come(run):
    made = run.begin()
    assert [news.state.decision for news in run.looks] == ["go on", WAIT]
    assert run.looks[-1].stop == "another date must come, from 2026-11-28 09:00 UTC on"
    assert dated(run)[1].closed == "2026-11-27T09:00:00+00:00"
    assert made.verdicts[0].level is None
    assert sound(run) == []


def test_it_waits_a_whole_day_and_goes_on_then(run):
    run.begin()
    run.desk.later(23.99)
    run.go_on()
    assert run.looks[-1].episodes == run.looks[1].episodes
    run.desk.later(0.01)
    run.go_on()
    assert run.looks[-1].episodes > run.looks[1].episodes
    assert dated(run)[1].opened == "2026-11-28T09:00:00+00:00"
    assert sound(run) == []


def test_dates_that_somebody_bears_out_give_a_level(run):
    verdict, count = to_the_end(run)
    assert count >= 3
    assert verdict.level is None
    assert "AAI-1 as served on" in verdict.level_text
    assert "no registry names the verifier of its dates" in verdict.level_text
    named = run.named()
    assert (named.level, named.level_text) == (1, "AAI-1")
    assert sound(run) == []
    (table,) = [table for table in named.tables if table.title == "dates"]
    assert len(table.rows) == 4 * count
    assert table.rows[4][1:4] == ("2026-11-28T09:00:00+00:00", "2026-11-28T09:00:00+00:00", "A")
    assert "Spread between dates: A 0." in table.note


def test_all_gates_read_every_date(run):
    to_the_end(run)
    for news in run.looks:
        if news.state.batch.worlds:
            assert news.state.batch.reads == ("A", "G", "P", "tools")


def test_an_agent_below_needs_its_dates_too(run):
    made = run.begin("noop")
    while run.looks[-1].state.decision == WAIT:
        run.desk.later()
        made = run.go_on()
    assert run.looks[-1].state.decision == "below AAI-1"
    assert "AAI-0 as served on 2026-11-27 to " in made.verdicts[0].level_text
    assert run.named().level == 0


def test_a_replay_knows_the_worlds_of_each_date(run):
    run.begin()
    run.desk.later()
    run.go_on()
    escrow.reveal(run.options.home, run.layout)
    assert replay.replay_run(run.layout).passed
    assert sound(run) == []


def test_by_file(run, desk):
    """The verifier gets the run directory and gives `dates/` back; no service."""
    run.begin()
    desk.later()
    run.go_on(alone=True)
    assert run.looks[-1].stop == "another date must come, from 2026-11-28 09:00 UTC on"
    kept = DateLog(dates_beside(desk.log.path), lambda: desk.time)
    told = dates.date_last_look(run.layout, desk.key, desk.log, kept)
    assert told.opened == "2026-11-28T09:00:00+00:00"
    run.go_on(alone=True)
    assert "no verifier has seen this look" in run.looks[-1].stop
    assert dates.date_last_look(run.layout, desk.key, desk.log, kept).closed == told.opened
    assert sound(run) == []


def test_a_verifier_that_does_not_answer_leaves_a_report(run, desk):
    run.begin()
    desk.later()
    desk.service.client.post = lambda *_, **__: (_ for _ in ()).throw(CheckFailure("away"))
    with pytest.raises(CheckFailure, match="away"):
        run.go_on()
    assert sound(run) == []


def test_a_program_needs_one_date_whoever_challenged_it(tmp_path, desk):
    request = placements.small_request(tmp_path)
    asked = msgspec.structs.replace(request, challenger=desk.service.public())
    assert draft_plan(asked).plan.placement.dates == 1
    with pytest.raises(UsageError, match="needs a verifier"):
        draft_plan(msgspec.structs.replace(request, dated=True))


def test_what_asks_a_model_or_lies_behind_an_address_needs_dates(tmp_path, desk):
    for agent in ("language-model:model=stub", "http://127.0.0.1:9/act"):
        request = placements.small_request(tmp_path, agent)
        assert draft_plan(request).plan.placement.dates == 1
        asked = msgspec.structs.replace(request, challenger=desk.service.public())
        assert draft_plan(asked).plan.placement.dates == 3

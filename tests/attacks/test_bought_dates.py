"""Attacks on the dates of a placement: false clocks and days, nonces and looks of others."""

import shutil
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from owa_bench.canonical import canonical_json, peek, seal
from owa_bench.errors import CheckFailure
from owa_bench.placement import place
from owa_bench.records import dated
from owa_bench.records.dated import LookDate, date_path
from owa_bench.records.layout import DATE_TYPE, LOOK_TYPE
from owa_bench.records.placement import look_path, signed_looks
from owa_bench.records.registry import Registry
from owa_bench.reports.check.integrity_checks import check_attempts
from owa_bench.reports.check.placement import check_dates, check_stopping, placement_facts
from owa_bench.reports.read import bundle
from owa_bench.runs.plan import dates, escrow
from owa_bench.runs.store import date_log, files, keys
from tests.attacks import tampering
from tests.builders.dated import DatedRun, Desk


@pytest.fixture(scope="module")
def placed(tmp_path_factory):
    """Two dates of a placement, a day apart: look 1 is opened, look 2 is closed."""
    folder = tmp_path_factory.mktemp("dated")
    run = DatedRun(folder, Desk(folder / "theirs"))
    run.begin()
    shutil.copytree(folder, folder.parent / f"{folder.name}-first")
    run.desk.later()
    run.go_on()
    assert said(run) == ""
    return folder


def copy(folder, to):
    folder = Path(shutil.copytree(folder, to))
    return DatedRun(folder, Desk(folder / "theirs"))


@pytest.fixture
def run(placed, tmp_path):
    """A copy of both dates, on the evening of the second; the attacker has the run's key."""
    run = copy(placed, tmp_path / "copy")
    run.desk.later()
    return run


@pytest.fixture
def one(placed, tmp_path):
    """A copy of the first date, on its evening."""
    return copy(placed.parent / f"{placed.name}-first", tmp_path / "one")


def said(run, check=check_dates):
    """Return what a check says; "" where it holds."""
    found = check(bundle.read(run.layout.root))
    tampering.CAUGHT.extend([] if found.ok else [found.name])
    return "" if found.ok else found.detail


def held(run):
    """Return how many batches have both bounds."""
    facts = placement_facts(bundle.read(run.layout.root))
    return sum(bool(date.begin and date.end) for date in facts.dates)


def day_of(run, look):
    return msgspec.json.decode(peek(date_path(run.layout, look).read_bytes()), type=LookDate)


def resign(run, number, **changes):
    """Sign a look anew with the run's own key."""
    look = [*signed_looks(run.layout)][number].look
    look = msgspec.structs.replace(look, **changes)
    envelope = seal(LOOK_TYPE, canonical_json(look), keys.load(run.options.home))
    files.write_whole(look_path(run.layout, number), envelope)


def at_once(monkeypatch):
    """Patch the submitter's program: it waits for nobody."""
    monkeypatch.setattr(place, "_wait", lambda *_: "")


def test_an_honest_placement_holds(run):
    assert said(run) == ""
    assert held(run) == 2


# --- whose clock, and how far apart ---------------------------------------------------


def test_the_machines_clock_makes_no_date(one, monkeypatch):
    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return super().now(tz) + timedelta(days=3)

    monkeypatch.setattr(place, "datetime", Later)
    one.go_on()
    assert "another date must come" in one.looks[-1].stop
    one.desk.later()  # the control: the verifier's clock does
    one.go_on()
    assert one.looks[-1].state.number == 2


def test_a_look_of_another_day_is_another_look(run):
    """The machine's own time in a look, signed anew: its digest is no more what was dated."""
    resign(run, 1, at="2026-11-20T09:00:00+00:00")
    assert "0001.dsse.json: it is of another look" in said(run)
    assert held(run) == 0


def test_three_answers_of_one_day_are_one_date(one, monkeypatch):
    for _ in range(3):
        one.desk.later(7)
        told = one.desk.service.date(one.layout)
        assert (told.number, told.opened) == (1, "")
        assert told.closed == "2026-11-27T09:00:00+00:00"
    monkeypatch.setattr(date_log, "APART", timedelta(0))  # the control
    with pytest.raises(CheckFailure, match="opens less than 24 hours after it was closed"):
        one.desk.service.date(one.layout)
    monkeypatch.setattr(dated, "APART", timedelta(0))
    assert one.desk.service.date(one.layout).opened


def test_dates_fetched_in_advance_hold_no_batch(one, monkeypatch):
    """Asked on three days, all played on the last: one nonce opens one batch."""
    for _ in range(3):
        one.desk.later()
        told = one.desk.service.date(one.layout)
    assert (told.number, told.opened[:10]) == (1, "2026-11-28")
    at_once(monkeypatch)
    one.go_on(episodes=24)
    assert one.looks[-1].state.number >= 3
    assert "the batch of look 2 was played and no verifier opened that look" in said(one)
    assert held(one) == 1


def test_a_look_that_was_dated_before_its_batch_was_played(one):
    """A made-up look is dated first; what was played then is not what its root holds."""
    whole = look_path(one.layout, 1).read_bytes()
    resign(one, 1, evidence_root="0" * 64)
    shutil.rmtree(one.layout.dates)
    desk = Desk(one.folder / "others")
    desk.log = one.desk.log
    kept = date_log.DateLog(one.folder / "fresh", lambda: one.desk.time)
    dates.date_last_look(one.layout, one.desk.key, one.desk.log, kept)
    assert said(one) == ""
    assert "look 1 saw other attempts" in said(one, check_stopping)
    files.write_whole(look_path(one.layout, 1), whole)
    assert "it is of another look" in said(one)


# --- whose nonce ----------------------------------------------------------------------


def test_a_nonce_used_twice(run):
    shutil.copy(date_path(run.layout, 1), date_path(run.layout, 2))
    assert "0002.dsse.json: it is of another look" in said(run)
    assert held(run) == 1


def test_a_nonce_of_another_plan(run, one, tmp_path):
    other = DatedRun(tmp_path / "other", run.desk)
    other.begin()
    shutil.copy(date_path(other.layout, 1), date_path(run.layout, 1))
    assert "0001.dsse.json: it is of another plan" in said(run)


def test_a_date_that_another_key_signed(run):
    forged = seal(DATE_TYPE, canonical_json(day_of(run, 1)), keys.load(run.options.home))
    files.write_whole(date_path(run.layout, 1), forged)
    assert "0001.dsse.json" in said(run)
    assert held(run) == 0


def test_a_day_that_is_shorter(run):
    early = msgspec.structs.replace(day_of(run, 1), opened="2026-11-28T08:59:59+00:00")
    signed = seal(DATE_TYPE, canonical_json(early), run.desk.key)
    files.write_whole(date_path(run.layout, 1), signed)
    assert "it opens less than 24 hours after it was closed" in said(run)


def test_a_batch_that_was_played_before_its_nonce_was_told(one, monkeypatch):
    """Played at once on the first day, the nonce fetched on the second: other worlds."""
    with monkeypatch.context() as patch:
        at_once(patch)
        patch.setattr(place, "_close", lambda *_: None)
        one.go_on(episodes=sum(len(signed.look.batch) for signed in signed_looks(one.layout)))
    look_path(one.layout, 2).rename(one.folder / "later")
    one.desk.later()
    one.desk.service.date(one.layout)
    (one.folder / "later").rename(look_path(one.layout, 2))
    assert said(one) == ""
    assert check_attempts(bundle.read(one.layout.root)).faults["seed"] == []
    escrow.reveal(one.options.home, one.layout)
    faults = check_attempts(bundle.read(one.layout.root)).faults["seed"]
    assert "not the seed that the master gives" in faults[0]


def test_what_was_played_under_its_nonce_has_its_seeds(run):
    """The control."""
    escrow.reveal(run.options.home, run.layout)
    assert check_attempts(bundle.read(run.layout.root)).faults["seed"] == []


def test_a_verifier_of_ones_own_gives_no_level(run):
    """Nobody's registry names it; a registry of the submitter's own is not the reader's."""
    assert placement_facts(bundle.read(run.layout.root)).verifier == ""
    run.named()
    held_now = bundle.read(run.layout.root)
    assert placement_facts(held_now).verifier == "a lab"
    assert check_dates(held_now, held_now.registry).ok
    reader = Registry(name="reader")
    assert "the reader's registry does not name" in check_dates(held_now, reader).detail
    own = msgspec.structs.replace(held_now.plan, public_key=held_now.plan.challenger)
    assert placement_facts(replace(held_now, plan=own)).verifier == ""


# --- which looks ----------------------------------------------------------------------


def test_a_look_has_one_nonce_and_one_first_day(run):
    told = [day_of(run, 2)]
    for _ in range(3):
        run.desk.later()
        told.append(run.desk.service.date(run.layout))
    assert [date.closed for date in told] == [told[0].closed] * 4
    assert {date.opened for date in told[1:]} == {told[1].opened}
    assert len({date.nonce for date in told[1:]}) == 1


def test_a_bad_date_cannot_be_played_over(run):
    """Back to look 1, other attempts, another look 2: the verifier dated one already."""
    kept = look_path(run.layout, 2).read_bytes()
    resign(run, 2, evidence_root="0" * 64)
    with pytest.raises(CheckFailure, match="Look 2 of this plan was dated, and another than"):
        run.desk.service.date(run.layout)
    fresh = date_log.DateLog(run.folder / "fresh", lambda: run.desk.time)  # the control
    assert dates.date_last_look(run.layout, run.desk.key, run.desk.log, fresh).number == 1
    files.write_whole(look_path(run.layout, 2), kept)


def test_a_date_that_was_left_out(run):
    date_path(run.layout, 1).unlink()
    assert "the verifier's date 1 of this plan is not on record" in said(run)
    assert "the batch of look 1 was played and no verifier opened that look" in said(run)


def test_looks_of_plans_that_a_verifier_did_not_challenge(run, tmp_path):
    stranger = Desk(tmp_path / "stranger")
    envelope = look_path(run.layout, 2).read_bytes()
    kept = date_log.DateLog(tmp_path / "fresh")
    with pytest.raises(CheckFailure, match="challenged no plan"):
        dates.date_look(envelope, stranger.key, stranger.log, kept)
    look = [*signed_looks(run.layout)][2].look
    forged = seal(LOOK_TYPE, canonical_json(look), stranger.key)
    with pytest.raises(CheckFailure):
        dates.date_look(forged, run.desk.key, run.desk.log, kept)

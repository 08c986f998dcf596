"""`owa-bench place`: lines while it runs, JSON events, a dry run, what it refuses."""

import json

import pytest

from owa_bench.cli import placing
from tests.builders import placements
from tests.builders.dated import URL, Desk

pytestmark = pytest.mark.part(2)


@pytest.fixture
def small(place, monkeypatch):
    """A pool of two families in place of the shipped one."""
    monkeypatch.setattr(placing, "BATTERY", placements.pool_file(place, placements.QUICK))


def test_a_log_has_a_line_a_look_and_the_verdict(owa, small):
    said = owa("place agentic --episodes 7 --out x")
    assert said.code == 0
    looks = [line for line in said.err.splitlines() if line.startswith("look ")]
    assert len(looks) == 2
    assert looks[1].startswith("look 1, ")
    assert "stops: the budget of 7 episodes" in looks[1]
    assert "undecided between AAI-0 and AAI-1" in said.out
    assert "to go on: owa-bench place --resume --out x" in said.err


def test_json_is_an_event_a_look_and_the_verdict(owa, small):
    said = owa("place agentic --episodes 7 --out x --json")
    *events, last = map(json.loads, said.out.splitlines())
    assert [event["look"] for event in events] == [0, 1]
    assert events[0]["next"] in (4, 5, 6)
    assert events[1]["stop"] == "the budget of 7 episodes"
    assert {gate["gate"] for gate in events[1]["gates"]} == {"A", "G", "P", "tools"}
    assert last["verdict"]["arm"] == "agentic"


def test_dates_are_asked_for_and_the_wait_is_said(owa, small, place, monkeypatch):
    desk = Desk(place / "theirs")
    monkeypatch.setattr(placing, "VerifierService", lambda url: desk.service)
    said = owa(f"place agentic --dated --verifier {URL} --out x")
    assert said.code == 0
    assert "stops: another date must come, from 2026-11-28 09:00 UTC on" in said.err
    assert f"to go on: owa-bench place --resume --out x --verifier {URL}" in said.err
    assert "it goes on at another date" in said.out


def test_the_verifier_dates_a_look_by_file(owa, small, place, monkeypatch):
    public = json.loads(owa("keygen verifier --json").out)["public_hex"]
    owa(f"place agentic --dated --plan-only --challenger {public} --out x")
    owa("challenge x --key verifier")
    said = owa("place --resume --out x")
    assert "no verifier has seen this look" in said.err
    told = json.loads(owa("challenge x --date --key verifier --json").out)
    assert (told["look"], told["number"], told["opened"]) == (1, 1, "")
    again = owa("challenge x --date --key verifier")
    assert f"Look 1 closed {told['closed']}, to be opened 24 hours later." in again.out
    assert "another date must come, from" in owa("place --resume --out x").err


def test_a_dry_run_says_what_it_would_take(owa, small, monkeypatch):
    monkeypatch.setattr("owa_bench.placement.forecast.AGENTS", 3)
    said = owa("place agentic --dry-run --out x --json")
    weak, *_, strong = json.loads(said.out)["agents"]
    assert weak["below"] == 1.0
    assert strong["passed"] > 0
    assert 0 < strong["USD"] < strong["USD without cache"]
    assert "success" in owa("place agentic --dry-run --out x").out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("place --out x", "Say who is placed"),
        ("place agentic --level 4 --out x", "`--level` must be one of 1"),
        ("place agentic --usd 0 --out x", "`--usd` must be above 0"),
        ("place agentic --challenger 00 --out x", "--challenger goes with --plan-only"),
        ("place agentic --dated --out x", "needs a verifier who bears them out"),
        (f"place agentic --verifier {URL} --nonce 12345678 --out x", "asks that verifier"),
        ("place --resume --nonce 12345678 --out x", "--nonce shapes a plan"),
        ("place --resume --act-seconds 90 --out x", "--act-seconds shapes a plan"),
        ("place --resume --out x", "A run directory must exist"),
        ("place agentic --episodes 2 --out x", "is less than the first batch takes"),
    ],
)
def test_what_it_refuses(owa, small, words, why):
    said = owa(words)
    assert said.code == 2
    assert why in said.err


def test_a_signed_pool_waits_and_is_then_played(owa, small):
    assert owa("place agentic --plan-only --out x").code == 0
    assert owa("run --resume --out x").code == 2  # its rule chooses what is played
    said = owa("place --resume --episodes 7 --out x")
    assert said.code == 0
    assert "undecided" in said.out


def test_a_slow_agent_gets_its_deadline(owa, small, place):
    for words, deadline in (("", 60.0), ("--act-seconds 90 ", 90.0)):
        assert owa(f"place agentic {words}--plan-only --out x{deadline}").code == 0
        plan = json.loads((place / f"x{deadline}" / "plan.json").read_text())
        assert plan["budget"]["act_s"] == deadline


def test_a_share_of_failures_goes_with_the_command_that_goes_on(owa, small):
    said = owa("place agentic --episodes 7 --failure-share 1 --model-header A=HOME --out x")
    assert "--failure-share 1.0" in said.err
    assert "--model-header A=HOME" in said.err


def test_the_page_of_a_placement_shows_its_gates(owa, small, place):
    owa("place agentic --episodes 7 --out x")
    page = (place / "x" / "report.html").read_text()
    assert "gate of AAI-1" in page
    assert "No gate was tried" not in page
    assert owa("verify x").code == 0
    assert owa("recompute x").code == 0
